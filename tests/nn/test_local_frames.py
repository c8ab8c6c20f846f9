import pytest
import torch

import dgl_orient
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn import LocalReferenceFrame
from dgl_orient.nn.local_frames import cloud_reference_frames
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, UGLY, ball, rotation_error


def frames(pos, batch_num_nodes=None):
    return LocalReferenceFrame()(dgl_orient.knn_graph(pos, 8, batch_num_nodes), pos)


@pytest.mark.parametrize("cloud", [name for name in ORDINARY if name != "plane"])
def test_frames_are_equivariant(cloud):
    tolerance = dict(rtol=1e-6) if cloud == "far" else {}
    assert_equivariant(frames, ORDINARY[cloud](torch.float64), "frames", SIZES, **tolerance)


@pytest.mark.parametrize("cloud", UGLY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_frames_of_ugly_clouds_are_rotations(cloud, dtype):
    pos = UGLY[cloud](dtype)
    orient = frames(pos)
    assert orient.shape == (len(pos), 1, 3, 3) and orient.dtype == dtype
    assert rotation_error(orient) < 1e-5 and torch.equal(orient, frames(pos))


def test_the_frame_equals_its_formula():
    pos = ball(12)
    centre = pos[:1] + 0.1
    orient = LocalReferenceFrame()(bipartite_knn_graph(pos, centre, 12), (pos, centre))[0, 0]
    diff = pos - centre
    distance = diff.norm(dim=1)
    weight = distance.max() - distance
    covariance = (weight.view(-1, 1, 1) * diff.unsqueeze(2) * diff.unsqueeze(1)).sum(0) / weight.sum()
    along = orient.T @ covariance @ orient
    variances = along.diagonal()
    assert (along - torch.diag(variances)).abs().max() < 1e-12
    assert variances[0] > variances[1] > variances[2]
    for axis in (0, 2):
        side = (diff @ orient[:, axis]).sign().sum()
        assert side > 0 or (side == 0 and (weight * (diff @ orient[:, axis])).sum() > 0)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_frames_of_whole_clouds_equal_those_on_the_graph_of_all_pairs(scale):
    pos, centres = scale * ball(sum(SIZES)), scale * ball(10, seed=1)
    sizes, num_centres = torch.tensor(SIZES), torch.tensor([4, 0, 6])
    # As many neighbours as the largest cloud has points are all of them.
    graph = bipartite_knn_graph(pos, centres, max(SIZES), sizes, num_centres)
    expected = LocalReferenceFrame()(graph, (pos, centres))[:, 0]
    assert torch.allclose(cloud_reference_frames(pos, sizes, centres, num_centres), expected, atol=1e-9)


@pytest.mark.parametrize("cloud", UGLY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_frames_of_whole_ugly_clouds_are_rotations(cloud, dtype):
    pos = UGLY[cloud](dtype)
    orient = cloud_reference_frames(pos, torch.tensor([len(pos)]), pos, torch.tensor([len(pos)]))
    assert orient.shape == (len(pos), 3, 3) and orient.dtype == dtype
    assert rotation_error(orient) < 1e-5


def test_frames_are_orientations_for_other_layers():
    pos = ball(60)
    layer = dgl_orient.OrientedEdgeConv(0, 8, batch_norm=False).double()

    def fn(pos, batch_num_nodes=None):
        graph = dgl_orient.knn_graph(pos, 8, batch_num_nodes)
        return layer(graph, None, pos, LocalReferenceFrame()(graph, pos))

    assert_equivariant(fn, pos, "invariant", SIZES)
