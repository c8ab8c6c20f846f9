import math

import numpy as np
import pytest
import trimesh

from dgl_orient.data.random_stream import RandomStream
from dgl_orient.data.shapes.solids import Arc, Ellipsoid, Prism, Revolved, sample_union

SQUARE = [(0.5, -0.5), (0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5)]
STAR = [(1.0, 0.0), (0.2, 0.3), (-0.5, 0.8), (-0.4, -0.1), (0.1, -0.9)]
ECCENTRICITY = math.sqrt(1 - 1 / 4)
LATERAL = math.pi * (1 + 0.5) * math.hypot(0.5, 2)


def _area_of_star() -> tuple[float, float]:
    corners = np.array(STAR)
    edges = np.roll(corners, -1, axis=0) - corners
    area = (corners[:, 0] * edges[:, 1] - corners[:, 1] * edges[:, 0]).sum() / 2
    return area, np.hypot(*edges.T).sum()


# Each solid with its area and its volume, as textbooks give them.
SOLIDS = {
    "sphere": (Ellipsoid(2, 2, 2), 16 * math.pi, 32 / 3 * math.pi),
    "spheroid": (
        Ellipsoid(1, 1, 2),
        2 * math.pi * (1 + 2 / ECCENTRICITY * math.asin(ECCENTRICITY)),
        8 / 3 * math.pi,
    ),
    "box": (Prism(SQUARE, 3), 14, 3),
    "pyramid": (Prism(SQUARE, 1.2, 0), 1 + 4 * 1.3 / 2, 0.4),
    "prism": (Prism(STAR, 2), 2 * _area_of_star()[0] + 2 * _area_of_star()[1], 2 * _area_of_star()[0]),
    "cylinder": (Revolved([(0, 0), (1, 0), (1, 3), (0, 3)]), 8 * math.pi, 3 * math.pi),
    "frustum": (
        Revolved([(0, 0), (1, 0), (0.5, 2), (0, 2)]),
        LATERAL + 1.25 * math.pi,
        2 * math.pi / 3 * (1 + 0.5 + 0.25),
    ),
    "cup": (
        Revolved([(0, 0), (1, 0), (1, 2), (0.8, 2), (0.8, 0.5), (0, 0.5)]),
        2 * math.pi + 2 * math.pi * 2 + 2 * math.pi * 0.8 * 1.5,
        math.pi * 2 - math.pi * 0.64 * 1.5,
    ),
    "torus": (Arc(2, 0.5), 4 * math.pi**2, math.pi**2),
    "bow": (Arc(2, 0.5, 0.3), 0.3 * 4 * math.pi**2 + 0.5 * math.pi, 0.3 * math.pi**2),
}


@pytest.fixture(params=SOLIDS)
def case(request):
    solid, area, volume = SOLIDS[request.param]
    placed = solid.rotated("x", 0.1).rotated("z", 0.3).translated(0.3, -0.2, 0.5).rotated("y", -0.2)
    return placed, area, volume


def test_area_is_the_kept_fraction_of_the_bound(case):
    solid, area, _ = case
    kept = solid.candidates(RandomStream("area"), 100_000).kept.mean()
    assert kept * solid.bound == pytest.approx(area, rel=0.01)
    assert solid.bound >= area * (1 - 1e-12)


def test_samples_obey_the_divergence_theorem(case):
    """The mean of F · n over a uniform sample is the integral of div F, here for (x, 0, 0) and so on."""
    solid, area, volume = case
    points, normals, kept = solid.candidates(RandomStream("divergence"), 100_000)
    flux = points[:, None, kept] * normals[None, :, kept]  # (3, 3, n)
    error = 5 * flux.std(-1) / math.sqrt(kept.sum()) + 1e-9
    assert (np.abs(flux.mean(-1) - volume / area * np.eye(3)) < error).all()
    assert (np.abs(normals[:, kept].mean(1)) < 5 / math.sqrt(kept.sum())).all()


def test_normals_lead_from_inside_to_outside(case):
    solid, _, _ = case
    points, normals, _ = solid.candidates(RandomStream("normals"), 5000)
    np.testing.assert_allclose((normals**2).sum(0), 1, atol=1e-12)
    # An edge is nearer than the step for a few points of the sharper solids.
    assert solid.inside(points - 1e-6 * normals).mean() > 0.999
    assert (~solid.inside(points + 1e-6 * normals)).mean() > 0.999


