"""Which files are predicted, and what is written where."""

from __future__ import annotations

import csv
import json
import os

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data import FolderDataset, write_cloud
from dgl_orient.go.apply import apply
from dgl_orient.train import checkpoint
from dgl_orient.zoo import clouds as zoo_clouds
from dgl_orient.zoo import predict as zoo_predict
from dgl_orient.zoo.input_files import find_files
from dgl_orient.zoo.loading import load_trained_model
from tests.clouds import ball
from tests.go import tiny


@pytest.mark.parametrize("pipeline", ["pointcls", "normals"])
def test_results_are_not_replaced_unasked(tmp_path, pipeline):
    files, out = tiny.write_files(tmp_path / "in", 2), tmp_path / "out"
    tiny.apply(pipeline, files, out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for path in files.rglob("*.ply"):  # nothing of them is read
        path.write_text("broken")
    with pytest.raises(DGLError, match="--overwrite"):
        tiny.apply(pipeline, files, out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    for path in files.rglob("*.ply"):
        write_cloud(path, ball(50))
    tiny.apply(pipeline, files, out, overwrite=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} != before


def test_without_a_name_each_result_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny.write_files(tmp_path / "in", 2)
    folders = [tiny.apply("normals", ".", None).folder for _ in range(3)]
    assert [str(each) for each in folders] == ["apply_results", "apply_results_2", "apply_results_3"]
    assert [len(list(each.rglob("*.ply"))) for each in folders] == [2, 2, 2]
    assert str(tiny.apply("normals", ".", None, overwrite=True).folder) == "apply_results"


def test_files_of_other_formats_are_listed(tmp_path):
    files = tiny.write_files(tmp_path / "in", 2)
    (files / "b.docx").touch()
    result = tiny.apply("pointcls", [files, tmp_path / "in" / "b.docx"], tmp_path / "out")
    assert result.unsupported == [files / "b.docx"] and len(result.predictions) == 2
    stored = json.loads((tmp_path / "out" / "predictions.json").read_text())
    assert stored["unsupported"] == [str(files / "b.docx")]


def test_files_of_one_name_do_not_overwrite_each_other(tmp_path):
    for name in ("a/cloud.ply", "a/cloud.npz", "b/cloud.ply"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_cloud(tmp_path / name, ball())
    result = tiny.apply("normals", [tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    outputs = [os.path.relpath(entry["output"], tmp_path / "out") for entry in result.predictions]
    assert outputs == ["a/cloud.npz.ply", "a/cloud.ply.ply", "b/cloud.ply"]
    with pytest.raises(DGLError, match=r"cloud\.ply"):
        tiny.apply("normals", [tmp_path / "a/cloud.ply", tmp_path / "b/cloud.ply"], tmp_path / "out")


def test_inputs_are_never_overwritten(tmp_path):
    write_cloud(tmp_path / "cloud.ply", ball())
    before = (tmp_path / "cloud.ply").read_bytes()
    with pytest.raises(DGLError):
        tiny.apply("normals", tmp_path / "cloud.ply", tmp_path)
    assert (tmp_path / "cloud.ply").read_bytes() == before


def test_predictions_among_the_inputs_are_no_clouds(tmp_path):
    files = tiny.write_files(tmp_path, 2)
    for _ in range(2):
        assert len(tiny.apply("normals", files, tmp_path / "out", overwrite=True).predictions) == 2
    assert len(find_files([tmp_path], tmp_path / "other")) == 2
    assert len(find_files([tmp_path / "out"], tmp_path / "out")) == 2


def test_the_folder_of_a_training_can_be_predicted(tmp_path):
    files = tiny.write_files(tmp_path / "in", 4)
    FolderDataset(files, num_points=40, split="all")
    assert len(tiny.apply("pointcls", files, tmp_path / "out").predictions) == 4


def test_nothing_is_written_outside_the_output(tmp_path, monkeypatch):
    files = tiny.write_files(tmp_path / "in", 2)
    (tmp_path / "in" / "work").mkdir()
    monkeypatch.chdir(tmp_path / "in" / "work")
    other = tiny.write_files(tmp_path / "other", 1)
    result = tiny.apply("normals", ["..", other], "out")
    assert len(result.predictions) == 3
    assert all(path.resolve().is_relative_to(files / "work" / "out") for path in result.written)


def test_an_output_that_is_a_file_is_an_error(tmp_path):
    write_cloud(tmp_path / "cloud.ply", ball())
    with pytest.raises(DGLError):
        tiny.apply("pointcls", tmp_path / "cloud.ply", tmp_path / "cloud.ply")


def test_folders_are_searched_and_hidden_files_left_out(tmp_path):
    for name in ("b.ply", "a.OFF", "sub/c.npz", ".git/d.ply", ".e.ply", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(source.name) for source in find_files([tmp_path])] == ["a.OFF", "b.ply", "sub/c.npz"]
    assert len(find_files([tmp_path, tmp_path / "b.ply"])) == 3  # each once
    (tmp_path / "empty").mkdir()
    with pytest.raises(DGLError, match="empty"):
        find_files([tmp_path / "empty"])
    with pytest.raises(DGLError):
        find_files([])


def test_lists_never_replace_a_file_that_is_predicted(tmp_path):
    np.savetxt(tmp_path / "predictions.csv", ball(50), delimiter=",")
    before = (tmp_path / "predictions.csv").read_bytes()
    for given in (tmp_path, tmp_path / "predictions.csv"):
        with pytest.raises(DGLError, match="predictions.csv"):
            tiny.apply("pointcls", given, tmp_path)
    assert (tmp_path / "predictions.csv").read_bytes() == before


def test_classes_of_files_of_one_name_stand_in_one_list(tmp_path):
    files = [tmp_path / folder / "0.ply" for folder in ("a", "b")]
    for path in files:
        path.parent.mkdir()
        write_cloud(path, ball(50))
    assert len(tiny.apply("pointcls", files, tmp_path / "a").predictions) == 2
    assert sorted(os.listdir(tmp_path / "a")) == ["0.ply", "predictions.csv", "predictions.json"]


def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.xyz")
    with pytest.raises(DGLError, match="pipe.xyz"):
        find_files([tmp_path / "pipe.xyz"])


def test_an_output_that_leads_to_itself_is_a_sentence(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DGLError, match="loop"):
        tiny.apply("pointcls", tiny.write_files(tmp_path / "in"), tmp_path / "loop")


def test_names_are_no_commands_of_a_spreadsheet_or_a_terminal(tmp_path):
    state = checkpoint.load(tiny.trained("pointcls"))
    names = ["=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", *state["metadata"]["class_names"][4:]]
    checkpoint.save(tmp_path / "odd.pth", state | {"metadata": state["metadata"] | {"class_names": names}})
    write_cloud(tmp_path / "=1+1.ply", ball(40))
    write_cloud(tmp_path / "esc\x1b[2J.ply", ball(40))
    apply(tmp_path / "odd.pth", [tmp_path], tmp_path / "out", progress=False)
    raw = (tmp_path / "out" / "predictions.csv").read_bytes()
    assert b"\x1b" not in raw
    rows = list(csv.reader(raw.decode().splitlines()))
    assert len(rows) == 3 and not [
        cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@"))
    ]
    listed = [row[0] for row in rows[1:]]
    assert any(each.endswith("esc\\x1b[2J.ply") for each in listed)


def test_every_file_and_the_checkpoint_are_read_once(tmp_path, monkeypatch):
    files = tiny.write_files(tmp_path / "in", points=90)
    opened = []
    counted = {str(path) for path in files.rglob("*.ply")} | {str(tiny.trained("pointcls"))}
    read, load = zoo_clouds.read_cloud, checkpoint.load
    monkeypatch.setattr(
        zoo_clouds,
        "read_cloud",
        lambda path, *rest, **more: opened.append(str(path)) or read(path, *rest, **more),
    )
    monkeypatch.setattr(checkpoint, "load", lambda path: opened.append(str(path)) or load(path))
    tiny.apply("pointcls", files, tmp_path / "out", batch_size=3)
    assert sorted(opened) == sorted(counted)


def test_files_are_read_as_they_are_predicted(tmp_path):
    """No more than a batch of them is in memory."""
    trained, files = (
        load_trained_model(tiny.trained("normals")),
        sorted(tiny.write_files(tmp_path).rglob("*.ply")),
    )
    taken = []

    def clouds():
        for path in files:
            taken.append(path)
            yield zoo_clouds.read_file(trained, path)

    predictions = zoo_predict.predict_files(trained, clouds(), batch_size=2)
    next(predictions)
    assert len(taken) == 2
    assert len(list(predictions)) == 3 and len(taken) == 4
