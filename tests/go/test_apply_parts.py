"""Parts of files: the category, and colours."""

from __future__ import annotations

import json

import numpy as np
import pytest
import trimesh
from dgl import DGLError

from dgl_orient.data import Shapes, read_cloud, write_cloud
from dgl_orient.zoo.loading import load_trained_model
from tests.clouds import ball
from tests.go import tiny


@pytest.mark.parametrize("points", [12, 40, 103])
def test_every_point_gets_its_part(tmp_path, points):
    pos = ball(points) + 1e6  # where float32 has no digits left
    write_cloud(tmp_path / "cloud.npz", pos, normal=ball(points, 1))
    (entry,) = tiny.apply("partseg", tmp_path / "cloud.npz", tmp_path / "out", category="mug").predictions
    cloud = read_cloud(entry["output"], dtype=np.float64)
    assert np.array_equal(cloud["pos"], pos) and cloud["normal"].shape == (points, 3)
    names = load_trained_model(tiny.trained("partseg")).metadata["part_names"]
    assert {names[part] for part in cloud["part"]} <= {"mug/body", "mug/handle"}
    counted = {name: int((cloud["part"] == names.index(name)).sum()) for name in entry["parts"]}
    assert counted == entry["parts"] and sum(counted.values()) == entry["points"] == points
    assert (cloud["probability"] >= 0.499).all() and (cloud["probability"] <= 1).all()


def test_the_category_is_the_folders_name_or_given(tmp_path):
    files = tiny.write_files(tmp_path / "in")
    result = tiny.apply("partseg", files, tmp_path / "out")
    assert [entry["category"] for entry in result.predictions] == ["armchair", "bottle", "chair", "guitar"]
    assert (tmp_path / "out" / "chair" / "2.ply").exists()
    write_cloud(tmp_path / "cloud.ply", ball())
    with pytest.raises(DGLError, match=r"cloud\.ply.*--category.*armchair"):
        tiny.apply("partseg", tmp_path / "cloud.ply", tmp_path / "other")
    with pytest.raises(DGLError, match="boat"):
        tiny.apply("partseg", files, tmp_path / "other", category="boat")
    with pytest.raises(DGLError):
        tiny.apply("pointcls", files, tmp_path / "other", category="mug")


def test_a_category_may_be_written_in_other_case(tmp_path):
    cloud = tmp_path / "BOTTLE" / "cloud.ply"
    cloud.parent.mkdir()
    write_cloud(cloud, ball(50))
    for category in ("Mug", None):
        result = tiny.apply("partseg", cloud, tmp_path / f"out {category}", category=category)
        assert result.predictions[0]["category"] == ("bottle" if category is None else "mug")


def test_a_category_that_nobody_names_is_the_classifiers_and_said_to_be(tmp_path):
    bottle, _ = Shapes("test", num_points=2000, num_shapes=1, classes=["bottle"])[0]
    write_cloud(tmp_path / "scan.ply", bottle.ndata["pos"])
    (entry,) = tiny.apply("partseg", tmp_path / "scan.ply", tmp_path / "out").predictions
    assert entry["category"] == "bottle" and "--category" in entry["warnings"][0]
    (entry,) = tiny.apply("partseg", tmp_path / "scan.ply", tmp_path / "mug", category="mug").predictions
    assert entry["category"] == "mug" and entry["warnings"] == []


def test_parts_are_coloured_as_the_legend_says(tmp_path):
    write_cloud(tmp_path / "cloud.npz", ball(60))
    result = tiny.apply("partseg", tmp_path / "cloud.npz", tmp_path / "out", category="mug")
    (entry,) = result.predictions
    cloud = read_cloud(entry["output"])
    seen = trimesh.load(entry["output"]).colors  # as any viewer of the format
    rgb = [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue, _ in seen]
    names = load_trained_model(tiny.trained("partseg")).metadata["part_names"]
    assert rgb == [result.colors[names[part]] for part in cloud["part"]]
    assert json.loads((tmp_path / "out" / "predictions.json").read_text())["colors"] == result.colors
    assert len(set(result.colors.values())) == len(result.colors) == len(set(cloud["part"]))
