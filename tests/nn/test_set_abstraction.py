import pytest
import torch
from dgl import DGLError

from dgl_orient.graph import ball_query_graph
from dgl_orient.nn import SetAbstraction
from dgl_orient.testing import assert_equivariant
from tests.clouds import UGLY, ball, generator


def features(number, size=5):
    return torch.randn(number, size, dtype=torch.float64, generator=generator(4))


@pytest.mark.parametrize("training", [True, False])
def test_it_equals_its_formula_edge_by_edge(training):
    pos, feat = ball(40), features(40)
    centres = pos[:12]
    layer = SetAbstraction(5, (8, 6)).double().train(training)
    graph = ball_query_graph(pos, centres, 1.2, 9)
    src, dst = graph.edges()
    messages = layer.mlp(torch.cat([pos[src] - centres[dst], feat[src]], 1))
    expected = torch.stack([messages[dst == node].amax(0) for node in range(12)])
    torch.testing.assert_close(layer(graph, feat, (pos, centres)), expected, rtol=1e-12, atol=1e-12)


def test_without_features_and_symmetries():
    layer = SetAbstraction(0, (8,)).double().eval()

    def fn(pos, batch_num_nodes=None):
        graph = ball_query_graph(pos, pos, 1.0, 8, batch_num_nodes, batch_num_nodes)
        return layer(graph, None, (pos, pos))

    kept = ("translation", "permutation", "batching")
    assert_equivariant(fn, ball(60), "invariant", [31, 29], symmetries=kept)
    with pytest.raises(AssertionError, match="rotation changes"):
        assert_equivariant(fn, ball(60), "invariant", [31, 29], symmetries=("rotation",))


@pytest.mark.parametrize("cloud", [name for name in UGLY if name not in ("no points", "one point")])
def test_gradients_on_ugly_clouds_are_finite(cloud):
    pos = UGLY[cloud](torch.float64).requires_grad_()
    layer = SetAbstraction(2, (4, 4)).double()
    feat = features(len(pos), 2).requires_grad_()
    graph = ball_query_graph(pos, pos, 0.5, 8)
    layer(graph, feat, (pos, pos)).square().sum().backward()
    for value in (pos, feat, *layer.parameters()):
        assert torch.isfinite(value.grad).all()


def test_features_of_edges_take_the_place_of_relative_coordinates():
    pos, feat = ball(30), features(30)
    graph = ball_query_graph(pos, pos[:8], 1.2, 9)
    src, dst = graph.edges()
    plain, other = SetAbstraction(5, (8, 6)).double(), SetAbstraction(5, (8, 6), edge_feats=3).double()
    other.load_state_dict(plain.state_dict())
    both = (pos, pos[:8])
    edge = pos[src] - pos[dst]
    assert torch.equal(plain(graph, feat, both), other(graph, feat, both, edge))
    with pytest.raises(DGLError):
        other(graph, feat, both)


def test_nodes_without_neighbours():
    pos = ball(10)
    far = torch.cat([pos, pos[:1] + 100])
    graph = ball_query_graph(pos, far, 1.0)
    layer = SetAbstraction(0, (4,)).double().eval()
    with pytest.raises(DGLError, match="allow_zero_in_degree"):
        layer(graph, None, (pos, far))
    layer.set_allow_zero_in_degree(True)
    assert not layer(graph, None, (pos, far))[-1].any()
    lonely = ball_query_graph(pos, far[-1:], 1.0)
    assert layer(lonely, None, (pos, far[-1:])).tolist() == [[0.0] * 4]


def test_bad_arguments_are_refused():
    for arguments in ((-1, (4,)), (2, ()), (2, (0,))):
        with pytest.raises(DGLError):
            SetAbstraction(*arguments)
    pos = ball(10)
    with pytest.raises(DGLError):
        SetAbstraction(3, (4,)).double()(ball_query_graph(pos, pos, 1.0), features(10, 2), (pos, pos))
