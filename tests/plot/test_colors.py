import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.plot import by_category, by_direction, by_value
from dgl_orient.plot.colors import palette
from dgl_orient.plot.prediction_colors import data_colorings, normal_colorings, position_colorings


def test_values_run_from_light_to_dark():
    coloring = by_value("error", np.array([3.0, 1.0, 2.0]))
    lightness = coloring.rgb.astype(int).sum(1)
    assert lightness[1] > lightness[2] > lightness[0]
    assert coloring.labels == ("3", "1", "2") and coloring.legend[0][0] == "1" and coloring.is_continuous
    assert by_value("constant", np.ones(3)).rgb.std(0).max() == 0
    with pytest.raises(DGLError):
        by_value("error", np.array([np.nan]))


def test_a_category_has_the_same_colour_among_few_and_many():
    few, many = (by_category("part", np.array([0, 1]), list(names)) for names in ("ab", "abcdefgh"))
    np.testing.assert_array_equal(few.rgb, many.rgb)
    assert len(set(palette(50))) == 50
    with pytest.raises(DGLError):
        by_category("part", np.array([2]), ["a", "b"])


def test_opposite_directions_have_opposite_colours():
    rgb = by_direction("normal", np.array([[1.0, 0, 0], [-1, 0, 0], [0, 0, 0]])).rgb
    assert rgb.tolist() == [[255, 128, 128], [0, 128, 128], [128, 128, 128]]


def test_errors_are_angles_and_distances():
    predicted, target = np.array([[0.0, 0, 3], [2.0, 0, 0]]), np.array([[0.0, 0, -1], [0.0, 1, 0]])
    assert normal_colorings(predicted, target)[1].labels == ("180", "90")
    assert normal_colorings(predicted, target, signed=False)[1].labels == ("0", "90")
    (error,) = position_colorings(predicted, target)
    assert error.labels == ("4", "2.24")
    assert [each.name for each in normal_colorings(predicted)] == ["normal"] and position_colorings(
        predicted
    ) == []


def test_parts_of_a_file_keep_their_numbers():
    data = {"pos": np.zeros((3, 3)), "part": np.array([[7], [3], [7]])}
    distance, part = data_colorings(data)
    assert part.labels == ("7", "3", "7") and distance.labels == ("0", "0", "0")
