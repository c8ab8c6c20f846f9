import dgl
import pytest
import torch
from torch import nn

import dgl_orient
from dgl_orient.nn import VGConv
from dgl_orient.nn.neighbourhoods import over_neighbourhoods
from tests.clouds import ball, generator

GRAPHS = {
    "regular": lambda: dgl_orient.knn_graph(ball(23), 5),
    "uneven": lambda: dgl_orient.knn_graph(ball(23), 5, [20, 3]),
    "shuffled": lambda: dgl.knn_graph(ball(23), 5, algorithm="kd-tree").reverse(),
    "lonely": lambda: dgl.graph(([0, 1, 2], [1, 0, 1]), num_nodes=23),
}


class Spread(nn.Module):
    """How far the values of a node's edges are from their mean, and the mean product of two of them."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 4).double()

    def forward(self, edges, values, vec):
        values = self.map(values)
        apart = (values - edges.of_receivers(edges.mean(values))).square()
        return edges.mean(apart), edges.mean_outer(vec, values)


def plain_spread(module, graph, sender, receiver, vec):
    src, dst = graph.edges()
    values = module.map(sender[src] + receiver[dst])
    spread, outer = [], []
    for node in range(graph.num_dst_nodes()):
        mine = values[dst == node]
        none = len(mine) == 0
        spread.append(mine.new_zeros(4) if none else (mine - mine.mean(0)).square().mean(0))
        products = vec[src][dst == node].unsqueeze(2) * mine.unsqueeze(1)
        outer.append(mine.new_zeros(3, 4) if none else products.mean(0))
    return torch.stack(spread), torch.stack(outer, 1)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("together", [1, 30, 1 << 14])
@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_parts_and_wholes_equal_the_definition(name, together, precision, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.neighbourhoods._TOGETHER", together)
    monkeypatch.setattr("dgl_orient.nn.neighbourhoods.matmul_is_exact", lambda dtype: precision == "highest")
    graph, module = GRAPHS[name](), Spread()
    sender, receiver = (torch.randn(23, 4, dtype=torch.float64, generator=generator(n)) for n in (1, 2))
    vec = ball(23, 3)
    plain = plain_spread(module, graph, sender, receiver, vec)
    with_gradient = over_neighbourhoods(module, graph, (sender, vec), (receiver, None))
    with torch.no_grad():
        without = over_neighbourhoods(module, graph, (sender, vec), (receiver, None))
    for a, b, c in zip(plain, with_gradient, without):
        torch.testing.assert_close(b, a)
        torch.testing.assert_close(c, a)
        assert b.requires_grad and not c.requires_grad


@pytest.mark.parametrize("layers", [1, 2])
def test_inference_in_parts_equals_the_whole_layer(layers, monkeypatch):
    monkeypatch.setattr("dgl_orient.nn.neighbourhoods._TOGETHER", 40)
    pos = ball(60)
    graph = dgl_orient.knn_graph(pos, 8)
    conv = VGConv(5, 6, 3, 4, message_layers=layers).double()
    feat = torch.randn(60, 5, dtype=torch.float64)
    vec = torch.randn(60, 3, 3, dtype=torch.float64)
    whole = conv(graph, feat, vec, pos)
    with torch.no_grad():
        for a, b in zip(conv(graph, feat, vec, pos), whole):
            torch.testing.assert_close(a, b)
