"""Checks of arguments: what they accept, and that they name what they refuse."""

from functools import partial

import numpy as np
import pytest
import torch
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient import _validation as v
from dgl_orient.nn.conv import Aggregation
from tests.clouds import ball


@pytest.mark.parametrize("value, integer", [(3, 3), (np.int64(3), 3), (torch.tensor(3), 3)])
def test_integers_of_python_numpy_and_pytorch_are_integers(value, integer):
    assert v.as_integer(value) == integer and type(v.as_integer(value)) is int


@pytest.mark.parametrize("value", [True, 3.0, "3", None, [3], torch.tensor([3, 4])])
def test_other_values_are_no_integers(value):
    assert v.as_integer(value) is None
    with pytest.raises(DGLError, match="size"):
        v.check_integers(size=value)


@pytest.mark.parametrize(
    "check",
    [
        lambda: v.check_integer("size", 5, 0, 4),
        lambda: v.check_integers(2, size=1),
        lambda: v.check_integer_lists(size=(3, 0)),
        lambda: v.check_integer_lists(2, size=(3,)),
        lambda: v.check_integer_lists(size="ab"),
        lambda: v.check_size_pair("size", (1, 2, 3)),
        lambda: v.check_size_pair("size", (1, -2)),
        lambda: v.check_probability(size=1.0),
        lambda: v.check_fraction("size", 1),
        lambda: v.check_fraction("size", "0.5"),
        *(
            partial(v.check_magnitude, "size", value)
            for value in (-1, float("nan"), float("inf"), 1e31, None)
        ),
        lambda: v.check_choice("size", "median", Aggregation),
        lambda: v.check_shape("size", torch.zeros(2, 0), (2, "C")),
    ],
)
def test_refusals_name_the_argument(check):
    with pytest.raises(DGLError, match=r"\bsize\b"):
        check()


@pytest.mark.parametrize("level_sizes", [(), (256, 64), (0.5, 0.1), (8, 0.1), [4, 4]])
def test_level_sizes_are_numbers_or_fractions_that_do_not_grow(level_sizes):
    v.check_level_sizes(level_sizes)
    with pytest.raises(DGLError, match="level_sizes"):
        v.check_level_sizes((*level_sizes, 10**6, 10**7))


def test_values_are_checked_only_where_data_enter():
    broken = torch.full((4, 3), torch.nan)
    v.check_points(broken, finite=False)
    with pytest.raises(DGLError):
        v.check_points(broken)
    graph = dgl_orient.knn_graph(ball(4, dtype=torch.float32), 2)
    v.check_coordinates(graph, broken)
    assert v.src_dst_positions(broken, graph)[0] is broken
    with pytest.raises(DGLError, match=r'ndata\["pos"\]'):
        v.check_finite(broken)


@pytest.mark.parametrize("name", ["feat", "vec"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_further_features_must_be_finite(name, value):
    feature = torch.ones(5, 2)
    v.check_finite(ball(5).float(), **{name: feature})
    feature[3, 1] = value
    with pytest.raises(DGLError, match=rf'finite numbers in ndata\["{name}"\]'):
        v.check_finite(ball(5).float(), **{name: feature})


def test_squares_of_coordinates_must_be_finite_and_those_of_features_need_not():
    v.check_finite(1e15 * ball(5).float(), feat=torch.full((5, 1), 1e30))
    v.check_finite(torch.empty(0, 3), feat=torch.empty(0, 1))
    with pytest.raises(DGLError):
        v.check_finite(1e25 * ball(5).float())


def test_a_missing_orientation_is_named_with_its_remedy():
    layer = dgl_orient.OrientedEdgeConv(4, 8, num_orientations=2)
    graph = dgl_orient.knn_graph(ball(10), 3)
    with pytest.raises(DGLError, match="OrientedEdgeConv has num_orientations=2.*num_orientations=0"):
        v.check_orient(layer, None, graph)
    with pytest.raises(DGLError):
        v.check_orient(layer, torch.zeros(10, 1, 3, 3), graph)


def test_dtypes_must_be_that_of_the_module():
    v.check_dtype(nn.Linear(2, 2), torch.zeros(3), None)
    with pytest.raises(DGLError):
        v.check_dtype(nn.Linear(2, 2), torch.zeros(3), torch.zeros(3).double())


def test_numbers_within_bounds_are_floats():
    assert v.check_fraction("size", np.float32(0.5)) == v.check_magnitude("size", 0.5) == 0.5
