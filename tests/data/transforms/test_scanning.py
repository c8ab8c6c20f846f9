"""Tests of the transforms that leave what a scan sees."""

import pytest
import torch
from dgl import DGLError

from dgl_orient.data.transforms import RandomDensity, RandomView
from dgl_orient.data.transforms.scanning import thinned_rows, visible_rows
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import point_cloud
from tests.clouds import UGLY, generator


def _sphere(n=1500):
    return torch.nn.functional.normalize(torch.randn(n, 3, generator=generator()), dim=1)


def test_of_a_sphere_the_cap_on_the_side_of_the_viewer_is_seen():
    pos, viewer = _sphere(), torch.randn(3, dtype=torch.float64, generator=generator(1))
    viewer = 5 * viewer / viewer.norm()
    seen = torch.zeros(len(pos), dtype=torch.bool)
    seen[visible_rows(pos, 5.0, generator(1))] = True
    height = pos.double() @ viewer / 5
    # A tangent from the viewer touches the sphere at the height 1/5.
    assert seen[height > 0.35].float().mean() > 0.95 and seen[height < 0.0].float().mean() < 0.05


def test_a_plate_hides_what_is_behind_it():
    flat = torch.rand(900, 2, generator=generator()) - 0.5
    plate = torch.cat([flat[:800], torch.zeros(800, 1)], 1)
    behind = torch.cat([0.3 * flat[800:], torch.full((100, 1), -0.3)], 1)
    pos = torch.cat([plate, behind])
    for seed in range(8):
        rows = visible_rows(pos, 6.0, generator(seed))
        direction = torch.randn(3, dtype=torch.float64, generator=generator(seed))
        if direction[2] / direction.norm() > 0.8:
            assert (rows >= 800).sum() < 30 and (rows < 800).sum() > 700


def test_density_decreases_to_one_side():
    pos = _sphere(4000)
    direction = torch.randn(3, dtype=torch.float64, generator=generator(2))
    along = pos.double() @ direction / direction.norm()
    kept = torch.zeros(len(pos), dtype=torch.bool)
    kept[thinned_rows(pos, 2.0, generator(2))] = True
    for low, high in ((-1.0, -0.8), (-0.1, 0.1), (0.8, 1.0)):
        expected = torch.exp(torch.tensor(-2.0 * ((low + high) / 2 + 1) / 2))
        assert abs(kept[(along > low) & (along < high)].float().mean() - expected) < 0.07


@pytest.mark.parametrize("name", UGLY)
@pytest.mark.parametrize("transform", [RandomView(), RandomDensity(8.0)])
def test_ugly_clouds_keep_points(name, transform):
    cloud = point_cloud(UGLY[name](torch.float64))
    left = transform(cloud).num_nodes()
    assert min(1, cloud.num_nodes()) <= left <= cloud.num_nodes()


@pytest.mark.parametrize("transform", [RandomView(0.5), RandomDensity(3.0)])
def test_clouds_of_a_batch_are_changed_independently_with_their_attributes(transform):
    torch.manual_seed(0)
    pos = torch.cat([_sphere(300) for _ in range(6)])
    cloud = point_cloud(pos, [300] * 6)
    cloud.ndata["normal"] = 2 * pos
    changed = transform(cloud)
    assert len(set(changed.batch_num_nodes().tolist())) > 1 and cloud.num_nodes() == 1800
    assert torch.equal(changed.ndata["normal"], 2 * changed.ndata["pos"])


def test_what_is_seen_rotates_with_cloud_and_viewer():
    pos, rotation = _sphere(400).double(), random_rotation(dtype=torch.float64, generator=generator(3))
    # The distance of the viewer decides how much is seen, not the scale or the place of the cloud.
    assert torch.equal(visible_rows(pos, 4.0, generator(1)), visible_rows(7 * pos + 3, 4.0, generator(1)))
    near, far = (len(visible_rows(pos @ rotation.T, distance, generator(1))) for distance in (1.5, 50.0))
    assert near < far


@pytest.mark.parametrize("arguments", [(1.5,), (-0.1,), (0.5, 0.9)])
def test_impossible_views_are_refused(arguments):
    with pytest.raises(DGLError):
        RandomView(*arguments)
