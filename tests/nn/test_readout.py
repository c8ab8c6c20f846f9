import copy

import dgl
import pytest
import torch
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient import EquivariantReadout, InvariantReadout, OrientationNet, OrientedConv
from dgl_orient.geometry import random_rotation
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, ball, generator

POOLS = ("max", "mean", "both", "attention")


def random_tensor(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=generator(seed)).requires_grad_()


def random_orientations(n, num_orientations):
    frames = random_rotation(n * num_orientations, torch.float64, generator())
    return frames.view(n, num_orientations, 3, 3).requires_grad_()


def plain_mlp(mlp, row):
    """Linear maps with leaky units between them, from the parameters alone."""
    linears = [layer for layer in mlp if isinstance(layer, nn.Linear)]
    for number, layer in enumerate(linears):
        row = layer.weight @ (row if number == 0 else torch.where(row > 0, row, 0.2 * row)) + layer.bias
    return row


def plain_pool(readout, cloud):
    """One cloud's pooled features."""
    if len(cloud) == 0:
        return cloud.new_zeros(2 * 5 if readout.pool == "both" else 5)
    if readout.pool == "attention":
        logits = torch.stack([readout.gate.weight[0] @ row + readout.gate.bias[0] for row in cloud])
        return sum(weight * row for weight, row in zip(logits.softmax(0), cloud))
    parts = {"max": cloud.amax(0), "mean": cloud.mean(0)}
    return torch.cat([parts[name] for name in parts if readout.pool in (name, "both")])


def assert_same(actual, plain, inputs):
    torch.testing.assert_close(actual, plain, rtol=1e-11, atol=1e-11)
    gradients = [torch.autograd.grad((value + 1).pow(3).sum(), inputs) for value in (actual, plain)]
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("hidden_feats", [(), (7,), (7, 6)])
def test_every_point_has_an_output(hidden_feats):
    feat = random_tensor(12, 5)
    readout = InvariantReadout(5, 4, hidden_feats=hidden_feats).double()
    actual = readout(dgl_orient.point_cloud(ball(12)), feat)
    plain = torch.stack([plain_mlp(readout.mlp, row) for row in feat])
    assert_same(actual, plain, (feat, *readout.parameters()))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("sizes", [[12], [5, 1, 6], [0, 5, 0, 7, 0]], ids=str)
@pytest.mark.parametrize("hidden_feats", [(), (7,)])
def test_every_point_cloud_has_an_output_even_an_empty_one(pool, sizes, hidden_feats):
    feat = random_tensor(12, 5)
    readout = InvariantReadout(5, 4, pool, hidden_feats).double()
    graph = dgl_orient.point_cloud(ball(12), sizes)
    pooled = [plain_pool(readout, cloud) for cloud in feat.split(sizes)]
    plain = torch.stack([plain_mlp(readout.mlp, row) for row in pooled])
    assert_same(readout(graph, feat), plain, (feat, *readout.parameters()))
    assert set(graph.ndata) == {"pos"}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("sizes", [[0], [0, 0]], ids=str)
def test_nothing_but_empty_clouds(pool, sizes):
    readout = InvariantReadout(5, 4, pool).double()
    feat = random_tensor(0, 5)
    actual = readout(dgl_orient.point_cloud(ball(0), sizes), feat)
    torch.testing.assert_close(actual, readout.mlp[0].bias.expand(len(sizes), 4))
    actual.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in readout.parameters())


@pytest.mark.parametrize("pool", POOLS)
def test_pooling_survives_large_values(pool):
    # exp(1000) and the sum of these bfloat16 numbers are both out of their type's reach or precision.
    readout = InvariantReadout(1, 1, pool).double()
    feat = torch.tensor([[1000.0], [-1000.0], [999.0]], dtype=torch.float64, requires_grad=True)
    actual = readout(dgl_orient.point_cloud(ball(3)), feat)
    assert_same(actual, plain_mlp(readout.mlp, plain_pool(readout, feat)).unsqueeze(0), (feat,))

    ones = torch.ones(4000, 1, dtype=torch.bfloat16)
    pooled = readout.bfloat16()._pooled(torch.tensor([4000]), ones)
    assert pooled.dtype == torch.bfloat16
    torch.testing.assert_close(pooled, torch.ones_like(pooled))


@pytest.mark.parametrize("num_orientations", [1, 3])
@pytest.mark.parametrize("hidden_feats", [(), (7,)])
def test_vectors_equal_the_formula(num_orientations, hidden_feats):
    feat, orient = random_tensor(12, 5), random_orientations(12, num_orientations)
    readout = EquivariantReadout(5, 2, num_orientations, hidden_feats).double()
    plain = []
    for row, frames in zip(feat, orient):
        local = plain_mlp(readout.mlp, row).view(2, num_orientations, 3)
        plain += [sum(frame @ p for frame, p in zip(frames, vector)) / num_orientations for vector in local]
    inputs = (feat, orient, *readout.parameters())
    assert_same(readout(feat, orient), torch.stack(plain).view(12, 2, 3), inputs)


@pytest.mark.parametrize("cloud", ORDINARY)
def test_equivariant(cloud):
    assert_equivariant_readouts(ORDINARY[cloud](torch.float64))


