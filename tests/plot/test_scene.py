"""What is drawn of a cloud: which points have arrows, where these point, and what a network sees."""

import numpy as np
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data import ChargedParticles
from dgl_orient.geometry import random_rotation, to_global
from dgl_orient.models import DGCNN, OrientedDGCNN, OrientedNBody
from dgl_orient.plot import (
    Camera,
    Look,
    arrows,
    by_category,
    by_direction,
    by_value,
    oriented_cloud,
    save,
    trace_orientations,
)
from dgl_orient.plot.colors import palette


def frames(*shape: int) -> torch.Tensor:
    return random_rotation(int(np.prod(shape)), torch.float64).reshape(*shape, 3, 3)


@pytest.mark.parametrize("up", ["x", "y", "z"])
def test_camera_is_a_rotation_that_keeps_the_vertical_upright(up):
    camera = Camera(elevation=25, azimuth=130, up=up)
    np.testing.assert_allclose(camera.matrix @ camera.matrix.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(camera.matrix) == pytest.approx(1)
    place, depth = camera.project(np.eye(3)["xyz".index(up)])
    np.testing.assert_allclose(place, [0, np.cos(np.radians(25))], atol=1e-12)
    assert depth == pytest.approx(np.sin(np.radians(25)))


def test_what_no_camera_can_do_is_told():
    with pytest.raises(DGLError, match="elevation from -90 to 90"):
        Camera(elevation=91)
    with pytest.raises(DGLError, match="vertical axis"):
        Camera(up="w")


def test_arrows_are_axes_of_a_share_of_the_radius():
    pos = torch.tensor([[2.0, 0, 0], [-2, 0, 0], [0, 1, 0], [0, -1, 0]])
    orient = torch.tensor([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]).expand(4, 3, 3)
    cloud = oriented_cloud(pos, orient)
    start, end = arrows(cloud, Look(arrow_length=0.25), axis=1)
    np.testing.assert_allclose(end - start, np.tile([0, 0, 0.5], (4, 1)))  # the second column, of length 1
    np.testing.assert_array_equal(start, pos.numpy()[cloud.rows])


def test_fewer_arrows_are_the_first_of_more():
    pos, orient = torch.rand(200, 3), frames(200)
    few, many = (oriented_cloud(pos, orient, max_arrows=number) for number in (20, 90))
    np.testing.assert_array_equal(few.rows, many.rows[:20])
    assert len(arrows(many, Look(num_arrows=20), 0)[0]) == 20
    # Farthest points are spread: far more than a random sample's nearest pair.
    chosen = pos[torch.as_tensor(few.rows)]
    assert (torch.cdist(chosen, chosen) + 9 * torch.eye(20)).min() > 0.2


def test_turned_back_undoes_the_turn():
    pos, orient, global_orient, turn = torch.rand(50, 3).double(), frames(50, 2, 3), frames(3), frames(1)[0]
    first = oriented_cloud(pos, orient, global_orient)
    other = oriented_cloud(
        to_global(turn, pos), turn @ orient, turn @ global_orient, rows=first.rows, turn=turn
    )
    assert np.abs(other.frames - first.frames).max() > 0.1
    back = other.turned_back()
    for name in ("pos", "frames", "global_orient"):
        np.testing.assert_allclose(getattr(back, name), getattr(first, name), atol=1e-12)


def test_bad_clouds_and_looks_are_told():
    cloud = oriented_cloud(torch.rand(9, 3), frames(9, 2))
    for look, words in ((Look(level=1), "level to be from 0 to 0"), (Look(orientation=2), "from 0 to 1")):
        with pytest.raises(DGLError, match=words):
            arrows(cloud, look, 0)
    with pytest.raises(DGLError, match=r"orientations \(9, 3, 3\)"):
        oriented_cloud(torch.rand(9, 3), frames(8))
    with pytest.raises(DGLError, match="at least one"):
        oriented_cloud(torch.rand(0, 3))
    with pytest.raises(DGLError, match="length"):
        Look(arrow_length=0)
    with pytest.raises(DGLError, match="some of 0, 1 and 2"):
        Look(axes=(7,))
    with pytest.raises(DGLError, match="finite orientations"):
        oriented_cloud(torch.rand(9, 3), torch.nan * frames(9))
    with pytest.raises(DGLError, match="level to be from 0 to 0"):
        save(cloud, "nowhere.html", Look(level=5))
    with pytest.raises(DGLError, match="colour by part here; choose one of distance"):
        cloud.coloring("part")


def test_a_level_has_arrows_at_its_own_points():
    """Elsewhere its orientations are only copies of those of the nearest of its points."""
    model = OrientedDGCNN.light(4, level_sizes=(12,)).eval()
    graph = dgl_orient.point_cloud(torch.randn(80, 3))
    seen = trace_orientations(model, lambda: model(graph))
    assert seen.level_sizes == (80, 12, 0)
    cloud = oriented_cloud(graph.ndata["pos"], seen.orient, seen.global_orient, level_sizes=seen.level_sizes)
    everyone = seen.orient[:, 1].double().numpy().reshape(80, -1)
    own = cloud.frames[:12, 1].reshape(12, -1)
    assert len(np.unique(own.round(6), axis=0)) == 12
    assert np.abs(everyone[:, None] - own[None]).max(2).min(1).max() < 1e-6
    assert [len(arrows(cloud, Look(level=level), 0)[0]) for level in range(3)] == [80, 12, 0]


def test_a_network_answers_as_always_while_it_is_looked_into():
    graph = dgl_orient.point_cloud(torch.rand(60, 3))
    model = OrientedDGCNN.light(5).eval()
    seen = trace_orientations(model, lambda: model(graph))
    torch.testing.assert_close(seen.answer, model(graph).detach())
    torch.testing.assert_close(seen.orient[:, -1], seen.global_orient.expand(60, -1, -1, -1))
    assert not model.orientation_encoder._forward_hooks
    plain = trace_orientations(DGCNN.light(5).eval(), lambda: "answer")
    assert plain == ("answer", None, None, ())


def test_particles_have_orientations_of_one_level():
    model, graph = OrientedNBody(num_orientations=2), ChargedParticles("test", 5, 1, horizon=10)[0]
    seen = trace_orientations(model, lambda: model(graph))
    assert seen.orient.shape == (5, 1, 2, 3, 3) and seen.global_orient is None and seen.level_sizes == (5,)


def test_values_run_from_light_to_dark():
    coloring = by_value("error", np.array([3.0, 1.0, 2.0]))
    light = coloring.rgb.astype(int).sum(1)
    assert light[1] > light[2] > light[0]
    assert coloring.texts == ("3", "1", "2") and coloring.legend[0][0] == "1"
    assert by_value("same", np.ones(3)).rgb.std(0).max() == 0
    with pytest.raises(DGLError, match="finite"):
        by_value("error", np.array([np.nan]))


def test_categories_keep_their_colours_and_directions_show_theirs():
    few, many = (by_category("part", np.array([0, 1]), list(names)) for names in ("ab", "abcdefgh"))
    np.testing.assert_array_equal(few.rgb, many.rgb)
    assert len(set(palette(50))) == 50
    with pytest.raises(DGLError, match="from 0 to 1"):
        by_category("part", np.array([2]), ["a", "b"])
    opposite = by_direction("normal", np.array([[1.0, 0, 0], [-1, 0, 0], [0, 0, 0]])).rgb
    assert opposite.tolist() == [[255, 128, 128], [0, 128, 128], [128, 128, 128]]
