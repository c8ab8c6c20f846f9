"""Tables with and without headers, in the spellings that programs write."""

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data import read_cloud
from tests.data.io.samples import NORMAL, POS, put, table

IDS = np.arange(100, 107)[:, None]
HEADERS = {
    "commas": "id,x,y,z\n" + table(",", IDS, POS),
    "semicolons": "ID;X;Y;Z\n" + table(";", IDS, POS),
    "tabs": "id\tx\ty\tz\n" + table("\t", IDS, POS),
    "spaces": "id x y z\n" + table(" ", IDS, POS),
    "quotes": '"id","x","y","z"\n' + table(",", IDS, POS),
    "units": "id, X [m], Y [m], Z [m]\n" + table(",", IDS, POS),
    "units and spaces": "id X (m) Y (m) Z (m)\n" + table(" ", IDS, POS),
    "slashes": "//id X Y Z\n" + table(" ", IDS, POS),
    "comment": "# a scan\n# id x y z\n" + table(" ", IDS, POS),
    "count": "//id X Y Z\n7\n" + table(" ", IDS, POS),
    "decimal commas": "id;x;y;z\n" + table(";", IDS, POS).replace(".", ","),
    "last separator": "id,x,y,z,\n" + table(",", IDS, POS).replace("\n", ",\n"),
    "synonyms": "id,easting,northing,elevation\n" + table(",", IDS, POS),
    "paraview": '"id","Points:0","Points:1","Points:2"\n' + table(",", IDS, POS),
    "order": "z,y,id,x\n" + table(",", POS[:, 2:], POS[:, 1:2], IDS, POS[:, :1]),
}


@pytest.mark.parametrize("name", HEADERS)
def test_columns_are_read_by_their_names(tmp_path, name):
    cloud = read_cloud(put(tmp_path, "a.txt", HEADERS[name]))
    np.testing.assert_allclose(cloud["pos"], POS, rtol=1e-6)
    np.testing.assert_array_equal(cloud["id"], IDS[:, 0])
    assert cloud["id"].dtype == np.int64


def test_the_row_numbers_of_pandas_have_no_name(tmp_path):
    cloud = read_cloud(put(tmp_path, "a.csv", ",x,y,z\n" + table(",", IDS, POS)))
    np.testing.assert_allclose(cloud["pos"], POS, rtol=1e-6)
    assert set(cloud) == {"pos"}


def test_utf16_as_windows_writes_it(tmp_path):
    cloud = read_cloud(put(tmp_path, "a.csv", HEADERS["tabs"].encode("utf-16")))
    np.testing.assert_allclose(cloud["pos"], POS, rtol=1e-6)


def test_all_attributes_of_a_header(tmp_path):
    header = "x y z R G B nx ny nz Intensity label\n"
    colors = np.arange(21).reshape(7, 3)
    rows = table(" ", POS, colors, NORMAL, IDS / 2, IDS)
    cloud = read_cloud(put(tmp_path, "a.asc", header + rows))
    assert set(cloud) == {"pos", "normal", "color", "intensity", "label"}
    np.testing.assert_allclose(cloud["color"], colors / 255, rtol=1e-6)
    np.testing.assert_allclose(cloud["normal"], NORMAL, atol=1e-6)
    np.testing.assert_allclose(cloud["intensity"], IDS[:, 0] / 2)


def test_words_and_dates_are_left_out(tmp_path):
    rows = [f"{name},2020-01-0{i + 1},{x},{y},{z}" for i, (name, (x, y, z)) in enumerate(zip("abcdefg", POS))]
    path = put(tmp_path, "a.csv", "name,date,x,y,z\n" + "\n".join(rows))
    assert set(read_cloud(path)) == {"pos"}
    np.testing.assert_allclose(read_cloud(path, columns=(2, 3, 4))["pos"], POS, rtol=1e-5)


def test_three_long_rows_are_the_coordinates(tmp_path):
    pos = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_allclose(read_cloud(put(tmp_path, "a.csv", table(",", pos.T)))["pos"], pos, rtol=1e-6)


@pytest.mark.parametrize("columns", [("c", "b", "a"), ("C", "b", "a"), (3, 2, 1)])
def test_columns_are_chosen_by_names_or_numbers(tmp_path, columns):
    path = put(tmp_path, "a.csv", "id,a,b,c\n" + table(",", IDS, POS))
    np.testing.assert_allclose(read_cloud(path, columns=columns)["pos"], POS[:, ::-1], rtol=1e-6)


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("a,b,c\n1,2,3\n", None),  # names that say nothing
        ("id,a,b,c\n0,1,2,3\n", None),
        ("0 1 2 3\n1 4 5 6\n", None),  # no names
        ("x,y,z\n1,2,3\n", ("x", "y", "height")),
        ("1 2 3\n", ("x", "y", "z")),
        ("x y z\n1 2 3\n", (0, 1, 3)),
        ("latitude,longitude,x,y\n1,2,3,4\n", None),
    ],
)
def test_what_is_not_clear_is_asked_without_a_guess(tmp_path, content, columns):
    with pytest.raises(DGLError, match=r"a\.csv") as caught:
        read_cloud(put(tmp_path, "a.csv", content), columns=columns)
    assert "0,1,2" not in str(caught.value) and "(0, 1, 2)" not in str(caught.value)


def test_a_table_of_words_is_no_reason_to_ask_for_columns(tmp_path):
    with pytest.raises(DGLError, match=r"a\.csv") as caught:
        read_cloud(put(tmp_path, "a.csv", "name;sizes\nmug;3 or 4\ncup;2 or 3\n"))
    assert "--columns" not in str(caught.value)


def test_every_name_in_a_message_can_be_chosen(tmp_path):
    path = put(tmp_path, "a.csv", "Id No,East-1,North-1,Up-1\n" + table(",", IDS, POS))
    with pytest.raises(DGLError) as caught:
        read_cloud(path)
    assert "east_1, north_1, up_1" in str(caught.value)
    for columns in (("east_1", "north_1", "up_1"), ("East-1", "North-1", "Up-1")):
        np.testing.assert_allclose(read_cloud(path, columns=columns)["pos"], POS, rtol=1e-6)
