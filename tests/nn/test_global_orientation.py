import dgl
import pytest
import torch
from dgl import DGLError
from hypothesis import given
from hypothesis import strategies as st

import dgl_orient
from dgl_orient import GlobalOrientation
from dgl_orient.data import Shapes
from dgl_orient.geometry import random_rotation
from dgl_orient.metrics import orientation_agreement
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, UGLY, ball, generator, plane, rotation_error
from tests.graph.test_sampling import plain_farthest_points
from tests.nn.test_vgconv import plain_vgconv
from tests.test_geometry import plain_frames


def clouds(net, k=8):
    return lambda pos, batch_num_nodes=None, **inputs: net(
        dgl_orient.knn_graph(pos, k, batch_num_nodes), pos, **inputs
    )


@pytest.mark.parametrize("cloud, training", [*((cloud, False) for cloud in ORDINARY), ("ball", True)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_global_orientations_are_equivariant(cloud, dtype, training):
    net = GlobalOrientation(2, level_sizes=(16, 0.2), k=6).to(dtype).train(training)
    assert_equivariant(clouds(net), ORDINARY[cloud](dtype), "frames", SIZES, per="cloud", trials=1)


@pytest.mark.parametrize("cloud", ORDINARY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_every_scale_is_equivariant_and_canonical_coordinates_are_invariant(cloud, dtype):
    # Of the levels too, every point needs more than three neighbours: fewer are always in a plane.
    net, sizes = GlobalOrientation(level_sizes=(16, 8), k=6).to(dtype), [35, 25]
    pos = ORDINARY[cloud](dtype)
    if cloud == "plane" and dtype == torch.float32:
        # How a flat frame is flipped hinges on a sign, near whose change float32 cannot hold 1e-4.
        rotation = random_rotation(dtype=torch.float64, generator=generator())
        plain, rotated = (clouds(net.scales)(x, sizes) for x in (pos, (plane() @ rotation.T).float()))
        error = (rotated.point - rotation.float() @ plain.point).abs().amax((-1, -2))
        assert error.quantile(0.95) < 1e-4
        return

    def scales(pos, batch_num_nodes=None):
        return clouds(net.scales)(pos, batch_num_nodes)[1:3]

    assert_equivariant(scales, pos, ("frames", "invariant"), sizes, trials=1)


def test_scales_are_laid_out_as_documented():
    pos = ball()
    graph = dgl_orient.knn_graph(pos, 8, SIZES)
    net = GlobalOrientation(2, level_sizes=(16,), k=6).double()
    scales = net.scales(graph, pos)
    assert scales.point.shape == (60, 3 * 2, 3, 3)
    torch.testing.assert_close(scales.global_orient, net(graph, pos))
    cloud = torch.arange(3).repeat_interleave(torch.tensor(SIZES))
    torch.testing.assert_close(scales.point[:, 4:], scales.global_orient[cloud])
    centered = torch.cat([part - part.mean(0) for part in pos.split(SIZES)])
    expected = torch.einsum("nfji,nj->nfi", scales.global_orient[cloud], centered)
    torch.testing.assert_close(scales.canonical, expected)
    # The finest scale is the points' own, and no two scales are the same.
    assert rotation_error(scales.point) < 1e-12
    assert not torch.allclose(scales.point[:, :2], scales.point[:, 2:4], atol=0.1)


@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_ugly_clouds_have_proper_orientations(name, dtype):
    pos = UGLY[name](dtype).requires_grad_()
    graph = dgl_orient.knn_graph(pos, 6)
    net = GlobalOrientation(2, level_sizes=(8,), k=4).to(dtype)
    scales = net.scales(graph, pos)
    assert scales.global_orient.shape == (1, 2, 3, 3)
    assert rotation_error(scales.global_orient) < (1e-6 if dtype == torch.float32 else 1e-12)
    assert rotation_error(scales.point) < (1e-6 if dtype == torch.float32 else 1e-12)
    (scales.point.sum() + scales.canonical.sum()).backward()
    assert torch.isfinite(pos.grad).all()


@pytest.mark.parametrize("copies", [1, 10])
@pytest.mark.parametrize("seed", range(5))
def test_rounding_errors_of_cancelling_vectors_do_not_determine_orientations(copies, seed):
    """The vectors of two points are opposite, whatever their lengths, and leave nothing for the cloud."""
    torch.manual_seed(seed)
    net = GlobalOrientation(2, level_sizes=(), input_features="covariance+normal", num_layers=0).double()
    pair = torch.randn(2, 3, dtype=torch.float64).repeat(copies, 1)
    alone = dgl_orient.knn_graph(pair, 8)
    assert net.degenerate(alone, pair).all()
    pos = torch.cat([ball(40), pair])
    beside = net(dgl_orient.knn_graph(pos, 8, [40, len(pair)]), pos)[1]
    torch.testing.assert_close(beside, net(alone, pair)[0], rtol=0, atol=1e-12)


def test_an_empty_cloud_in_a_batch_changes_nothing_for_the_others():
    pos = ball(40)
    net = GlobalOrientation(level_sizes=(8,), k=4).double()
    with_empty = dgl_orient.knn_graph(pos, 6, [25, 0, 15])
    without = dgl_orient.knn_graph(pos, 6, [25, 15])
    actual = net(with_empty, pos)
    torch.testing.assert_close(actual[[0, 2]], net(without, pos))
    assert torch.equal(actual[1, 0], torch.eye(3, dtype=torch.float64))
    assert net.degenerate(with_empty, pos).flatten().tolist() == [False, True, False]


def test_input_vectors_keep_equivariance():
    net = GlobalOrientation(level_sizes=(8,), k=4, in_feats=1, in_vectors=1).double()
    inputs = dict(
        scalars={"feat": torch.randn(60, 1).double()}, vectors={"vec": torch.randn(60, 1, 3).double()}
    )
    assert_equivariant(clouds(net), ball(), "frames", SIZES, per="cloud", **inputs)


@pytest.mark.parametrize("message", ["both", "sender", "receiver"])
def test_input_features_of_points_reach_the_global_orientation(message):
    net = GlobalOrientation(level_sizes=(8,), k=4, in_feats=1, in_vectors=1, message_from=message).double()
    graph, feat, vec = (
        dgl_orient.knn_graph(ball(), 6),
        torch.randn(60, 1).double(),
        torch.randn(60, 1, 3).double(),
    )
    orient = net(graph, ball(), feat, vec)
    assert not torch.allclose(net(graph, ball(), -feat, vec), orient, atol=1e-4)
    assert not torch.allclose(net(graph, ball(), feat, -vec), orient, atol=1e-4)


def test_equals_the_layers_put_together_plainly():
    """Level by level, with the slow forms of sampling, neighbours, convolution and frames."""
    pos = ball(30)
    sizes = dict(level_sizes=(10,), k=4, num_layers=1, hidden_feats=5, hidden_vectors=4)
    net = GlobalOrientation(**sizes, edges="relative").double()  # where a point may be its own neighbour
    graph = dgl_orient.knn_graph(pos, 6)
    none = pos.new_zeros(30, 0), pos.new_zeros(30, 0, 3)
    feat, vec = plain_vgconv(net.layers[0], graph, (none[0],) * 2, (none[1],) * 2, (pos, pos))
    rows = plain_farthest_points(pos, 10)
    near = torch.cdist(pos[rows], pos).argsort(1)[:, :4]
    up = dgl.heterograph(
        {("src", "near", "dst"): (near.flatten(), torch.arange(10).repeat_interleave(4))},
        num_nodes_dict={"src": 30, "dst": 10},
    )
    feat, vec = plain_vgconv(net.pools[0], up, (feat, feat[rows]), (vec, vec[rows]), (pos, pos[rows]))
    top = dgl.heterograph({("src", "near", "dst"): (torch.arange(10), torch.zeros(10, dtype=torch.int64))})
    means = feat.mean(0, keepdim=True), vec.mean(0, keepdim=True)
    centroid = pos.mean(0, keepdim=True)
    _, vec = plain_vgconv(net.pools[1], top, (feat, means[0]), (vec, means[1]), (pos[rows], centroid))
    first, second = net.heads[-1].pairs(vec)[0, 0]
    torch.testing.assert_close(net(graph, pos)[0, 0], plain_frames(first, second), rtol=1e-10, atol=1e-10)


@given(
    sizes=st.lists(st.integers(5, 30), min_size=1, max_size=4),
    k=st.integers(3, 12),
    levels=st.sampled_from([(), (8,), (0.5, 0.2), (12, 0.3)]),
    seed=st.integers(0, 1000),
)
def test_global_orientations_are_equivariant_for_any_sizes(sizes, k, levels, seed):
    torch.manual_seed(seed)
    net = GlobalOrientation(level_sizes=levels, k=k).double()
    pos = ball(sum(sizes), seed)
    assert_equivariant(clouds(net, k), pos, "frames", sizes, per="cloud", trials=1, seed=seed)


def test_bad_arguments_are_refused_at_once():
    with pytest.raises(DGLError):
        GlobalOrientation(k=0)
    with pytest.raises(DGLError):
        GlobalOrientation(level_sizes=(4, 16))


def test_gradcheck():
    pos = ball(7)
    graph = dgl_orient.knn_graph(pos, 4)
    net = GlobalOrientation(level_sizes=(4,), k=3, hidden_feats=4, hidden_vectors=3).double()
    assert torch.autograd.gradcheck(lambda pos: net.scales(graph, pos).canonical, pos.requires_grad_())


def test_orientations_repeat_between_samples_of_a_shape_without_the_neighbours_offset():
    """The offset depends on the sample of points; the other input features hardly do."""
    graph, _ = Shapes("test", num_points=600, num_shapes=1, classes=["plane"])[0]
    samples = graph.ndata["pos"].split(300)
    angles = {}
    for neighbour_offset in (True, False):
        torch.manual_seed(0)
        net = GlobalOrientation(
            4, (), 12, num_layers=0, input_features="covariance+normal", neighbour_offset=neighbour_offset
        )
        orient = [net.scales(dgl_orient.knn_graph(pos, 12), pos).point[:, :4] for pos in samples]
        angles[neighbour_offset] = orientation_agreement(samples[0], orient[0], samples[1], orient[1])
    assert angles[False].median() < 0.7 * angles[True].median()
