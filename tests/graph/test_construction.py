import math
import warnings

import dgl
import numpy as np
import pytest
import torch
from dgl import DGLError
from hypothesis import given
from hypothesis import strategies as st

import dgl_orient
from dgl_orient.graph import bipartite_knn_graph, fully_connected_graph
from tests.clouds import ball, duplicates, generator

ALGORITHMS = ["auto", "kd-tree", "dense", "bruteforce"]


def neighbours(graph):
    """The predecessors of every destination, as sets."""
    src, dst = graph.edges()
    result = [set() for _ in range(graph.num_dst_nodes())]
    for i, j in zip(dst.tolist(), src.tolist()):
        assert j not in result[i], "an edge occurs twice"
        result[i].add(j)
    return result


def plain_neighbours(points, sizes, k, queries=None, query_sizes=None):
    """By comparing every pair."""
    own = queries is None
    queries, query_sizes = (points, sizes) if own else (queries, query_sizes)
    result, start, ask = [], 0, 0
    for n, m in zip(sizes, query_sizes):
        for i in range(ask, ask + m):
            others = [j for j in range(start, start + n) if not (own and i == j)]
            others.sort(key=lambda j: float((points[j] - queries[i]).square().sum()))
            result.append(set(others[:k]))
        start, ask = start + n, ask + m
    return result


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", [[60], [20, 20, 20], [31, 1, 0, 8, 20], [3, 57], [0, 60, 0]])
def test_neighbours_are_the_nearest_others_of_the_same_cloud(algorithm, dtype, sizes):
    pos = ball(60, dtype=dtype)
    graph = dgl_orient.knn_graph(pos, 7, sizes, algorithm)
    assert neighbours(graph) == plain_neighbours(pos, sizes, 7)
    assert graph.batch_num_nodes().tolist() == sizes
    assert graph.batch_num_edges().tolist() == [n * min(7, max(n - 1, 0)) for n in sizes]


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=5),
    k=st.integers(1, 12),
    dim=st.sampled_from([1, 2, 3, 12]),
    algorithm=st.sampled_from(ALGORITHMS),
)
def test_neighbours_for_any_sizes_and_dimensions(sizes, k, dim, algorithm):
    pos = torch.randn(sum(sizes), dim, dtype=torch.float64)
    assert neighbours(dgl_orient.knn_graph(pos, k, sizes, algorithm)) == plain_neighbours(pos, sizes, k)


def test_large_clouds_take_a_tree_and_agree_with_the_dense_search():
    pos = ball(600, dtype=torch.float32)
    tree, dense = (dgl_orient.knn_graph(pos, 16, [400, 200], a) for a in ("auto", "dense"))
    assert neighbours(tree) == neighbours(dense)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("pos", [duplicates(), torch.ones(20, 3)])
def test_duplicates_are_neighbours_of_each_other_and_never_of_themselves(algorithm, pos):
    graph = dgl_orient.knn_graph(pos, 6, algorithm=algorithm)
    assert all(len(near) == 6 and i not in near for i, near in enumerate(neighbours(graph)))
    src, dst = graph.edges()
    distance = (pos[src] - pos[dst]).norm(dim=1).view(-1, 6).sort(1)[0]
    everyone = torch.cdist(pos, pos, compute_mode="donot_use_mm_for_euclid_dist").sort(1)[0][:, 1:7]
    torch.testing.assert_close(distance, everyone)


def test_edges_are_in_compressed_form_ordered_by_destination():
    graph = dgl_orient.knn_graph(ball(50), 4, [30, 20])
    assert graph.formats()["created"] == ["csc"]
    assert torch.equal(graph.edges()[1], torch.arange(50).repeat_interleave(4))
    edge = torch.randn(200, 3, dtype=torch.float64)
    torch.testing.assert_close(dgl.ops.copy_e_mean(graph, edge), edge.view(50, 4, 3).mean(1))


def test_small_clouds_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = dgl_orient.knn_graph(ball(5), 20, [3, 2])
    assert neighbours(graph) == [{1, 2}, {0, 2}, {0, 1}, {4}, {3}]


def test_no_points_give_no_edges():
    graph = dgl_orient.knn_graph(torch.empty(0, 3), 5)
    assert graph.num_nodes() == graph.num_edges() == 0
    assert dgl_orient.point_cloud(torch.empty(0, 3)).num_nodes() == 0


@given(
    sizes=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), min_size=1, max_size=4),
    k=st.integers(1, 8),
    algorithm=st.sampled_from(ALGORITHMS),
)
def test_bipartite_neighbours(sizes, k, algorithm):
    src_sizes, dst_sizes = zip(*sizes)
    src, dst = torch.randn(sum(src_sizes), 3), torch.randn(sum(dst_sizes), 3)
    graph = bipartite_knn_graph(src, dst, k, src_sizes, dst_sizes, algorithm)
    assert neighbours(graph) == plain_neighbours(src, src_sizes, k, dst, dst_sizes)


def test_features_far_from_the_origin_keep_their_neighbours():
    feat = torch.randn(64, 32)
    assert neighbours(dgl_orient.knn_graph(feat + 1000, 5)) == neighbours(
        dgl_orient.knn_graph((feat + 1000).double(), 5)
    )


