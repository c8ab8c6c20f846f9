"""Vectors that need no learning, and orientations that begin with them."""

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient import GlobalOrientation
from dgl_orient.geometry import random_rotation
from dgl_orient.nn.input_features import input_features, num_input_vectors
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, UGLY, ball, generator, plane, rotation_error

STYLES = {
    "no layers": dict(num_layers=0, level_sizes=()),
    "no layers, a surface": dict(num_layers=0, level_sizes=(), input_features="covariance+normal"),
    "no layers, a level": dict(num_layers=0, level_sizes=(8,)),
    "a layer": dict(num_layers=1, level_sizes=()),
}


def of_clouds(function, k=8):
    return lambda pos, batch_num_nodes=None, **given: function(
        dgl_orient.knn_graph(pos, k, batch_num_nodes), pos, **given
    )


def plain_cloud_vectors(pos, k):
    """The formula for one cloud, a point after another, with the one that stands on the surface."""
    centre = pos - pos.mean(0)
    radius = centre.square().sum(1).mean().sqrt()
    moments = sum(3 * torch.outer(c, c) for c in centre) / len(pos) / radius**2
    towards, standing = [], []
    for point, c in zip(pos, centre / radius):
        nearest = (pos - point).norm(dim=1).argsort()[: k + 1]
        towards.append((pos[nearest[1:]] - point).mean(0))
        covariance = torch.cov(pos[nearest].T)
        inverse = torch.linalg.inv(covariance / covariance.trace() + 0.005 * torch.eye(3, dtype=pos.dtype))
        normal = torch.linalg.matrix_power(inverse / inverse.trace(), 4) @ c
        standing.append(normal / (normal.square().sum() + 0.01**2).sqrt())
    towards = torch.stack(towards)
    towards = towards / towards.square().sum(1).mean().sqrt()
    rows = [torch.stack([c, moments @ c, moments @ moments @ c]) for c in centre / radius]
    return torch.cat([torch.stack(rows), towards.unsqueeze(1), torch.stack(standing).unsqueeze(1)], 1)


@pytest.mark.parametrize("kind", ["covariance", "covariance+normal"])
def test_equals_the_formula(kind):
    pos, number = ball(), num_input_vectors(kind)
    expected = torch.cat([plain_cloud_vectors(part, 6) for part in pos.split(SIZES)])[:, :number]
    feat, vec = input_features(dgl_orient.knn_graph(pos, 6, SIZES), pos, kind)
    torch.testing.assert_close(vec, expected)
    torch.testing.assert_close(feat, expected.norm(dim=2))


def test_the_estimated_normal_points_outwards():
    generator = torch.Generator().manual_seed(0)
    faces = torch.eye(3).repeat(2, 1) * torch.tensor([1.0, 1, 1, -1, -1, -1]).unsqueeze(1)
    normal = faces.repeat_interleave(200, 0)
    pos = torch.rand(1200, 3, generator=generator) * 2 - 1
    pos = torch.where(normal == 0, pos, normal)
    inside = pos.abs().sort(1).values[:, 1] < 0.6  # far from the box's edges
    pos = pos * torch.tensor([1.0, 2.0, 3.0])
    _, vec = input_features(dgl_orient.knn_graph(pos, 12), pos, "covariance+normal")
    assert inside.sum() > 300 and (vec[:, 4] * normal).sum(1)[inside].min() > 0.99


