import torch

from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn.cell_conv import CellConv, cell_graph, equal_bins, shells
from tests.clouds import ball, generator

SIZES, CENTRES = [31, 9, 20], [5, 4, 7]


def neighbourhoods(k):
    pos = ball(sum(SIZES))
    centres = torch.cat([part[:n] for part, n in zip(pos.split(SIZES), CENTRES)])
    graph = bipartite_knn_graph(pos, centres, k, SIZES, CENTRES)
    src, dst = graph.edges(order="eid")
    return graph, src, dst, (pos[src] - centres[dst]).norm(dim=1, keepdim=True)


def test_it_equals_its_formula_cell_by_cell():
    graph, src, dst, distance = neighbourhoods(12)  # of which one point cloud has only nine points
    feat = torch.randn(sum(SIZES), 3, generator=generator(2), dtype=torch.float64)
    edge = torch.cat([distance, distance.square()], 1)
    cell = torch.randint(4, (len(src),), generator=generator(3))
    layer = CellConv(3, 6, 2, 4, lift=(5,)).double().eval()
    lifted, rows = torch.cat([layer.lift(edge), feat[src]], 1), []
    for node in range(sum(CENTRES)):
        for number in range(4):
            inside = lifted[(dst == node) & (cell == number)]
            rows.append(inside.amax(0) if len(inside) else torch.zeros(8, dtype=torch.float64))
    expected = layer.combine(torch.stack(rows).view(sum(CENTRES), -1))
    cells, order = cell_graph(graph, cell, 4)
    torch.testing.assert_close(layer(cells, feat, edge[order]), expected, rtol=1e-12, atol=1e-12)


def test_shells_hold_equal_numbers_in_the_order_of_distance():
    graph, _, dst, distance = neighbourhoods(8)
    shell = shells(graph, distance, 4)
    for node in range(sum(CENTRES)):
        own = dst == node
        assert shell[own].bincount().tolist() == [2, 2, 2, 2]
        sorted_shells = shell[own][distance[own].flatten().argsort()]
        assert torch.equal(sorted_shells, sorted_shells.sort()[0])


def test_bins_have_equal_width():
    graph, _, dst, distance = neighbourhoods(8)
    bins = equal_bins(graph, distance, 5)
    for node in range(sum(CENTRES)):
        own = distance[dst == node].flatten()
        edges = torch.linspace(float(own.min()), float(own.max()), 6, dtype=torch.float64)
        assert torch.equal(bins[dst == node], torch.bucketize(own, edges[1:-1], right=True))
    assert not equal_bins(graph, torch.ones_like(distance), 5).any()
