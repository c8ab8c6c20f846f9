import copy
import pickle

import dgl
import pytest
import torch
from dgl import DGLError
from hypothesis import given
from hypothesis import strategies as st

import dgl_orient
from dgl_orient import GlobalOrientation, OrientationNet
from dgl_orient.testing import assert_equivariant
from tests.clouds import (
    ORDINARY,
    SIZES,
    UGLY,
    ball,
    duplicates,
    generator,
    grid,
    line,
    plane,
    rotation_error,
    sines,
)

PROPER = {torch.float32: 1e-6, torch.float64: 1e-12}


def orientations(net, k=8):
    """The net as a function of points, on kNN graphs."""
    return lambda pos, batch_num_nodes=None, **inputs: net(
        dgl_orient.knn_graph(pos, k, batch_num_nodes), pos, **inputs
    )


def steady_orientations(net, k=8):
    """The same, with zeros for the frames of nearly collinear vectors."""

    def function(pos, batch_num_nodes):
        graph = dgl_orient.knn_graph(pos, k, batch_num_nodes)
        steady = sines(net.vectors(graph, pos)) > 0.05
        assert steady.float().mean() > 0.9
        return net(graph, pos) * steady[..., None, None]

    return function


@pytest.mark.parametrize("cloud", ORDINARY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("training", [False, True])
def test_orientations_are_equivariant(cloud, dtype, training):
    net = OrientationNet(num_orientations=2).to(dtype).train(training)
    # In a plane two vectors need not be far from collinear anywhere: how a frame is flipped depends on
    # the sign of what may pass through 0, and float32 has too few digits to hold 1e-4 near there.
    in_float32 = cloud == "plane" and dtype == torch.float32
    function = (steady_orientations if in_float32 else orientations)(net)
    assert_equivariant(function, ORDINARY[cloud](dtype), "frames", SIZES)


@given(
    sizes=st.lists(st.integers(4, 30), min_size=1, max_size=4),
    k=st.integers(3, 12),
    seed=st.integers(0, 1000),
    variant=st.sampled_from(
        [
            dict(),
            dict(edges="plain", num_orientations=3),
            dict(message_from="receiver", edges="relative"),
            dict(message_from="sender", message_layers=1, num_layers=3),
        ]
    ),
)
def test_orientations_are_equivariant_for_any_sizes_and_k(sizes, k, seed, variant):
    torch.manual_seed(seed)
    net = OrientationNet(**variant).double()
    assert_equivariant(orientations(net, k), ball(sum(sizes), seed), "frames", sizes, trials=1, seed=seed)


def test_input_scalars_and_vectors_matter_and_keep_equivariance():
    net = OrientationNet(in_feats=1, in_vectors=1).double()
    charge, velocity = torch.randn(60, 1).double(), torch.randn(60, 1, 3).double()
    inputs = dict(scalars={"feat": charge}, vectors={"vec": velocity})
    assert_equivariant(orientations(net), ball(), "frames", SIZES, **inputs)
    graph = dgl_orient.knn_graph(ball(), 8)
    orient = net(graph, ball(), charge, velocity)
    assert not torch.allclose(orient, net(graph, ball(), -charge, velocity), atol=1e-3)
    assert not torch.allclose(orient, net(graph, ball(), charge, -velocity), atol=1e-3)


def test_dropout_is_equivariant_under_the_same_mask():
    net = OrientationNet(dropout=0.5).double()
    errors = assert_equivariant(orientations(net), ball(), "frames", symmetries=("rotation", "translation"))
    assert set(errors) == {"rotation", "translation"}
    graph = dgl_orient.knn_graph(ball(), 8)
    assert not torch.equal(net(graph, ball()), net(graph, ball()))


@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("edges", ["radial", "relative", "plain"])
def test_ugly_clouds_have_proper_orientations_and_finite_gradients(name, dtype, edges):
    pos = UGLY[name](dtype).requires_grad_()
    graph = dgl_orient.knn_graph(pos, 6)
    net = OrientationNet(2, edges=edges).to(dtype)
    orient = net(graph, pos)
    assert orient.shape == (len(pos), 2, 3, 3)
    assert rotation_error(orient) < PROPER[dtype]
    (orient * torch.randn(orient.shape, dtype=dtype, generator=generator())).sum().backward()
    assert torch.isfinite(pos.grad).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in net.parameters())
    assert torch.equal(orient, net(graph, pos)), "not repeatable"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_degenerate_orientations_are_counted(dtype):
    net = OrientationNet().to(dtype)
    count = {
        name: int(net.degenerate(dgl_orient.knn_graph(pos, 6), pos).sum())
        for name, pos in {
            "ball": ball(dtype=dtype),
            "plane": plane(dtype=dtype),
            "line": line(dtype=dtype),
            "place": torch.ones(30, 3, dtype=dtype),
            "point": ball(1, dtype=dtype),
        }.items()
    }
    assert count == {"ball": 0, "plane": 0, "line": 20, "place": 30, "point": 1}
    # On the lattice the inner points see six neighbours that cancel, and so do the neighbours of some.
    pos = grid(7, dtype)
    assert bool(net.degenerate(dgl.radius_graph(pos, 1.1), pos)[7 * 7 * 3 + 7 * 3 + 3])


@pytest.mark.parametrize(
    "cloud", [ball(256), torch.rand(256, 3, generator=generator()).double(), ball(256).renorm(2, 0, 1.0)]
)
@pytest.mark.parametrize("seed", range(3))
def test_untrained_orientations_are_well_conditioned(cloud, seed):
    torch.manual_seed(seed)
    pos = cloud.float()
    graph = dgl_orient.knn_graph(pos, 16, [128, 128])
    assert sines(OrientationNet(4).vectors(graph, pos)).median() > 0.3
    global_orient = GlobalOrientation(4, level_sizes=(64, 16))
    for level in global_orient.vectors(graph, pos):
        assert sines(level).median() > 0.3


