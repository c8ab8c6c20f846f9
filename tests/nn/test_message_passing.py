"""Message passing at once and in chunks: values, gradients and second derivatives."""

import pytest
import torch
from torch import nn

import dgl_orient
from dgl_orient.nn import VGConv
from dgl_orient.nn.message_passing import message_passing
from tests.clouds import ball, generator
from tests.nn.test_edge_ops import GRAPHS


class Spread(nn.Module):
    """How far the values of a node's edges are from their mean, and the mean product of two of them."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 4).double()

    def forward(self, edges, values, vec):
        values = self.map(values)
        apart = (values - edges.gather_dst(edges.mean(values))).square()
        return edges.mean(apart), edges.mean_outer(vec, values)


def plain_spread(module, graph, src, dst, vec):
    sources, destinations = graph.edges()
    values = module.map(src[sources] + dst[destinations])
    spread, outer = [], []
    for node in range(graph.num_dst_nodes()):
        mine = values[destinations == node]
        none = len(mine) == 0
        spread.append(mine.new_zeros(4) if none else (mine - mine.mean(0)).square().mean(0))
        products = vec[sources][destinations == node].unsqueeze(2) * mine.unsqueeze(1)
        outer.append(mine.new_zeros(3, 4) if none else products.mean(0))
    return torch.stack(spread), torch.stack(outer, 1)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("chunk", [1, 30, 1 << 14])
@pytest.mark.parametrize("precision", ["highest", "medium"])
def test_in_chunks_and_at_once_equals_the_definition_twice_differentiated(
    name, chunk, precision, monkeypatch
):
    monkeypatch.setattr("dgl_orient.nn.message_passing._CHUNK_EDGES", chunk)
    monkeypatch.setattr("dgl_orient.nn.edge_ops.matmul_is_exact", lambda dtype: precision == "highest")
    graph, module = GRAPHS[name](), Spread()
    module.map.bias.requires_grad_(False)
    src, dst = (torch.randn(23, 4, dtype=torch.float64, generator=generator(n)) for n in (1, 2))
    weight, vec = module.map.weight, ball(23, 3)
    inputs = [x.requires_grad_() for x in (src, dst, vec, weight)]
    mapped = src @ weight  # an input that is computed from another one
    plain = plain_spread(module, graph, mapped, dst, vec)
    actual = message_passing(module, graph, (mapped, vec), (dst, None))
    with torch.no_grad():
        without = message_passing(module, graph, (mapped, vec), (dst, None))
    for a, b, c in zip(plain, actual, without):
        torch.testing.assert_close(b, a)
        torch.testing.assert_close(c, a)
        assert b.requires_grad and not c.requires_grad
    losses = [sum(x.sin().sum() for x in outputs) for outputs in (plain, actual)]
    single = [torch.autograd.grad(loss, inputs, retain_graph=True) for loss in losses]
    first = [torch.autograd.grad(loss, inputs, create_graph=True) for loss in losses]
    second = [
        torch.autograd.grad(sum(x.cos().sum() for x in each), inputs, retain_graph=True) for each in first
    ]
    for pair in (single, first, second):
        for a, b in zip(*pair):
            torch.testing.assert_close(b, a)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("in_sizes", [(5, 3), (0, 0)])
def test_vgconv_in_chunks_equals_vgconv_at_once(layers, in_sizes, monkeypatch):
    pos = ball(60).requires_grad_()
    graph = dgl_orient.knn_graph(pos, 8)
    conv = VGConv(in_sizes, (6, 4), message_layers=layers).double()
    feat = torch.randn(60, in_sizes[0], dtype=torch.float64, requires_grad=True)
    vec = torch.randn(60, in_sizes[1], 3, dtype=torch.float64, requires_grad=True)
    inputs = [x for x in (pos, feat, vec, *conv.parameters()) if x.numel()]
    results = []
    for chunk in (1 << 14, 40):
        monkeypatch.setattr("dgl_orient.nn.message_passing._CHUNK_EDGES", chunk)
        outputs = conv(graph, feat, vec, pos)
        with torch.no_grad():
            inference = conv(graph, feat, vec, pos)
        gradients = torch.autograd.grad(sum(x.pow(3).sum() for x in outputs), inputs)
        results.append((*outputs, *inference, *gradients))
    for a, b in zip(*results):
        torch.testing.assert_close(b, a, rtol=1e-10, atol=1e-10)
