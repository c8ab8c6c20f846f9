"""TFN and the SE(3)-Transformer: formulas, symmetries, sizes."""

import sys

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.models import TFN, SE3Transformer
from dgl_orient.models.se3_networks import TensorFieldAttention
from dgl_orient.models.tensor_field import TensorFieldMessages, kernel_basis
from dgl_orient.nn.edge_ops import edge_ops
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball, generator
from tests.particles import on_systems, system, systems

MODELS = {
    "tfn": lambda **kw: TFN(**(dict(channels=4, num_layers=3) | kw)),
    "tfn, degree 2": lambda **kw: TFN(**(dict(channels=3, max_degree=2, num_layers=2) | kw)),
    "se3-transformer": lambda **kw: SE3Transformer(**(dict(channels=3, num_layers=2) | kw)),
}
CHANNELS = {0: 2, 1: 3, 2: 2}


def test_the_kernels_between_vectors_are_known_matrices():
    x, y, z = vec = torch.tensor([0.48, -0.6, 0.64], dtype=torch.float64)
    kernels = kernel_basis(5 * vec.unsqueeze(0), 1)[1, 1].view(3, 3, 3).unbind(1)
    cross = torch.tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    identity = torch.eye(3, dtype=torch.float64)
    # Of norm 1 by the 3j symbols, times the norm of the spherical harmonics, (2J + 1) / 4 pi.
    for j, expected in enumerate([identity, cross, torch.outer(vec, vec) - identity / 3]):
        norm = (1 / (4 * torch.pi)) ** 0.5
        unit = expected / expected.norm() * norm
        assert min((kernels[j] - sign * unit).abs().max() for sign in (1, -1)) < 1e-12, j
    assert kernel_basis(torch.zeros(1, 3), 1)[0, 1].abs().max() == 0


def feats_of(channels, number):
    rng = generator(5)
    return {
        degree: torch.randn(number, size, 2 * degree + 1, dtype=torch.float64, generator=rng)
        for degree, size in channels.items()
    }


def message(layer, feats, vec, target):
    """Of one edge: the sum over pairs of channels and kernels."""
    total = torch.zeros(layer.out_channels[target], 2 * target + 1, dtype=torch.float64)
    basis = kernel_basis(vec.unsqueeze(0), 2)
    for source, feat in feats.items():
        kernels = basis[source, target][0].view(2 * source + 1, -1, 2 * target + 1)
        weights = layer.radial[f"{source}-{target}"](vec.norm().view(1, 1))
        weights = weights.view(len(total), len(feat), kernels.shape[1])
        for a in range(len(total)):
            for b in range(len(feat)):
                for j in range(kernels.shape[1]):
                    total[a] += weights[a, b, j] * (feat[b] @ kernels[:, j])
    return total


def test_attention_equals_its_formula_pair_by_pair():
    torch.manual_seed(0)
    graph, pos, feats = dgl_orient.graph.fully_connected_graph([4]), ball(4), feats_of({0: 2, 1: 1}, 4)
    layer = TensorFieldAttention({0: 2, 1: 1}, CHANNELS).double()

    class Edges:
        ops = edge_ops(graph)

        def messages(self, layer, feats):
            vec = self.ops.add_src_dst(-pos, pos)
            return layer(self.ops, feats, vec.norm(dim=1, keepdim=True), kernel_basis(vec, 2))

    edges = Edges()
    edges.graph = graph
    result, queries = layer(edges, feats), layer.query(feats)
    for i in range(4):
        others = [j for j in range(4) if j != i]
        near = {j: {degree: feat[j] for degree, feat in feats.items()} for j in others}
        scores = [
            sum((queries[d][i] * message(layer.key, near[j], pos[i] - pos[j], d)).sum() for d in (0, 1))
            for j in others
        ]
        weights = (torch.stack(scores) / (2 * 1 + 3 * 3) ** 0.5).softmax(0)
        for degree in CHANNELS:
            values = [message(layer.value, near[j], pos[i] - pos[j], degree) for j in others]
            expected = sum(weight * value for weight, value in zip(weights, values))
            assert torch.allclose(result[degree][i], expected, rtol=1e-10, atol=1e-11)


