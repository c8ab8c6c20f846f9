"""Rotation, scale, translation, noise and normalisation."""

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data.transforms import (
    AddUp,
    NormalizeScale,
    RandomJitter,
    RandomRotate,
    RandomScale,
    RandomTranslate,
)
from tests.clouds import SIZES, ball

from .batches import TYPES, by_cloud, clouds, fields


def solved_rotation(before, after):
    """The matrix that maps rows to rows, by least squares."""
    return torch.linalg.lstsq(before.double(), after.double()).solution.T


@pytest.mark.parametrize("mode", ["so3", "x", "y", "z"])
@pytest.mark.parametrize("dtype", TYPES)
def test_rotation_applies_to_points_and_vectors_and_differs_between_clouds(mode, dtype):
    graph = clouds(SIZES, dtype)
    after = RandomRotate(mode, vectors=["own", "many"])(graph)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    matrices = []
    for i in range(len(SIZES)):
        matrix = solved_rotation(by_cloud(graph, "vel")[i], by_cloud(after, "vel")[i])
        matrices.append(matrix)
        assert torch.allclose(matrix @ matrix.T, torch.eye(3).double(), atol=tolerance)
        assert torch.det(matrix) > 0
        for name in ("pos", "target_pos", "normal", "vel", "target_vel", "own", "many"):
            expected = by_cloud(graph, name)[i].double() @ matrix.T
            assert torch.allclose(by_cloud(after, name)[i].double(), expected, atol=10 * tolerance)
        if mode != "so3":
            axis = "xyz".index(mode)
            assert torch.allclose(matrix[axis], torch.eye(3).double()[axis], atol=tolerance)
    assert not torch.allclose(matrices[0], matrices[1], atol=0.01)
    for name in ("force", "part", "charge"):
        assert torch.equal(after.ndata[name], graph.ndata[name])


def test_a_single_cloud_is_rotated_with_all_its_vectors():
    graph = clouds()
    after = RandomRotate("so3", vectors="many")(graph)
    matrix = solved_rotation(graph.ndata["vel"], after.ndata["vel"])
    for name in ("pos", "many"):
        expected = graph.ndata[name].double() @ matrix.T
        assert torch.allclose(after.ndata[name].double(), expected, atol=1e-4)


def test_angles_cover_the_circle_and_rotations_so3_evenly():
    point = dgl_orient.point_cloud(torch.tensor([[1.0, 0, 0]]).repeat(4000, 1), [1] * 4000)
    rotated = RandomRotate("z")(point).ndata["pos"]
    angles = torch.atan2(rotated[:, 1], rotated[:, 0])
    assert torch.histc(angles, 8, -torch.pi, torch.pi).sub(500).abs().max() < 100
    # On a sphere every coordinate is uniform.
    rotated = RandomRotate("so3")(point).ndata["pos"]
    for axis in range(3):
        assert torch.histc(rotated[:, axis], 8, -1, 1).sub(500).abs().max() < 100


def test_no_rotation_leaves_all_as_it_is():
    graph = clouds()
    after = RandomRotate("none")(graph)
    assert after is not graph
    assert all(torch.equal(value, graph.ndata[name]) for name, value in fields(after).items())


def test_scaling_stretches_positions_and_velocities_and_leaves_normals():
    graph = clouds(SIZES, torch.float64)
    after = RandomScale(0.5, 2, vectors=["own", "many"])(graph)
    factors = [b[0, 0] / a[0, 0] for a, b in zip(by_cloud(graph, "pos"), by_cloud(after, "pos"))]
    assert all(0.5 <= factor <= 2 for factor in factors) and len(set(factors)) == 3
    for name in ("pos", "target_pos", "vel", "target_vel", "own", "many"):
        for a, b, factor in zip(by_cloud(graph, name), by_cloud(after, name), factors):
            torch.testing.assert_close(b, factor * a)
    for name in ("normal", "force"):
        assert torch.equal(after.ndata[name], graph.ndata[name])


def test_normals_stay_perpendicular_to_a_stretched_plane():
    flat = torch.randn(50, 2).double()
    basis = torch.tensor([[1.0, 0.5, -0.3], [0.2, 1.0, 0.7]]).double()
    graph = dgl_orient.point_cloud(flat @ basis)
    graph.ndata["normal"] = torch.nn.functional.normalize(torch.linalg.cross(*basis), dim=0).repeat(50, 1)
    graph.ndata["normal"][0] = 0
    after = RandomScale(0.2, 3, anisotropic=True)(graph)
    factors = (after.ndata["pos"] / graph.ndata["pos"])[0]
    assert factors.max() / factors.min() > 1.1
    assert (after.ndata["pos"] @ after.ndata["normal"][1]).abs().max() < 1e-12
    assert torch.equal(after.ndata["normal"][0], torch.zeros(3).double())


def test_translation_applies_to_points_and_their_targets_only():
    graph = clouds(SIZES, torch.float64)
    after = RandomTranslate(0.3)(graph)
    moved = [b - a for a, b in zip(by_cloud(graph, "pos"), by_cloud(after, "pos"))]
    for each, a, b in zip(moved, by_cloud(graph, "target_pos"), by_cloud(after, "target_pos")):
        assert torch.allclose(each, each[0].expand_as(each)) and each.abs().max() <= 0.3
        torch.testing.assert_close(b - a, each)
    assert not torch.allclose(moved[0][0], moved[1][0])
    for name in ("normal", "vel", "target_vel", "own"):
        assert torch.equal(after.ndata[name], graph.ndata[name])


