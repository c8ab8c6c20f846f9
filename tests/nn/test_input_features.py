"""Equivariant input features, and orientations that use them."""

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient import GlobalOrientation
from dgl_orient.geometry import random_rotation
from dgl_orient.nn.input_features import input_features, num_input_vectors
from dgl_orient.robust import subtract_robust_centroid
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, UGLY, ball, generator, plane, rotation_error

STYLES = {
    "no layers": dict(num_layers=0, level_sizes=()),
    "no layers, normals": dict(num_layers=0, level_sizes=(), input_features="covariance+normal"),
    "no layers, a level": dict(num_layers=0, level_sizes=(8,)),
    "a layer": dict(num_layers=1, level_sizes=()),
}


def on_knn_graphs(function, k=8):
    return lambda pos, batch_num_nodes=None, **given: function(
        dgl_orient.knn_graph(pos, k, batch_num_nodes), pos, **given
    )


def plain_input_features(pos, k):
    """The formula for one point cloud, point by point, with the estimated normal."""
    centered = pos - pos.mean(0)
    radius = centered.square().sum(1).mean().sqrt()
    covariances = sum(3 * torch.outer(c, c) for c in centered) / len(pos) / radius**2
    towards, normals = [], []
    for point, c in zip(pos, centered / radius):
        nearest = (pos - point).norm(dim=1).argsort()[: k + 1]
        towards.append((pos[nearest[1:]] - point).mean(0))
        covariance = torch.cov(pos[nearest].T)
        inverse = torch.linalg.inv(covariance / covariance.trace() + 0.005 * torch.eye(3, dtype=pos.dtype))
        normal = torch.linalg.matrix_power(inverse / inverse.trace(), 4) @ c
        normals.append(normal / (normal.square().sum() + 0.01**2).sqrt())
    towards = torch.stack(towards)
    towards = towards / towards.square().sum(1).mean().sqrt()
    rows = [torch.stack([c, covariances @ c, covariances @ covariances @ c]) for c in centered / radius]
    return torch.cat([torch.stack(rows), towards.unsqueeze(1), torch.stack(normals).unsqueeze(1)], 1)


@pytest.mark.parametrize("kind", ["covariance", "covariance+normal"])
def test_equals_the_formula(kind):
    pos, number = ball(), num_input_vectors(kind)
    expected = torch.cat([plain_input_features(part, 6) for part in pos.split(SIZES)])[:, :number]
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
def test_vectors_are_equivariant_and_scale_invariant(cloud, dtype):
    pos = ORDINARY[cloud](dtype)
    vectors = on_knn_graphs(lambda graph, pos: input_features(graph, pos, "covariance+normal"))
    assert_equivariant(vectors, pos, ("invariant", "vectors"), SIZES)
    _, vec = vectors(pos)
    _, weights = subtract_robust_centroid(pos, torch.tensor([len(pos)]))
    squares = (weights * vec.square().sum(2)).sum(0) / weights.sum()
    torch.testing.assert_close(squares[[0, 3]], pos.new_ones(2))


@pytest.mark.parametrize("name", UGLY)
def test_ugly_clouds_have_finite_vectors_and_gradients(name):
    pos = UGLY[name](torch.float64).requires_grad_()
    feat, vec = on_knn_graphs(lambda graph, pos: input_features(graph, pos, "covariance+normal"))(pos)
    assert torch.isfinite(vec).all() and vec.shape == (len(pos), num_input_vectors("covariance+normal"), 3)
    (feat.sum() + vec.square().sum()).backward()
    assert pos.grad is None or torch.isfinite(pos.grad).all()


def test_a_point_without_neighbours_has_no_offset():
    pos = ball(3)
    graph = dgl_orient.knn_graph(pos, 2)
    graph.remove_edges(graph.in_edges(1, form="eid"))
    _, vec = input_features(graph, pos)
    assert vec[1, 3].eq(0).all() and vec[0, 3].norm() > 0


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_orientations_of_every_scale_are_equivariant(style, dtype):
    net = GlobalOrientation(2, k=6, **(dict(input_features="covariance") | STYLES[style])).to(dtype)
    pos = ball(dtype=dtype)
    assert_equivariant(
        lambda *args, **kwargs: on_knn_graphs(net.scales)(*args, **kwargs)[1:6],
        pos,
        ("frames", "invariant", "vectors", "invariant", "invariant"),
        [35, 25],
    )
    assert_equivariant(on_knn_graphs(net), pos, "frames", SIZES, per="cloud")


