import pytest
import torch
from dgl import DGLError

from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn import FeaturePropagation
from dgl_orient.nn.feature_propagation import interpolate
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball, duplicates, generator


def features(number, size=4):
    return torch.randn(number, size, dtype=torch.float64, generator=generator(4))


def test_interpolation_equals_its_formula():
    coarse, fine, feat = ball(15), ball(40, seed=1), features(15)
    expected = []
    for x in fine:
        square = (coarse - x).square().sum(1)
        near = square.argsort()[:3]
        weight = 1 / square[near]
        expected.append((weight.unsqueeze(1) * feat[near]).sum(0) / weight.sum())
    graph = bipartite_knn_graph(coarse, fine, 3)
    actual = interpolate(graph, feat, (coarse, fine))
    torch.testing.assert_close(actual, torch.stack(expected), rtol=1e-5, atol=1e-5)


def test_a_point_of_the_coarse_cloud_keeps_its_features_at_any_scale():
    feat = features(20)
    for scale in (1e-6, 1.0, 1e6):
        pos = scale * ball(20)
        graph = bipartite_knn_graph(pos, pos, 3)
        torch.testing.assert_close(interpolate(graph, feat, (pos, pos)), feat, rtol=0, atol=1e-5)


def test_constants_stay_and_everything_is_invariant():
    coarse = ball(15)
    graph = bipartite_knn_graph(coarse, ball(30, seed=1), 3)
    ones = torch.ones(15, 1, dtype=torch.float64)
    torch.testing.assert_close(
        interpolate(graph, ones, (coarse, ball(30, seed=1))), torch.ones(30, 1).double()
    )

    def fn(pos, batch_num_nodes=None, *, feat):
        return interpolate(
            bipartite_knn_graph(pos, pos, 4, batch_num_nodes, batch_num_nodes), feat, (pos, pos)
        )

    assert_equivariant(fn, ball(60), "invariant", [31, 29], scalars={"feat": features(60)})


def test_coincident_points_and_single_ones_have_finite_gradients():
    coarse, fine = duplicates(10, 2).requires_grad_(), duplicates(30, 2).requires_grad_()
    feat = features(10).requires_grad_()
    graph = bipartite_knn_graph(coarse, fine, 3)
    interpolate(graph, feat, (coarse, fine)).square().sum().backward()
    assert all(torch.isfinite(each.grad).all() for each in (coarse, fine, feat))
    one = ball(1)
    graph = bipartite_knn_graph(one, fine.detach(), 3)
    assert (interpolate(graph, features(1), (one, fine.detach())) == features(1)).all()


def test_the_layer_concatenates_what_the_point_had_before():
    coarse, fine, skip = ball(15), ball(40, seed=1), features(40, 2)
    layer = FeaturePropagation(4, 2, (8, 6)).double().eval()
    graph = bipartite_knn_graph(coarse, fine, 3)
    near = interpolate(graph, features(15), (coarse, fine))
    expected = layer.mlp(torch.cat([near, skip], 1))
    assert torch.equal(layer(graph, (features(15), skip), (coarse, fine)), expected)
    assert FeaturePropagation(4, 0, (8,)).double()(graph, (features(15), None), (coarse, fine)).shape == (
        40,
        8,
    )
    with pytest.raises(DGLError, match=r"feat\[1\]"):
        layer(graph, (features(15), None), (coarse, fine))