@pytest.mark.parametrize("cloud", ORDINARY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_vectors_turn_with_the_cloud_and_do_not_grow_with_it(cloud, dtype):
    pos = ORDINARY[cloud](dtype)
    vectors = of_clouds(lambda graph, pos: input_features(graph, pos, "covariance+normal"))
    assert_equivariant(vectors, pos, ("invariant", "vectors"), SIZES)
    _, vec = vectors(pos)
    torch.testing.assert_close(vec.square().sum(2).mean(0)[[0, 3]], pos.new_ones(2))


@pytest.mark.parametrize("name", UGLY)
def test_ugly_clouds_have_finite_vectors_and_gradients(name):
    pos = UGLY[name](torch.float64).requires_grad_()
    feat, vec = of_clouds(lambda graph, pos: input_features(graph, pos, "covariance+normal"))(pos)
    assert torch.isfinite(vec).all() and vec.shape == (len(pos), num_input_vectors("covariance+normal"), 3)
    (feat.sum() + vec.square().sum()).backward()
    assert pos.grad is None or torch.isfinite(pos.grad).all()


def test_a_point_without_neighbours_is_drawn_nowhere():
    pos = ball(3)
    graph = dgl_orient.knn_graph(pos, 2)
    graph.remove_edges(graph.in_edges(1, form="eid"))
    _, vec = input_features(graph, pos)
    assert vec[1, 3].eq(0).all() and vec[0, 3].norm() > 0


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_orientations_of_every_scale_turn(style, dtype):
    net = GlobalOrientation(2, k=6, **(dict(input_features="covariance") | STYLES[style])).to(dtype)
    pos = ball(dtype=dtype)
    assert_equivariant(
        lambda *args, **kwargs: of_clouds(net.scales)(*args, **kwargs)[1:5],
        pos,
        ("frames", "invariant", "invariant", "invariant"),
        [35, 25],
    )
    assert_equivariant(of_clouds(net), pos, "frames", SIZES, per="cloud")


@pytest.mark.parametrize("cloud", ORDINARY)
def test_orientations_hold_at_every_scale_and_place(cloud):
    net = GlobalOrientation(2, (), 6, input_features="covariance", num_layers=0).double()
    assert_equivariant(of_clouds(net), ORDINARY[cloud](torch.float64), "frames", SIZES, per="cloud")


@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_ugly_clouds_have_proper_orientations(name, dtype):
    pos = UGLY[name](dtype)
    net = GlobalOrientation(2, (), 6, input_features="covariance", num_layers=0).to(dtype)
    scales = of_clouds(net.scales)(pos)
    assert rotation_error(scales.point) < (1e-12 if dtype == torch.float64 else 1e-6)


@pytest.mark.parametrize("name", ["one point", "all in one place", "line"])
def test_what_geometry_leaves_open_is_told(name):
    net = GlobalOrientation(2, (), 6, input_features="covariance", num_layers=0).double()
    assert of_clouds(net.degenerate)(UGLY[name](torch.float64)).all()
    assert not of_clouds(net.degenerate)(ball()).any()
    assert not of_clouds(net.degenerate)(plane()).any()


def test_covariance_features_make_orientations_repeat_between_samples():
    generator = torch.Generator().manual_seed(0)
    scale = torch.tensor([3.0, 2.0, 1.0])
    box, corner = (torch.rand(number, 3, generator=generator) for number in (4000, 1000))
    shape = torch.cat([box, corner + 1])
    angles = {}
    for kind in ("none", "covariance"):
        net = GlobalOrientation(1, (), 16, num_layers=1, input_features=kind)
        frames = []
        for _ in range(8):
            chosen = torch.randperm(len(shape), generator=generator)[:256]
            frames.append(of_clouds(net, 16)(shape[chosen] * scale)[0, 0])
        turns = torch.stack([frames[0].T @ frame for frame in frames[1:]])
        angles[kind] = ((turns.diagonal(dim1=1, dim2=2).sum(1) - 1) / 2).clamp(-1, 1).acos().median()
    assert angles["covariance"] < 0.5 * angles["none"]


def test_the_callers_features_and_vectors_are_added():
    pos = ball()
    net = GlobalOrientation(1, (), 6, 2, 1, input_features="covariance", num_layers=0).double()
    given = dict(feat=torch.rand(60, 2, dtype=torch.float64), vec=ball(60, 1).unsqueeze(1))
    graph = dgl_orient.knn_graph(pos, 6)
    one, other = net(graph, pos, **given), net(graph, pos, **given | {"vec": ball(60, 2).unsqueeze(1)})
    assert (one - other).abs().max() > 1e-3
    with pytest.raises(DGLError, match=r"vec of shape \(60, 1, 3\), got NoneType"):
        net(graph, pos, given["feat"])


def test_no_layers_and_no_vectors_are_refused():
    with pytest.raises(DGLError, match="input_features or in_vectors"):
        GlobalOrientation(num_layers=0)
    with pytest.raises(DGLError, match="input_features to be one of none"):
        GlobalOrientation(input_features="normal")


def test_gradcheck():
    pos = ball(9).requires_grad_()
    net = GlobalOrientation(
        1, (), 4, hidden_feats=3, hidden_vectors=3, input_features="covariance", num_layers=0
    ).double()
    graph = dgl_orient.knn_graph(pos.detach(), 4)
    assert torch.autograd.gradcheck(lambda x: net(graph, x), pos)


@pytest.mark.parametrize("size", [80, 95])
def test_what_counts_as_rounding_is_the_same_in_any_pose(size):
    """On a fine smooth grid the mean of neighbours is hardly more than rounding leaves."""
    along, across = torch.meshgrid(torch.linspace(0, 1, size), torch.linspace(0, 0.6, size), indexing="ij")
    height = 0.2 * along**2 + 0.1 * (3 * across).sin() + 0.1 * along * across
    pos = torch.stack([along, across, height], -1).reshape(-1, 3)
    graph = dgl_orient.knn_graph(pos, 8)
    turn = random_rotation(generator=generator(1))
    _, vec = input_features(graph, pos, "covariance+normal")
    _, turned = input_features(graph, pos @ turn.T, "covariance+normal")
    missing, turned_missing = (each[:, 3].abs().amax(1) == 0 for each in (vec, turned))
    assert (missing != turned_missing).double().mean() < 0.01
    assert ((turned - vec @ turn.T).abs().amax((1, 2)) > 0.05).double().mean() < 0.01
