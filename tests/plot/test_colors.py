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
    part, distance = data_colorings(data)
    assert part.labels == ("7", "3", "7") and distance.labels == ("0", "0", "0")


@pytest.mark.parametrize("kind", ["protanopia", "deuteranopia", "tritanopia"])
def test_eight_colours_in_a_row_differ_for_the_colour_blind(kind):
    """Their distance in CIELAB, of which about 2 is just noticeable, after the loss of a kind of cones."""
    cones = np.array([[0.314, 0.6395, 0.0465], [0.1554, 0.7579, 0.0867], [0.0178, 0.1094, 0.8726]])
    lost = np.eye(3)
    row = ["protanopia", "deuteranopia", "tritanopia"].index(kind)
    lost[row] = [[0, 1.0512, -0.0512], [0.9513, 0, 0.0487], [-0.8674, 1.8673, 0]][row]
    linear = (np.array(palette(50)) / 255) ** 2.2
    seen = np.clip(linear @ (np.linalg.inv(cones) @ lost @ cones).T, 0, 1)
    xyz = np.array([[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]])
    x, y, z = np.cbrt(seen @ xyz.T).T
    lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)
    distance = np.linalg.norm(lab[:, None] - lab, axis=2)  # (50, 50)
    assert distance[:8, :8][np.triu_indices(8, 1)].min() > 10
    if kind != "tritanopia":
        assert min(np.diagonal(distance, apart).min() for apart in range(1, 8)) > 7