def train(step, parameters, steps):
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = step()
        assert torch.isfinite(loss)
        loss.backward()
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in parameters)
        optimizer.step()
    return float(loss.detach())


def test_orientations_stay_well_conditioned_in_training_and_learn():
    pos = torch.nn.functional.normalize(ball(128, dtype=torch.float32), dim=1)
    graph = dgl_orient.knn_graph(pos, 12, [64, 64])
    net, global_orient = OrientationNet(2), GlobalOrientation(2, level_sizes=(32, 8))

    def step():  # the first axis along the normal, the clouds' along the coordinates'
        normal = 1 - (net(graph, pos)[:, :, :, 0] * pos.unsqueeze(1)).sum(-1).mean()
        return normal + (global_orient(graph, pos) - torch.eye(3)).square().mean()

    first = float(step().detach())
    for _ in range(5):
        last = train(step, [*net.parameters(), *global_orient.parameters()], 5)
        for pairs in (net.vectors(graph, pos), *global_orient.vectors(graph, pos)):
            assert sines(pairs).median() > 0.1
    assert last < first / 2


def test_training_on_duplicates_yields_no_nan():
    pos = duplicates(90, dtype=torch.float32)
    graph = dgl_orient.knn_graph(pos, 6, [40, 30, 20])
    net, global_orient = OrientationNet(2, edges="radial"), GlobalOrientation(level_sizes=(8,), k=4)
    target = torch.randn(90, 1, 3, 3)

    def step():
        return (net(graph, pos) - target).square().mean() + (
            global_orient.scales(graph, pos).point - target
        ).abs().mean()

    train(step, [*net.parameters(), *global_orient.parameters()], 40)
    assert rotation_error(net(graph, pos)) < 1e-6


def test_gradcheck():
    pos, feat, vec = ball(8), torch.randn(8, 1).double(), torch.randn(8, 1, 3).double()
    graph = dgl_orient.knn_graph(pos, 4)
    net = OrientationNet(in_feats=1, in_vectors=1, hidden_feats=4, hidden_vectors=3).double()
    inputs = tuple(x.requires_grad_() for x in (pos, feat, vec))
    assert torch.autograd.gradcheck(lambda *inputs: net(graph, *inputs), inputs)


@pytest.mark.parametrize(
    "make",
    [
        lambda pos: dgl.knn_graph(pos, 6, algorithm="kd-tree"),
        lambda pos: dgl.segmented_knn_graph(pos, 6, [40, 20], algorithm="kd-tree"),
        lambda pos: dgl.radius_graph(pos, 2.0),
        lambda pos: dgl.batch([dgl_orient.knn_graph(part, 5) for part in pos.split([40, 20])]),
        lambda pos: dgl_orient.knn_graph(pos, 5).int(),
    ],
    ids=["knn_graph", "segmented_knn_graph", "radius_graph", "batch", "int32"],
)
def test_graphs_that_others_made(make):
    net, global_orient = OrientationNet().double(), GlobalOrientation(level_sizes=(8,), k=4).double()

    def function(pos):
        return net(make(pos), pos), global_orient.scales(make(pos), pos).point

    motions = dict(symmetries=("rotation", "translation"), trials=1)
    assert_equivariant(function, ball().renorm(2, 0, 1.5), ("frames", "frames"), **motions)


def test_small_weights_determine_orientations_as_large_ones_do():
    pos = ball(dtype=torch.float32)
    graph = dgl_orient.knn_graph(pos, 8)
    net = OrientationNet()
    with torch.no_grad():
        for parameter in net.layers.parameters():
            parameter *= 0.1
    assert not net.degenerate(graph, pos).any()
    net(graph, pos)[:, 0, 0, 1].sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in net.layers[1].update.vector.parameters())


def test_autocast_does_not_reach_the_geometry():
    pos = ball(dtype=torch.float32)
    graph = dgl_orient.knn_graph(pos, 8)
    for net in (OrientationNet(), GlobalOrientation(level_sizes=(16,))):
        plain = net(graph, pos)
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(net(graph, pos), plain)


@pytest.mark.parametrize("make", [OrientationNet, lambda: GlobalOrientation(level_sizes=(16, 4))])
def test_modules_can_be_saved_copied_moved_and_reset(make):
    pos = ball(dtype=torch.float32)
    graph = dgl_orient.knn_graph(pos, 8)
    net = make().eval()
    orient = net(graph, pos)
    other = make().eval()
    assert not torch.equal(other(graph, pos), orient)
    other.load_state_dict(net.state_dict())
    for same in (other, copy.deepcopy(net), pickle.loads(pickle.dumps(net)), net.to("cpu")):
        assert torch.equal(same(graph, pos), orient)
    double = copy.deepcopy(net).double()(graph, pos.double())
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), orient, rtol=0, atol=1e-4)
    weights = [p.clone() for p in net.parameters() if p.ndim == 2]
    net.reset_parameters()
    assert all(not torch.equal(a, b) for a, b in zip(weights, (p for p in net.parameters() if p.ndim == 2)))


@pytest.mark.parametrize("make", [OrientationNet, GlobalOrientation])
def test_bad_input_is_refused(make):
    net, pos = make(), ball(20, dtype=torch.float32)
    graph = dgl_orient.knn_graph(pos, 4)
    for bad in (pos[:19], torch.rand(20, 2), pos.long(), pos.double()):
        with pytest.raises(DGLError):
            net(graph, bad)
    for bad in (0, 1.5, "2"):
        with pytest.raises(DGLError):
            make(num_orientations=bad)
    with pytest.raises(DGLError):
        make(hidden_vectors=0)