def test_messages_of_degree_2_rotate_by_wigner_matrices():
    from e3nn.o3 import spherical_harmonics

    graph, pos, feats = dgl_orient.graph.fully_connected_graph([5]), ball(5), feats_of(CHANNELS, 5)
    layer, ops = TensorFieldMessages(CHANNELS, CHANNELS).double(), edge_ops(graph)
    rotation = dgl_orient.geometry.random_rotation(dtype=torch.float64, generator=generator(3))
    wigner = {}
    for degree in CHANNELS:  # by definition; e3nn's own have the digits of float32
        before, after = (spherical_harmonics(degree, x, True) for x in (ball(20), ball(20) @ rotation.T))
        wigner[degree] = torch.linalg.lstsq(before, after).solution.T

    def messages(pos, feats):
        vec = ops.add_src_dst(-pos, pos)
        return layer(ops, feats, vec.norm(dim=1, keepdim=True), kernel_basis(vec, 2))

    rotated = messages(pos @ rotation.T, {degree: feats[degree] @ wigner[degree].T for degree in feats})
    for degree, original in messages(pos, feats).items():
        error = (rotated[degree] - original @ wigner[degree].T).abs().max()
        assert error < 1e-9 * original.abs().max()


@pytest.mark.parametrize("name", MODELS)
def test_positions_are_equivariant(name):
    sizes = [5, 1, 7]
    graph, model = systems(sizes), MODELS[name](in_feats=2).double()
    feat = torch.randn(sum(sizes), 2, dtype=torch.float64, generator=generator(1))

    def fn(pos, batch_num_nodes=None, *, vel, charge, feat):
        graph = system(pos, vel, charge, batch_num_nodes)
        graph.ndata["feat"] = feat
        return model(graph)

    scalars = {"charge": graph.ndata["charge"], "feat": feat}
    inputs = dict(scalars=scalars, vectors={"vel": graph.ndata["vel"]})
    pos = graph.ndata["pos"]
    assert_equivariant(fn, pos, "positions", sizes, **inputs)
    moved = fn(pos, sizes, vel=graph.ndata["vel"], **scalars) - pos
    for key in scalars:
        changed = fn(pos, sizes, vel=graph.ndata["vel"], **(scalars | {key: 1 - scalars[key]})) - pos
        assert (changed - moved).abs().max() > 1e-4 * moved.abs().max(), key
    mirrored = fn(-pos, sizes, vel=-graph.ndata["vel"], **scalars) + pos
    assert (mirrored + moved).abs().max() > 1e-4 * moved.abs().max()  # not to reflections


@pytest.mark.parametrize("name", MODELS)
def test_float32_and_neighbours(name):
    graph, model = systems([6, 9], dtype=torch.float32), MODELS[name](k=4)
    inputs = dict(scalars={"charge": graph.ndata["charge"]}, vectors={"vel": graph.ndata["vel"]})
    assert_equivariant(on_systems(model), graph.ndata["pos"], "positions", [6, 9], **inputs, trials=1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("place", ["one place", "no velocity", "one particle"])
def test_gradients_are_finite(name, place):
    pos, vel = ball(6), ball(6, seed=1)
    pos = torch.ones_like(pos) if place == "one place" else pos
    vel = torch.zeros_like(vel) if place == "no velocity" else vel
    sizes = [1, 5] if place == "one particle" else [3, 3]
    charge = torch.ones(6, 1, dtype=torch.float64)
    model = MODELS[name]().double()
    pos.requires_grad_()
    result = model(system(pos, vel, charge, sizes))
    result.square().sum().backward()
    assert torch.isfinite(result).all() and torch.isfinite(pos.grad).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_learns_forces_between_charges(name):
    torch.manual_seed(0)
    graph, model = systems([5] * 12, dtype=torch.float32), MODELS[name]()
    pos, vel, charge = (graph.ndata[key].view(12, 5, -1) for key in ("pos", "vel", "charge"))
    diff = pos.unsqueeze(2) - pos.unsqueeze(1)
    force = (charge.unsqueeze(2) * charge.unsqueeze(1) * diff / (1 + diff.square().sum(-1, True))).sum(2)
    target = (pos + vel + 0.5 * force).flatten(0, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (model(graph) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    moved = float((target - graph.ndata["pos"]).square().mean())
    assert min(losses[-5:]) < 0.4 * moved


def test_have_the_published_numbers_of_parameters():
    for make, number in ((TFN, 127_024), (SE3Transformer, 1_763_134)):
        with torch.device("meta"):
            assert sum(p.numel() for p in make().parameters()) == number
        assert f"{number:,} parameters" in make.__doc__
        assert sum(p.numel() for p in make.light().parameters()) < number / 4


def test_without_e3nn_the_constructor_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "e3nn", None)
    with pytest.raises(DGLError, match=r'pip install ".\[e3nn\]"'):
        TFN()


@pytest.mark.parametrize(
    "arguments", [dict(k=-1), dict(channels=0), dict(max_degree=0), dict(num_layers=1.5)]
)
def test_bad_arguments_are_refused(arguments):
    for make in (TFN, SE3Transformer):
        with pytest.raises(DGLError, match=next(iter(arguments))):
            make(**arguments)