def test_jitter_is_gaussian_and_clipped_and_changes_nothing_else():
    graph = dgl_orient.point_cloud(torch.zeros(20000, 3))
    graph.ndata["target_pos"] = torch.zeros(20000, 3)
    after = RandomJitter(0.01, 0.02)(graph)
    noise = after.ndata["pos"]
    assert noise.abs().max() == pytest.approx(0.02)
    # Two standard deviations hold 95.45 % of a normal variable.
    assert (noise.abs() < 0.02).float().mean() == pytest.approx(0.9545, abs=0.005)
    assert noise.mean().abs() < 2e-4
    assert not after.ndata["target_pos"].any()


def test_jitter_of_a_pair_has_a_deviation_between_for_each_cloud():
    graph = dgl_orient.point_cloud(torch.zeros(40000, 3), [1000] * 40)
    deviations = [noise.std() for noise in RandomJitter((0.01, 0.03), 1.0)(graph).ndata["pos"].split(1000)]
    assert 0.009 < min(deviations) < 0.014 and 0.026 < max(deviations) < 0.032


def test_the_upward_direction_rotates_with_the_cloud_and_keeps_its_length():
    graph = AddUp("y")(dgl_orient.point_cloud(torch.rand(20, 3, dtype=torch.float64), [8, 12]))
    height = graph.ndata["pos"][:, 1]
    for change in (RandomRotate("so3"), NormalizeScale(), RandomScale(0.5, 2, anisotropic=True)):
        after = change(graph)
        up = after.ndata["up"]
        torch.testing.assert_close(up.norm(dim=1), torch.ones(20).double())
        # Heights along it differ as before, up to scale.
        found = (after.ndata["pos"] * up).sum(1)
        for one, other in zip(found.split([8, 12]), height.split([8, 12])):
            one, other = one - one.mean(), other - other.mean()
            torch.testing.assert_close(one / one.norm(), other / other.norm())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", [(60,), SIZES], ids=str)
def test_normalized_clouds_have_centroid_0_and_radius_1(dtype, sizes):
    graph = clouds(sizes, dtype)
    after = NormalizeScale(vectors=["own"])(graph)
    pairs = zip(*(by_cloud(g, name) for name in ("pos", "target_pos", "vel", "own") for g in (graph, after)))
    for pos, pos_after, target, target_after, vel, vel_after, own, own_after in pairs:
        assert pos_after.mean(0).abs().max() < 1e-5
        assert pos_after.norm(dim=1).max() == pytest.approx(1, abs=1e-6)
        centroid = pos.double().mean(0)
        radius = (pos.double() - centroid).norm(dim=1).max()
        expected = ((target.double() - centroid) / radius).to(dtype)
        torch.testing.assert_close(target_after, expected, rtol=1e-5, atol=1e-5)
        for a, b in ((vel, vel_after), (own, own_after)):
            torch.testing.assert_close(b, (a.double() / radius).to(dtype))
    assert torch.equal(after.ndata["normal"], graph.ndata["normal"])


def test_normalization_of_degenerate_and_distant_clouds():
    same = NormalizeScale()(dgl_orient.point_cloud(torch.full((5, 3), 7.0)))
    assert torch.equal(same.ndata["pos"], torch.zeros(5, 3))
    for scale in (1e-30, 1e30):
        pos = NormalizeScale()(dgl_orient.point_cloud(scale * ball(30, dtype=torch.float32))).ndata["pos"]
        assert pos.norm(dim=1).max() == pytest.approx(1)
    far = NormalizeScale()(dgl_orient.point_cloud(1e6 + ball(30)))
    torch.testing.assert_close(
        far.ndata["pos"], NormalizeScale()(dgl_orient.point_cloud(ball(30))).ndata["pos"]
    )


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e160])
def test_normalization_at_any_scale(scale):
    pos = NormalizeScale()(dgl_orient.point_cloud(scale * ball(30), [10, 20])).ndata["pos"]
    for part in pos.split([10, 20]):
        torch.testing.assert_close(part.norm(dim=1).max(), torch.tensor(1.0, dtype=torch.float64))


def test_what_cannot_be_computed_is_refused():
    with pytest.raises(DGLError):
        NormalizeScale()(dgl_orient.point_cloud(1e305 * ball(30)))
    for make in (
        lambda: RandomScale(1e-39, 1.0),
        lambda: RandomScale(1.0, 1e39),
        lambda: RandomTranslate(1e39),
        lambda: RandomJitter(1e39),
    ):
        with pytest.raises(DGLError):
            make()
    cloud = dgl_orient.point_cloud(ball(2))
    cloud.ndata["vel"] = torch.ones(2, 3, dtype=torch.int64)
    with pytest.raises(DGLError, match=r"floating-point numbers in ndata\['vel'\]"):
        RandomRotate("x")(cloud)