def test_inside_fills_the_volume(case):
    solid, _, volume = case
    points = RandomStream("volume").random(3, 200_000) * 9 - 4.5
    inside = solid.inside(points).mean()
    assert inside * 9**3 == pytest.approx(volume, abs=5 * 9**3 * math.sqrt(inside / 200_000))


def test_an_oblique_tapered_prism_is_the_hull_of_its_corners():
    solid = Prism(SQUARE, 2, 0.4, (0.7, -0.3))
    square = np.array(SQUARE)
    top = np.column_stack([0.4 * square + [0.7, -0.3], np.full(4, 2.0)])
    hull = trimesh.Trimesh(np.vstack([np.column_stack([square, np.zeros(4)]), top])).convex_hull
    assert solid.bound == pytest.approx(hull.area, rel=1e-12)
    points, normals, _ = solid.candidates(RandomStream("oblique"), 2000)
    # Every point lies on a face of the hull, and has that face's normal.
    heights = ((points.T[:, None] - hull.triangles_center) * hull.face_normals).sum(-1)  # (n, faces)
    assert np.abs(heights).min(1).max() < 1e-12
    facing = (normals.T @ hull.face_normals.T)[np.arange(2000), np.abs(heights).argmin(1)]
    assert facing.mean() > 0.999


def test_points_spread_over_faces_in_proportion_to_their_area():
    normals = Prism(SQUARE, 3).candidates(RandomStream("faces"), 140_000).normals
    counts = [((normals[axis] * sign) > 0.5).sum() for axis in range(3) for sign in (-1, 1)]
    expected = np.array([30_000] * 4 + [10_000] * 2)
    assert ((counts - expected) ** 2 / expected).sum() < 20.5  # chi-square of 5 degrees of freedom, 1 of 1000


def test_placement_translates_rotates_and_aims():
    tip = Revolved([(0, 0), (1e-9, 0), (0, 1)])  # a needle along z
    needle = tip.rotated("x", 0.25).translated(5).candidates(RandomStream("needle"), 100).points
    assert (needle[1] <= 0).all() and needle[0] == pytest.approx(5)  # z goes to -y
    aimed = tip.aimed((3, 4, 0)).translated(z=2).candidates(RandomStream("needle"), 100).points
    np.testing.assert_allclose(aimed[0] / 3, aimed[1] / 4, atol=1e-8)
    assert aimed[0].min() >= -1e-8 and aimed[2] == pytest.approx(2)
    bow = Arc(1, 0.1, 0.5).aimed((0, 1, 0), aside=(-1, 0, 0))
    points = bow.candidates(RandomStream("bow"), 1000).points
    assert points[0].max() < 0.11 and np.abs(points[1]).max() <= 0.1 + 1e-12


def test_a_union_has_no_surface_within_and_is_uniform():
    """Two unit spheres at distance 1: each loses a cap of height 1/2, so a quarter of its area."""
    spheres = [Ellipsoid(1, 1, 1), Ellipsoid(1, 1, 1).translated(1)]
    points, normals, which = sample_union(spheres, 40_000, RandomStream("union"))
    assert points.shape == normals.shape == (3, 40_000) and which.shape == (40_000,)
    assert (points[0] < 0.5 + 1e-9)[which == 0].all() and (points[0] > 0.5 - 1e-9)[which == 1].all()
    # On a sphere, equal steps along any axis hold equal areas: here six from -1 to 1/2, and six mirrored.
    counts = np.histogram(points[0], 12, (-1, 2))[0]
    expected = np.full(12, 40_000 / 12)
    assert ((counts - expected) ** 2 / expected).sum() < 31.3  # chi-square of 11 degrees of freedom


def test_the_first_points_of_a_union_are_a_fair_sample_too():
    """A box of area 6 and one of area 54 apart from it: one point in ten, also if few points are wanted."""
    boxes = [Prism(SQUARE, 1), Prism([(3 * x, 3 * y) for x, y in SQUARE], 3).translated(9)]
    small = [(sample_union(boxes, 5, RandomStream("few", n))[2] == 0).sum() for n in range(600)]
    assert sum(small) == pytest.approx(300, abs=5 * math.sqrt(3000 * 0.1 * 0.9))


def test_a_part_wholly_inside_gets_no_points():
    _, _, which = sample_union([Ellipsoid(1, 1, 1), Prism(SQUARE, 0.5)], 3000, RandomStream("hidden"))
    assert (which == 0).all()