def test_equivariant_in_float32():
    assert_equivariant_readouts(ball(dtype=torch.float32))


def assert_equivariant_readouts(pos):
    scale = 1 / float(pos.std())  # so that the features see the cloud whatever its size
    net = OrientationNet(num_orientations=2).to(pos.dtype)
    conv = OrientedConv(lambda h_i, h_j, local: torch.cat([h_j, scale * local.flatten(1)], 1).sin())
    points = InvariantReadout(11, 4, hidden_feats=(16,), dropout=0.5).to(pos.dtype)
    clouds = nn.ModuleList(InvariantReadout(11, 4, pool, (16,)) for pool in POOLS).to(pos.dtype)
    vectors = EquivariantReadout(11, 3, num_orientations=2, hidden_feats=(16,)).to(pos.dtype)

    def encode(pos, batch_num_nodes, feat):
        graph = dgl_orient.knn_graph(pos, 8, batch_num_nodes)
        orient = net(graph, pos)
        return graph, conv(graph, feat, pos, orient), orient

    def of_points(**inputs):
        graph, feat, orient = encode(**inputs)
        return points.eval()(graph, feat), vectors(feat, orient)

    def of_clouds(**inputs):
        graph, feat, _ = encode(**inputs)
        return [readout(graph, feat) for readout in clouds]

    scalars = {"feat": random_tensor(60, 5).detach().to(pos)}
    for function, kinds, per in (
        (of_points, ("invariant", "vectors"), "node"),
        (of_clouds, ("invariant",) * len(POOLS), "cloud"),
    ):
        assert_equivariant(
            lambda pos, function=function, **inputs: function(pos=pos, **inputs),
            pos,
            kinds,
            SIZES,
            per,
            scalars=scalars,
        )


@pytest.mark.parametrize("pool", POOLS)
def test_gradcheck_of_pooling(pool):
    readout = InvariantReadout(3, 2, pool, (4,)).double()
    graph = dgl_orient.point_cloud(ball(7), [4, 0, 3])
    assert torch.autograd.gradcheck(lambda feat: readout(graph, feat), (random_tensor(7, 3),))


def test_gradcheck_of_vectors():
    readout = EquivariantReadout(3, 2, 2, (4,)).double()
    assert torch.autograd.gradcheck(readout, (random_tensor(4, 3), random_orientations(4, 2)))


def test_autocast_does_not_touch_the_frames():
    readout = EquivariantReadout(5, 1)
    feat, orient = random_tensor(12, 5).detach().float(), random_orientations(12, 1).detach().float()
    with torch.autocast("cpu", torch.bfloat16):
        vec, local = readout(feat, orient), readout.mlp(feat).float()
    assert vec.dtype == torch.float32
    torch.testing.assert_close(vec[:, 0], torch.einsum("nab,nb->na", orient[:, 0], local))


def make_readouts():
    return InvariantReadout(5, 4, "attention", (7,)), EquivariantReadout(5, 4, 2, (7,))


@pytest.mark.parametrize("number", [0, 1])
def test_state_dict_and_reset(number):
    readout, other = make_readouts()[number].double(), make_readouts()[number].double()
    inputs = [
        (dgl_orient.point_cloud(ball(12), [8, 4]), random_tensor(12, 5)),
        (random_tensor(12, 5), random_orientations(12, 2)),
    ][number]
    assert not torch.equal(readout(*inputs), other(*inputs))
    other.load_state_dict(readout.state_dict())
    assert torch.equal(readout(*inputs), other(*inputs))
    before = copy.deepcopy(readout.state_dict())
    readout.reset_parameters()
    assert not any(torch.equal(before[name], value) for name, value in readout.state_dict().items())


def test_dropout_leaves_names_alone_and_stops_in_eval():
    graph, feat = dgl_orient.point_cloud(ball(12)), random_tensor(12, 5)
    readout = InvariantReadout(5, 4, hidden_feats=(64,), dropout=0.5).double()
    without = InvariantReadout(5, 4, hidden_feats=(64,)).double()
    without.load_state_dict(readout.state_dict())
    assert not torch.equal(readout(graph, feat), without(graph, feat))
    assert torch.equal(readout.eval()(graph, feat), without(graph, feat))


@pytest.mark.parametrize(
    "make",
    [
        lambda: InvariantReadout(5, 4, "median"),
        lambda: InvariantReadout(0, 4),
        lambda: EquivariantReadout(5, 0),
        lambda: EquivariantReadout(5, 1, 0),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(DGLError):
        make()


def test_wrong_inputs_are_refused():
    graph = dgl.rand_graph(12, 20)
    with pytest.raises(DGLError):
        InvariantReadout(5, 4)(graph, torch.zeros(11, 5))
    with pytest.raises(DGLError):
        InvariantReadout(5, 4, "max")(graph, None)
    with pytest.raises(DGLError):
        EquivariantReadout(5, 1, 2)(torch.zeros(12, 5), torch.zeros(12, 1, 3, 3))
    with pytest.raises(DGLError):
        EquivariantReadout(5, 1)(torch.zeros(12, 4), torch.zeros(12, 1, 3, 3))
