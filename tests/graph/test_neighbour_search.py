import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dgl_orient.graph.neighbour_search import _dense, _fastest, _Search, _smallest
from tests.clouds import ball


@pytest.mark.parametrize(
    "sizes, algorithm",
    [([400, 200], "kd-tree"), ([100, 100], "dense"), ([600, *[20] * 30], "kd-tree")],
)
def test_a_tree_is_taken_where_most_points_are_in_large_clouds(sizes, algorithm):
    pos, sizes = ball(sum(sizes)), torch.tensor(sizes, dtype=torch.int64)
    search = _Search(pos, sizes, pos, sizes, exclude_self=True)
    assert _fastest(search) == algorithm


@given(n=st.sampled_from([64, 120, 240, 256, 250]), k=st.integers(1, 30), ties=st.booleans())
def test_the_smallest_numbers_of_rows(n, k, ties):
    numbers = torch.randint(9, (2, 3, n)).double() if ties else torch.randn(2, 3, n)
    actual = _smallest(numbers, k)
    assert all(len(row.unique()) == k for row in actual.flatten(0, 1))
    torch.testing.assert_close(numbers.gather(2, actual).sort(2)[0], numbers.sort(2)[0][:, :, :k])


def test_dense_search_in_parts_equals_the_whole(monkeypatch):
    pos, sizes = ball(90), torch.tensor([30, 30, 30])
    search = _Search(pos, sizes, pos, sizes, True)
    whole = _dense(search, 5).sort(1)[0]
    monkeypatch.setattr("dgl_orient.graph.neighbour_search._DENSE_PAIRS", 100)
    assert torch.equal(_dense(search, 5).sort(1)[0], whole)
