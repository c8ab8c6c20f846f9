import pytest
import torch
from dgl import DGLError

from dgl_orient.graph import ball_query_graph, bipartite_knn_graph
from dgl_orient.graph.topology import neighbour_matrix
from tests.clouds import ball, duplicates, generator

SIZES, CENTRES = [31, 9, 20], [5, 4, 7]


def centres_of(pos):
    return torch.cat([part[:n] for part, n in zip(pos.split(SIZES), CENTRES)])


def predecessors(graph):
    src, dst = graph.edges()
    return [set(src[dst == node].tolist()) for node in range(graph.num_nodes("dst"))]


def slow(pos, centres, radius, most):
    """All pairs, cloud by cloud."""
    result, first = [], 0
    for points, own in zip(pos.split(SIZES), centres.split(CENTRES)):
        for centre in own:
            distance = (points - centre).norm(dim=1)
            nearest = distance.argsort()[:most]
            result.append({first + int(j) for j in nearest if distance[j] <= radius})
        first += len(points)
    return result


@pytest.mark.parametrize("radius, most", [(0.7, 32), (1.5, 4), (1e3, 100), (1e-3, 3)])
def test_neighbours_are_the_nearest_within_the_radius(radius, most):
    pos = ball(sum(SIZES))
    centres = centres_of(pos)
    graph = ball_query_graph(pos, centres, radius, most, SIZES, CENTRES)
    assert predecessors(graph) == slow(pos, centres, radius, most)
    dst = graph.edges()[1]
    assert torch.equal(dst, dst.sort()[0])
    if radius == 1e3:  # nothing but the number limits: the kNN graph
        near = bipartite_knn_graph(pos, centres, most, SIZES, CENTRES)
        assert predecessors(graph) == predecessors(near)


def test_a_permutation_of_the_points_permutes_the_neighbours():
    pos = ball(60)
    order = torch.randperm(60, generator=generator(3))
    graph, permuted = (ball_query_graph(x, pos[:10], 1.2, 6) for x in (pos, pos[order]))
    assert predecessors(graph) == [{int(order[j]) for j in each} for each in predecessors(permuted)]


def test_destinations_without_sources_and_empty_clouds():
    pos = ball(20)
    far = torch.cat([pos[:1], pos[:1] + 100])
    assert ball_query_graph(pos, far, 0.5).in_degrees().tolist()[1] == 0
    empty = ball_query_graph(pos, pos[:3], 1.0, 4, [0, 20], [0, 3])
    assert empty.num_nodes("dst") == 3 and int(empty.in_degrees().min()) >= 1
    none = ball_query_graph(pos[:0], pos[:0], 1.0)
    assert none.num_edges() == none.num_nodes("dst") == 0


def test_coincident_points_are_all_neighbours_of_each_other():
    pos = duplicates(40, places=4)
    graph = ball_query_graph(pos, pos, 1e-6, 40)
    assert predecessors(graph) == [set((pos == x).all(1).nonzero().flatten().tolist()) for x in pos]


def test_a_full_ball_gives_a_regular_graph():
    pos = ball(30)
    assert neighbour_matrix(ball_query_graph(pos, pos, 100.0, 5)).shape == (30, 5)
    assert neighbour_matrix(ball_query_graph(pos, pos, 0.8, 5)) is None


@pytest.mark.parametrize("radius", [0, -1.0, float("inf"), float("nan"), "1", True])
def test_bad_radii_are_refused(radius):
    with pytest.raises(DGLError, match="radius"):
        ball_query_graph(ball(9), ball(3), radius)