@pytest.mark.parametrize(
    "dtype, scale", [(torch.float32, 1e30), (torch.float32, 1e-30), (torch.float64, 1e200)]
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_neighbours_do_not_depend_on_the_scale(dtype, scale, algorithm):
    pos = ball(200, dtype=dtype)
    scaled = dgl_orient.knn_graph(pos * scale, 5, algorithm=algorithm)
    assert neighbours(scaled) == neighbours(dgl_orient.knn_graph(pos, 5))


def test_integers_of_all_kinds_are_integers():
    expected = neighbours(dgl_orient.knn_graph(ball(9), 3, [4, 5]))
    for sizes in (np.array([4, 5]), torch.tensor([4, 5], dtype=torch.int32), (np.int64(4), 5)):
        assert neighbours(dgl_orient.knn_graph(ball(9), np.int64(3), sizes)) == expected


def test_graphs_with_gradients_and_strides():
    pos = ball(40, dtype=torch.float32)
    strided = torch.stack([pos, pos], 1)[:, 0].requires_grad_()
    for algorithm in ALGORITHMS:
        actual = dgl_orient.knn_graph(strided, 5, algorithm=algorithm)
        assert neighbours(actual) == neighbours(dgl_orient.knn_graph(pos, 5))


def test_point_cloud_carries_positions_and_sizes():
    cloud = dgl_orient.point_cloud(ball(9), torch.tensor([4, 5]))
    parts = dgl.unbatch(cloud)
    assert [part.num_nodes() for part in parts] == [4, 5]
    assert torch.equal(parts[1].ndata["pos"], ball(9)[4:])


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((torch.full((5, 3), math.nan), 2), "5 of 5 points have NaN"),
        ((torch.tensor([[0.0, math.inf, 0.0], [0, 0, 0]]), 1), "1 of 2 points"),
        ((torch.zeros(2, 5, 3), 2), r"got \(2, 5, 3\); flatten"),
        ((torch.zeros(5), 2), "shape"),
        (([[0.0, 0, 0]], 2), "got list"),
        ((torch.zeros(5, 3, dtype=torch.long), 2), r"convert them with \.float"),
        ((torch.zeros(5, 3, dtype=torch.half), 2), "float32 or float64"),
        ((torch.zeros(5, 3), 0), r"\bk\b"),
        ((torch.zeros(5, 3), 2.5), r"\bk\b"),
        ((torch.zeros(5, 3), 2, [2, 2]), "add up to 4, but there are 5"),
        ((torch.zeros(5, 3), 2, [6, -1]), "batch_num_nodes"),
        ((torch.zeros(5, 3), 2, [None]), "batch_num_nodes"),
        ((torch.zeros(5, 3), 2, "ab"), "batch_num_nodes"),
        ((torch.zeros(5, 3), 2, 5), "batch_num_nodes"),
        ((torch.zeros(5, 3), 10**30), r"\bk\b"),
        ((torch.zeros(5, 3), 2, None, "quick"), "one of 'auto', 'dense'"),
        ((torch.zeros(5, 3), 2, None, "bruteforce-sharemem"), "runs on cuda only"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(arguments, sentence):
    with pytest.raises(DGLError, match=sentence) as caught:
        dgl_orient.knn_graph(*arguments)
    assert "\n" not in str(caught.value)


def test_bipartite_clouds_must_match():
    with pytest.raises(DGLError):
        bipartite_knn_graph(ball(5), ball(4).float(), 2)
    with pytest.raises(DGLError):
        bipartite_knn_graph(ball(5), ball(4), 2, [5], [2, 2])


def test_sizes_that_would_overflow_are_refused():
    for sizes in ([2**62] * 4 + [5], [2**63 - 1, 2**63 - 1, 7], [2**63]):
        with pytest.raises(DGLError):
            dgl_orient.point_cloud(ball(5), sizes)


def test_neighbours_among_features_are_the_same_under_autocast():
    centres = torch.randn(10, 64, generator=generator())
    feat = 3 * centres.repeat_interleave(20, 0) + 0.1 * torch.randn(200, 64, generator=generator(1))
    expected = dgl_orient.knn_graph(feat, 10).edges()[0]
    with torch.autocast("cpu", torch.bfloat16):
        actual = dgl_orient.knn_graph(feat, 10).edges()[0]
    assert torch.equal(actual, expected)


def test_fully_connected_graphs_have_all_pairs_of_a_point_cloud():
    graph = fully_connected_graph(torch.tensor([3, 1, 0, 2]))
    edges = {tuple(edge) for edge in torch.stack(graph.edges(), 1).tolist()}
    assert edges == {(i, j) for i in range(3) for j in range(3) if i != j} | {(4, 5), (5, 4)}
    assert graph.batch_num_nodes().tolist() == [3, 1, 0, 2]
    assert graph.batch_num_edges().tolist() == [6, 0, 0, 2]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("sizes", [[30], [3, 27], [2] * 15])
def test_points_that_are_not_finite_are_refused(value, sizes):
    pos = ball(30)
    pos[7, 1] = value
    with pytest.raises(DGLError):
        dgl_orient.knn_graph(pos, 4, sizes)
    for src, dst in ((pos, ball(5)), (ball(5), pos)):
        with pytest.raises(DGLError):
            bipartite_knn_graph(src, dst, 4)
    with pytest.raises(DGLError):
        dgl_orient.point_cloud(pos)
