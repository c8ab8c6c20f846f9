import numpy as np
import pytest

from dgl_orient.data.random_stream import RandomStream
from dgl_orient.data.shapes.classes import SHAPE_CLASSES, sample_object
from dgl_orient.data.shapes.solids import sample_union

pytestmark = pytest.mark.parametrize("name", SHAPE_CLASSES)
COUNT = 15


def _solids(name: str, number: int) -> list:
    return [solid for _, solid in SHAPE_CLASSES[name].build(RandomStream(name, number))]


def test_normals_lead_out_of_the_whole_object_and_no_two_solids_share_a_face(name):
    """The surface of a shared face would count twice."""
    for number in range(COUNT):
        solids = _solids(name, number)
        points, normals, which = sample_union(solids, 1000, RandomStream(name, number, "points"))
        np.testing.assert_allclose((normals**2).sum(0), 1, atol=1e-12)
        below = np.array([solid.inside(points - 1e-5 * normals) for solid in solids])
        above = np.array([solid.inside(points + 1e-5 * normals) for solid in solids])
        # A point may be nearer to an edge, or to where two solids meet, than the step.
        assert below.any(0).mean() > 0.998 and above.any(0).mean() < 0.002
        others = np.arange(len(solids))[:, None] != which
        assert (below & ~above)[others].sum() <= 0.002 * others.sum()


def test_objects_hang_together(name):
    for number in range(COUNT):
        solids = _solids(name, number)
        surfaces = [
            solid.candidates(RandomStream("surface", k), 600).points for k, solid in enumerate(solids)
        ]
        touching = np.array([[solid.inside(points).any() for points in surfaces] for solid in solids])
        reached = np.linalg.matrix_power((touching | touching.T | np.eye(len(solids), dtype=bool)) * 1.0, 16)
        assert (reached > 0).all()


def test_every_object_has_all_parts_of_its_class(name):
    shape_class = SHAPE_CLASSES[name]
    for number in range(COUNT):
        names = [part for part, _ in shape_class.build(RandomStream(name, number))]
        assert set(names) == set(shape_class.parts)
        part = sample_object(
            shape_class, 2000, RandomStream(name, number), RandomStream(name, number, "points")
        )[2]
        assert (np.bincount(part, minlength=len(shape_class.parts)) >= 10).all()


def test_objects_differ_in_proportions(name):
    extents = []
    for number in range(COUNT):
        points = sample_object(SHAPE_CLASSES[name], 300, RandomStream(name, number), RandomStream("points"))[
            0
        ]
        extents.append(np.sort(np.ptp(points, axis=1)))
    slenderness = np.array([extent[0] / extent[2] for extent in extents])
    assert slenderness.max() > 1.5 * slenderness.min()


def test_half_of_all_objects_are_mirrored_and_nothing_else_changes(name):
    """So a class is its own mirror image: being left- or right-handed determines neither class nor part."""
    shape_class = SHAPE_CLASSES[name]
    mirrored = []
    for number in range(40):
        form = RandomStream(name, number)
        form.bernoulli(0.5)  # what sample_object stream first
        parts, solids = zip(*shape_class.build(form))
        points, normals, which = sample_union(solids, 50, RandomStream(name, number, "points"))
        pos, normal, part = sample_object(
            shape_class, 50, RandomStream(name, number), RandomStream(name, number, "points")
        )
        assert [shape_class.parts[k] for k in part] == [parts[k] for k in which]
        flip = np.array([[1.0], [-1.0 if (pos[1] != points[1]).any() else 1.0], [1.0]])
        assert np.array_equal(pos, flip * points) and np.array_equal(normal, flip * normals)
        mirrored.append(flip[1, 0] < 0)
    assert 10 <= sum(mirrored) <= 30
