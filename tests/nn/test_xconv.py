"""X-Conv against its formula, neighbour by neighbour."""

import torch
from torch.nn.functional import elu

from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn.xconv import XConv, spread_neighbours
from tests.clouds import ball, generator


def neighbour_by_neighbour(conv, feat, src, dst, dilation):
    """For one destination at a time."""

    def norm(layer, value):
        return (value - layer.running_mean) / (layer.running_var + layer.eps).sqrt()

    results = []
    for centre in dst:
        near = (src - centre).norm(dim=1).argsort()[: conv.k * dilation : dilation]
        local = src[near] - centre
        lifted = local
        for linear, batch_norm in ((conv.lift[0], conv.lift[1]), (conv.lift[4], conv.lift[5])):
            lifted = elu(norm(batch_norm, lifted @ linear.weight.T))
        first = conv.transform.first
        matrix = elu(norm(first[1], first[0].weight @ local.flatten())).view(conv.k, conv.k)
        for number, weight in enumerate(conv.transform.weights):
            # Column m of the matrix makes row m of the next, by filters of its own.
            rows = torch.stack([matrix[:, m] @ weight[m] for m in range(conv.k)])
            matrix = norm(conv.transform.norms[number], rows.flatten()).view(conv.k, conv.k)
            matrix = elu(matrix) if number == 0 else matrix
        mixed = matrix @ torch.cat([lifted, feat[near]], 1)  # (k, C)
        depthwise = torch.stack(
            [mixed[:, c] @ conv.depthwise[c, :, m] for c in range(mixed.shape[1]) for m in range(2)]
        )
        linear, batch_norm = conv.pointwise[0], conv.pointwise[1]
        results.append(elu(norm(batch_norm, linear.weight @ depthwise)))
    return torch.stack(results)


def test_xconv_equals_its_formula_neighbour_by_neighbour():
    src, dst = ball(40), ball(7, seed=1)
    feat = torch.randn(40, 5, dtype=torch.float64, generator=generator())
    conv = XConv(5, 6, k=4, lift_feats=3, depth_multiplier=2).double().eval()
    for module in conv.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_(generator=generator(2))
            module.running_var.uniform_(0.5, 2, generator=generator(3))
    graph = bipartite_knn_graph(src, dst, k=12)
    expected = neighbour_by_neighbour(conv, feat, src, dst, dilation=3)
    assert torch.allclose(conv(graph, feat, (src, dst)), expected, rtol=1e-11, atol=1e-12)


def test_neighbours_are_ordered_by_distance_in_batches_of_small_clouds():
    pos, sizes = ball(14), [3, 0, 11]
    graph = bipartite_knn_graph(pos, pos, 8, sizes, sizes)
    rows = spread_neighbours(graph, (pos, pos), 4)
    distance = (pos[rows] - pos.unsqueeze(1)).norm(dim=2)
    assert torch.equal(rows[:, 0], torch.arange(14)) and bool((distance.diff(dim=1) >= 0).all())
    assert all(set(row) == {0, 1, 2} for row in rows[:3].tolist())  # the nearest one comes twice
    for row, point in zip(rows[3:], pos[3:]):
        nearest = (pos[3:] - point).norm(dim=1).argsort()[:8:2] + 3
        assert torch.equal(row, nearest)


def test_without_destinations_there_are_no_neighbours():
    empty = torch.empty(0, 3)
    assert spread_neighbours(bipartite_knn_graph(empty, empty, 4), (empty, empty), 4).shape == (0, 4)