@pytest.mark.parametrize("cloud", ORDINARY)
def test_orientations_are_equivariant_at_every_size_and_location(cloud):
    net = GlobalOrientation(2, (), 6, input_features="covariance", num_layers=0).double()
    assert_equivariant(on_knn_graphs(net), ORDINARY[cloud](torch.float64), "frames", SIZES, per="cloud")


@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_ugly_clouds_have_proper_orientations(name, dtype):
    pos = UGLY[name](dtype)
    net = GlobalOrientation(2, (), 6, input_features="covariance", num_layers=0).to(dtype)
    scales = on_knn_graphs(net.scales)(pos)
    assert rotation_error(scales.point) < (1e-12 if dtype == torch.float64 else 1e-6)


@pytest.mark.parametrize("name", ["one point", "all in one place", "line"])
def test_degenerate_point_clouds_are_reported(name):
    net = GlobalOrientation(2, (), 6, input_features="covariance", num_layers=0).double()
    assert on_knn_graphs(net.degenerate)(UGLY[name](torch.float64)).all()
    assert not on_knn_graphs(net.degenerate)(ball()).any()
    assert not on_knn_graphs(net.degenerate)(plane()).any()


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
            frames.append(on_knn_graphs(net, 16)(shape[chosen] * scale)[0, 0])
        rotations = torch.stack([frames[0].T @ frame for frame in frames[1:]])
        angles[kind] = ((rotations.diagonal(dim1=1, dim2=2).sum(1) - 1) / 2).clamp(-1, 1).acos().median()
    assert angles["covariance"] < 0.5 * angles["none"]


def test_further_features_and_vectors_are_inputs():
    pos = ball()
    net = GlobalOrientation(1, (), 6, 2, 1, input_features="covariance", num_layers=0).double()
    given = dict(feat=torch.rand(60, 2, dtype=torch.float64), vec=ball(60, 1).unsqueeze(1))
    graph = dgl_orient.knn_graph(pos, 6)
    one, other = net(graph, pos, **given), net(graph, pos, **given | {"vec": ball(60, 2).unsqueeze(1)})
    assert (one - other).abs().max() > 1e-3
    with pytest.raises(DGLError):
        net(graph, pos, given["feat"])


def test_no_layers_and_no_vectors_are_refused():
    with pytest.raises(DGLError, match="input_features or in_vectors"):
        GlobalOrientation(num_layers=0)
    with pytest.raises(DGLError):
        GlobalOrientation(input_features="normal")


def test_gradcheck():
    pos = ball(9).requires_grad_()
    net = GlobalOrientation(
        1, (), 4, hidden_feats=3, hidden_vectors=3, input_features="covariance", num_layers=0
    ).double()
    graph = dgl_orient.knn_graph(pos.detach(), 4)
    assert torch.autograd.gradcheck(lambda x: net(graph, x), pos)


@pytest.mark.parametrize("size", [80, 95])
def test_the_rounding_threshold_is_rotation_invariant(size):
    """On a fine smooth grid the mean of neighbours is hardly more than rounding leaves."""
    along, across = torch.meshgrid(torch.linspace(0, 1, size), torch.linspace(0, 0.6, size), indexing="ij")
    height = 0.2 * along**2 + 0.1 * (3 * across).sin() + 0.1 * along * across
    pos = torch.stack([along, across, height], -1).reshape(-1, 3)
    graph = dgl_orient.knn_graph(pos, 8)
    rotation = random_rotation(generator=generator(1))
    _, vec = input_features(graph, pos, "covariance+normal")
    _, rotated = input_features(graph, pos @ rotation.T, "covariance+normal")
    missing, rotated_missing = (each[:, 3].abs().amax(1) == 0 for each in (vec, rotated))
    assert (missing != rotated_missing).double().mean() < 0.01
    assert ((rotated - vec @ rotation.T).abs().amax((1, 2)) > 0.05).double().mean() < 0.01
