"""Predictions for files: all points, any pose, bad files, and what is written where."""

from __future__ import annotations

import csv
import json
import os

import numpy as np
import pytest
import torch
import trimesh
from dgl import DGLError

from dgl_orient.data import FolderDataset, NormalizeScale, Shapes, read_cloud, write_cloud
from dgl_orient.geometry import random_rotation
from dgl_orient.go.apply import apply
from dgl_orient.graph import point_cloud
from dgl_orient.train import checkpoint
from dgl_orient.zoo import clouds as zoo_clouds
from dgl_orient.zoo import predict as zoo_predict
from dgl_orient.zoo.input_files import find_files
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.predict import split_points
from dgl_orient.zoo.prediction_folder import PredictionFolder
from dgl_orient.zoo.predictions import Prediction
from tests.clouds import ball, generator
from tests.go import tiny


def _files(folder, number=4, points=40):
    """Shapes in .ply files, in folders of their classes."""
    shapes = Shapes("test", num_points=points, num_shapes=number)
    for index in range(number):
        graph, label = shapes[index]
        path = folder / shapes.class_names[label] / f"{index}.ply"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_cloud(path, graph.ndata["pos"])
    return folder


def _apply(pipeline, inputs, output, **options):
    inputs = inputs if isinstance(inputs, list) else [inputs]
    return apply(tiny.trained(pipeline), inputs, output, progress=False, **options)


def test_classes_are_the_networks_and_probabilities_add_up(tmp_path):
    files = _files(tmp_path / "in")
    result = _apply("pointcls", files, tmp_path / "out", batch_size=3)
    trained = load_trained_model(tiny.trained("pointcls"))
    for entry in result.predictions:
        pos = torch.tensor(read_cloud(entry["file"], dtype=np.float32)["pos"])
        graph = NormalizeScale()(point_cloud(pos))
        expected = trained.network(graph)[0].softmax(0)
        assert entry["class"] == trained.metadata["class_names"][int(expected.argmax())]
        given = torch.tensor(list(entry["probabilities"].values()))
        torch.testing.assert_close(given, expected.detach(), rtol=1e-3, atol=1e-4)
        assert float(given.sum()) == pytest.approx(1, abs=1e-4)


def test_lists_hold_what_is_returned(tmp_path):
    result = _apply("pointcls", _files(tmp_path / "in"), tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "predictions.json").read_text())
    assert stored["predictions"] == result.predictions and stored["skipped"] == []
    with open(tmp_path / "out" / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == [entry["class"] for entry in result.predictions]
    assert float(rows[0]["mug"]) == result.predictions[0]["probabilities"]["mug"]


def test_a_file_is_predicted_the_same_alone_and_among_others(tmp_path):
    files = _files(tmp_path / "in", points=90)  # more than the network's 40: some are sampled
    together = _apply("pointcls", files, tmp_path / "a").predictions
    alone = _apply("pointcls", together[2]["file"], tmp_path / "b").predictions[0]
    assert alone["probabilities"] == pytest.approx(together[2]["probabilities"], abs=1e-4)


@pytest.mark.parametrize("points", [12, 40, 103])
def test_every_point_gets_its_part(tmp_path, points):
    pos = ball(points) + 1e6  # where float32 has no digits left
    write_cloud(tmp_path / "cloud.npz", pos, normal=ball(points, 1))
    (entry,) = _apply("partseg", tmp_path / "cloud.npz", tmp_path / "out", category="mug").predictions
    cloud = read_cloud(entry["output"], dtype=np.float64)
    assert np.array_equal(cloud["pos"], pos) and cloud["normal"].shape == (points, 3)
    names = load_trained_model(tiny.trained("partseg")).metadata["part_names"]
    assert {names[part] for part in cloud["part"]} <= {"mug/body", "mug/handle"}
    counted = {name: int((cloud["part"] == names.index(name)).sum()) for name in entry["parts"]}
    assert counted == entry["parts"] and sum(counted.values()) == entry["points"] == points
    assert (cloud["probability"] >= 0.499).all() and (cloud["probability"] <= 1).all()


def test_normals_rotate_with_the_cloud(tmp_path):
    pos, rotation = ball(40), random_rotation(generator=generator(3), dtype=torch.float64)
    write_cloud(tmp_path / "a.npz", pos)
    write_cloud(tmp_path / "b.npz", pos @ rotation.T)
    result = _apply("normals", [tmp_path / "a.npz", tmp_path / "b.npz"], tmp_path / "out", file_format="npz")
    before, after = (read_cloud(entry["output"], dtype=np.float64)["normal"] for entry in result.predictions)
    assert np.linalg.norm(before, axis=1) == pytest.approx(1, abs=1e-5)
    close = np.abs(after - before @ rotation.numpy().T).max(1) < 1e-2
    assert close.mean() > 0.9  # all but points whose frame is nearly degenerate


def test_particles_get_their_positions(tmp_path):
    pos, vel, charge = ball(5), ball(5, 1), torch.ones(5)
    write_cloud(tmp_path / "system.npz", pos, vel=vel, charge=charge)
    (entry,) = _apply("nbody", tmp_path / "system.npz", tmp_path / "out").predictions
    cloud = read_cloud(entry["output"], dtype=np.float64)
    trained = load_trained_model(tiny.trained("nbody"))
    graph = point_cloud(pos.float())
    graph.ndata["vel"], graph.ndata["charge"] = vel.float(), charge[:, None]
    expected = trained.network(graph).detach().numpy()
    assert cloud["predicted_pos"] == pytest.approx(expected, abs=1e-5)
    assert np.array_equal(cloud["pos"], pos)


@pytest.mark.parametrize("given", [{}, {"vel": ball(4)}, {"vel": ball(4), "charge": torch.ones(4, 2)}])
def test_particles_without_velocity_or_charge_are_an_error(tmp_path, given):
    write_cloud(tmp_path / "half.npz", ball(4), **given)
    with pytest.raises(DGLError, match=r"(vel|charge).*half\.npz"):
        _apply("nbody", tmp_path / "half.npz", tmp_path / "out")


@pytest.mark.parametrize("pipeline", ["pointcls", "partseg", "normals"])
def test_files_with_fewer_points_than_in_training_are_reported(tmp_path, pipeline):
    files = _files(tmp_path / "in", 2)  # as many as in training
    small = tmp_path / "in" / "mug" / "small.ply"
    small.parent.mkdir(exist_ok=True)
    write_cloud(small, ball(11))
    *enough, few = _apply(pipeline, files, tmp_path / "out").predictions
    assert [each["warnings"] for each in enough] == [[], []]
    assert few["file"] == str(small) and "11 points" in few["warnings"][0]
    with open(tmp_path / "out" / "predictions.csv", newline="") as file:
        assert [row["warnings"] for row in csv.DictReader(file)] == ["", "", *few["warnings"]]


def test_coincident_points_among_enough_others_are_no_few(tmp_path):
    pos = torch.randint(6, (3000, 3), generator=generator(0)).double()
    write_cloud(tmp_path / "grid.ply", pos)
    assert len(np.unique(read_cloud(tmp_path / "grid.ply", 40)["pos"], axis=0)) < 40
    (entry,) = _apply("pointcls", tmp_path / "grid.ply", tmp_path / "out").predictions
    assert entry["warnings"] == []


def test_a_bad_file_is_an_error_without_lists_or_is_left_out(tmp_path):
    files = _files(tmp_path / "in")
    (files / "broken.npz").write_bytes(b"PK\x03\x04 garbled")
    (files / "empty.xyz").write_text("")
    with pytest.raises(DGLError, match=r"broken\.npz.*--skip-bad"):
        _apply("pointcls", files, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(DGLError, match=r"broken\.npz.*--skip-bad"):
        _apply("normals", files, tmp_path / "out", batch_size=1)
    assert not (tmp_path / "out").exists()
    result = _apply("pointcls", files, tmp_path / "out", skip_bad=True)
    assert len(result.predictions) == 4
    assert [os.path.basename(each["file"]) for each in result.skipped] == ["broken.npz", "empty.xyz"]
    assert "broken.npz" in result.skipped[0]["reason"]


@pytest.mark.parametrize("pipeline, size", [("pointcls", 1.7e308), ("normals", 1.7e308), ("nbody", 1e30)])
def test_a_file_beyond_all_bounds_is_named_or_left_out(tmp_path, pipeline, size):
    folder = tmp_path / "in"
    folder.mkdir()
    pos = ball(40).clamp(-1, 1).numpy()
    for name, factor in (("large.npz", size), ("small.npz", 1.0)):
        np.savez(folder / name, pos=factor * pos, vel=pos, charge=np.ones((40, 1)))
    with pytest.raises(
        DGLError, match=r"Expected coordinates of at most .* in .*large\.npz; scale .*--skip-bad"
    ):
        _apply(pipeline, folder, tmp_path / "out")
    result = _apply(pipeline, folder, tmp_path / "out", skip_bad=True)
    assert len(result.predictions) == len(result.skipped) == 1


def test_columns_of_tables_can_be_chosen(tmp_path):
    pos = ball(40).numpy()
    np.savetxt(tmp_path / "plain.xyz", pos)
    np.savetxt(tmp_path / "more.xyz", np.column_stack([np.full(40, 7), pos, 255 * np.ones((40, 3))]))
    with pytest.raises(DGLError, match="--columns") as caught:
        _apply("pointcls", tmp_path / "more.xyz", tmp_path / "out")
    assert "0,1,2" not in str(caught.value)  # which are not the coordinates
    np.savetxt(tmp_path / "named.csv", np.column_stack([np.arange(40), pos]), "%.18g", ",", header="id,x,y,z")
    (plain,) = _apply("pointcls", tmp_path / "plain.xyz", tmp_path / "plain").predictions
    (more,) = _apply("pointcls", tmp_path / "more.xyz", tmp_path / "more", columns=(1, 2, 3)).predictions
    (named,) = _apply("pointcls", tmp_path / "named.csv", tmp_path / "named").predictions
    assert plain["probabilities"] == more["probabilities"] == named["probabilities"]


def test_nothing_but_bad_files_is_an_error(tmp_path):
    (tmp_path / "empty.xyz").write_text("")
    with pytest.raises(DGLError, match=r"empty\.xyz"):
        _apply("pointcls", tmp_path / "empty.xyz", tmp_path / "out", skip_bad=True)


@pytest.mark.parametrize("name", ["nowhere.ply", "notes.md"])
def test_a_file_that_is_absent_or_of_no_format_is_named(tmp_path, name):
    (tmp_path / "notes.md").touch()
    with pytest.raises(DGLError, match=name):
        _apply("pointcls", tmp_path / name, tmp_path / "out")


def test_the_category_is_the_folders_name_or_given(tmp_path):
    files = _files(tmp_path / "in")
    result = _apply("partseg", files, tmp_path / "out")
    assert [entry["category"] for entry in result.predictions] == ["armchair", "bottle", "chair", "guitar"]
    assert (tmp_path / "out" / "chair" / "2.ply").exists()
    write_cloud(tmp_path / "cloud.ply", ball())
    with pytest.raises(DGLError, match=r"cloud\.ply.*--category.*armchair"):
        _apply("partseg", tmp_path / "cloud.ply", tmp_path / "other")
    with pytest.raises(DGLError, match="boat"):
        _apply("partseg", files, tmp_path / "other", category="boat")
    with pytest.raises(DGLError, match="pointcls"):
        _apply("pointcls", files, tmp_path / "other", category="mug")


def test_a_category_that_nobody_names_is_the_classifiers_and_said_to_be(tmp_path):
    bottle, _ = Shapes("test", num_points=2000, num_shapes=1, classes=["bottle"])[0]
    write_cloud(tmp_path / "scan.ply", bottle.ndata["pos"])
    (entry,) = _apply("partseg", tmp_path / "scan.ply", tmp_path / "out").predictions
    assert entry["category"] == "bottle" and "--category" in entry["warnings"][0]
    (entry,) = _apply("partseg", tmp_path / "scan.ply", tmp_path / "mug", category="mug").predictions
    assert entry["category"] == "mug" and entry["warnings"] == []


def test_parts_are_coloured_as_the_legend_says(tmp_path):
    write_cloud(tmp_path / "cloud.npz", ball(60))
    result = _apply("partseg", tmp_path / "cloud.npz", tmp_path / "out", category="mug")
    (entry,) = result.predictions
    cloud = read_cloud(entry["output"])
    seen = trimesh.load(entry["output"]).colors  # as any viewer of the format
    rgb = [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue, _ in seen]
    names = load_trained_model(tiny.trained("partseg")).metadata["part_names"]
    assert rgb == [result.colors[names[part]] for part in cloud["part"]]
    assert json.loads((tmp_path / "out" / "predictions.json").read_text())["colors"] == result.colors
    assert len(set(result.colors.values())) == len(result.colors) == len(set(cloud["part"]))


@pytest.mark.parametrize("pipeline", ["pointcls", "normals"])
def test_results_are_not_replaced_unasked(tmp_path, pipeline):
    files, out = _files(tmp_path / "in", 2), tmp_path / "out"
    _apply(pipeline, files, out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    for path in files.rglob("*.ply"):  # nothing of them is read
        path.write_text("broken")
    with pytest.raises(DGLError, match="--overwrite"):
        _apply(pipeline, files, out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    for path in files.rglob("*.ply"):
        write_cloud(path, ball(50))
    _apply(pipeline, files, out, overwrite=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} != before


def test_without_a_name_each_result_has_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _files(tmp_path / "in", 2)
    folders = [_apply("normals", ".", None).folder for _ in range(3)]
    assert [str(each) for each in folders] == ["apply_results", "apply_results_2", "apply_results_3"]
    assert [len(list(each.rglob("*.ply"))) for each in folders] == [2, 2, 2]
    assert str(_apply("normals", ".", None, overwrite=True).folder) == "apply_results"


def test_files_of_other_formats_are_listed(tmp_path):
    files = _files(tmp_path / "in", 2)
    (files / "b.docx").touch()
    result = _apply("pointcls", [files, tmp_path / "in" / "b.docx"], tmp_path / "out")
    assert result.unsupported == [files / "b.docx"] and len(result.predictions) == 2
    stored = json.loads((tmp_path / "out" / "predictions.json").read_text())
    assert stored["unsupported"] == [str(files / "b.docx")]


def test_votes_outliers_and_unknown_reach_the_network(tmp_path, monkeypatch):
    write_cloud(tmp_path / "cloud.ply", torch.cat([ball(90), 30 + ball(1)]))
    plain, voted, kept = (
        _apply("pointcls", tmp_path / "cloud.ply", tmp_path / str(number), **options).predictions[0]
        for number, options in enumerate([{}, {"votes": 4}, {"remove_outliers": False}])
    )
    assert plain["probabilities"] != voted["probabilities"] != kept["probabilities"]
    assert "1 outlier" in plain["warnings"][0] and kept["warnings"] == []


def test_a_cloud_unlike_the_training_data_is_unknown_unless_a_class_is_asked_for(tmp_path):
    trained, folder = load_trained_model(tiny.trained("pointcls")), tmp_path / "out"
    summary = {"class": "unknown", "nearest_class": "mug", "is_known": False}
    with PredictionFolder(trained, folder, [], overwrite=False) as results:
        for allow_unknown in (True, False):
            results.add("a.ply", Prediction(dict(summary), {}), {}, None, allow_unknown)
    assert [each["class"] for each in results.predictions] == ["unknown", "mug"]
    assert all("mug" in each["warnings"][0] for each in results.predictions)


def test_files_of_one_name_do_not_overwrite_each_other(tmp_path):
    for name in ("a/cloud.ply", "a/cloud.npz", "b/cloud.ply"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_cloud(tmp_path / name, ball())
    result = _apply("normals", [tmp_path / "a", tmp_path / "b"], tmp_path / "out")
    outputs = [os.path.relpath(entry["output"], tmp_path / "out") for entry in result.predictions]
    assert outputs == ["a/cloud.npz.ply", "a/cloud.ply.ply", "b/cloud.ply"]
    with pytest.raises(DGLError, match=r"both go to .*cloud\.ply"):
        _apply("normals", [tmp_path / "a/cloud.ply", tmp_path / "b/cloud.ply"], tmp_path / "out")


def test_inputs_are_never_overwritten(tmp_path):
    write_cloud(tmp_path / "cloud.ply", ball())
    before = (tmp_path / "cloud.ply").read_bytes()
    with pytest.raises(DGLError):
        _apply("normals", tmp_path / "cloud.ply", tmp_path)
    assert (tmp_path / "cloud.ply").read_bytes() == before


@pytest.mark.parametrize(
    "options, words", [({"file_format": "obj"}, "obj"), ({"batch_size": 0}, "batch_size")]
)
def test_bad_options_are_sentences(tmp_path, options, words):
    write_cloud(tmp_path / "cloud.ply", ball())
    with pytest.raises(DGLError, match=words):
        _apply("normals", tmp_path / "cloud.ply", tmp_path / "out", **options)


@pytest.mark.parametrize("device", ["cuda:99", "cuda:200", "foo", "mps"])
def test_a_device_that_is_not_there_is_a_sentence(tmp_path, device):
    with pytest.raises(DGLError, match=device):
        _apply("pointcls", _files(tmp_path / "in", 1), tmp_path / "out", device=device)


def test_predictions_among_the_inputs_are_no_clouds(tmp_path):
    files = _files(tmp_path, 2)
    for _ in range(2):
        assert len(_apply("normals", files, tmp_path / "out", overwrite=True).predictions) == 2
    assert len(find_files([tmp_path], tmp_path / "other")) == 2
    assert len(find_files([tmp_path / "out"], tmp_path / "out")) == 2


def test_the_folder_of_a_training_can_be_predicted(tmp_path):
    files = _files(tmp_path / "in", 4)
    FolderDataset(files, num_points=40, split="all")
    assert len(_apply("pointcls", files, tmp_path / "out").predictions) == 4


def test_nothing_is_written_outside_the_output(tmp_path, monkeypatch):
    files = _files(tmp_path / "in", 2)
    (tmp_path / "in" / "work").mkdir()
    monkeypatch.chdir(tmp_path / "in" / "work")
    other = _files(tmp_path / "other", 1)
    result = _apply("normals", ["..", other], "out")
    assert len(result.predictions) == 3
    assert all(path.resolve().is_relative_to(files / "work" / "out") for path in result.written)


def test_an_output_that_is_a_file_is_an_error(tmp_path):
    write_cloud(tmp_path / "cloud.ply", ball())
    with pytest.raises(DGLError):
        _apply("pointcls", tmp_path / "cloud.ply", tmp_path / "cloud.ply")


def test_folders_are_searched_and_hidden_files_left_out(tmp_path):
    for name in ("b.ply", "a.OFF", "sub/c.npz", ".git/d.ply", ".e.ply", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(source.name) for source in find_files([tmp_path])] == ["a.OFF", "b.ply", "sub/c.npz"]
    assert len(find_files([tmp_path, tmp_path / "b.ply"])) == 3  # each once
    (tmp_path / "empty").mkdir()
    with pytest.raises(DGLError, match="no file in .*empty"):
        find_files([tmp_path / "empty"])
    with pytest.raises(DGLError):
        find_files([])


@pytest.mark.parametrize("size, most", [(1, 4), (4, 4), (5, 4), (8, 4), (103, 40), (7, None)])
def test_every_point_belongs_to_one_piece(size, most):
    pieces = list(split_points(size, most, seed=0))
    own = np.concatenate([rows[:count] for rows, count in pieces])
    assert sorted(own) == list(range(size))
    for rows, _ in pieces:
        assert len(set(rows)) == len(rows) == min(size, most or size)


def test_lists_never_replace_a_file_that_is_predicted(tmp_path):
    np.savetxt(tmp_path / "predictions.csv", ball(50), delimiter=",")
    before = (tmp_path / "predictions.csv").read_bytes()
    for given in (tmp_path, tmp_path / "predictions.csv"):
        with pytest.raises(DGLError, match="Predictions would be written over the file .*predictions.csv"):
            _apply("pointcls", given, tmp_path)
    assert (tmp_path / "predictions.csv").read_bytes() == before


def test_classes_of_files_of_one_name_stand_in_one_list(tmp_path):
    files = [tmp_path / folder / "0.ply" for folder in ("a", "b")]
    for path in files:
        path.parent.mkdir()
        write_cloud(path, ball(50))
    assert len(_apply("pointcls", files, tmp_path / "a").predictions) == 2
    assert sorted(os.listdir(tmp_path / "a")) == ["0.ply", "predictions.csv", "predictions.json"]


def test_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.xyz")
    with pytest.raises(DGLError, match="pipe.xyz is a pipe or a device"):
        find_files([tmp_path / "pipe.xyz"])


def test_an_output_that_leads_to_itself_is_a_sentence(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(DGLError, match="Cannot write .*loop"):
        _apply("pointcls", _files(tmp_path / "in"), tmp_path / "loop")


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


@pytest.mark.parametrize("pipeline", ["pointcls", "partseg", "normals", "nbody"])
def test_meshes_and_clouds_of_all_kinds_make_a_batch(tmp_path, pipeline):
    folder = tmp_path / "mug"
    folder.mkdir()
    charged = dict(vel=ball(40, 1), charge=torch.ones(40))
    write_cloud(folder / "plain.npz", ball(40), **charged)
    write_cloud(folder / "normals.npz", ball(40), normal=ball(40, 2), color=ball(40, 3).sigmoid(), **charged)
    if pipeline != "nbody":
        corners = "0 0 0\n1 0 0\n0 1 0\n0 0 1\n"
        (folder / "mesh.off").write_text(f"OFF\n4 4 0\n{corners}3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n")
        np.savetxt(folder / "table.xyz", ball(50))
    together = _apply(pipeline, folder, tmp_path / "out").predictions
    assert len(together) == (2 if pipeline == "nbody" else 4)
    for entry in together:
        alone = _apply(pipeline, entry["file"], tmp_path / "alone", overwrite=True).predictions[0]
        assert alone.keys() == entry.keys()
        if pipeline == "pointcls":
            assert alone["probabilities"] == pytest.approx(entry["probabilities"], abs=1e-4)


def test_every_file_and_the_checkpoint_are_read_once(tmp_path, monkeypatch):
    files = _files(tmp_path / "in", points=90)
    opened = []
    counted = {str(path) for path in files.rglob("*.ply")} | {str(tiny.trained("pointcls"))}
    read, load = zoo_clouds.read_cloud, checkpoint.load
    monkeypatch.setattr(
        zoo_clouds, "read_cloud", lambda path, *rest: opened.append(str(path)) or read(path, *rest)
    )
    monkeypatch.setattr(checkpoint, "load", lambda path: opened.append(str(path)) or load(path))
    _apply("pointcls", files, tmp_path / "out", batch_size=3)
    assert sorted(opened) == sorted(counted)


def test_files_are_read_as_they_are_predicted(tmp_path):
    """No more than a batch of them is in memory."""
    trained, files = load_trained_model(tiny.trained("normals")), sorted(_files(tmp_path).rglob("*.ply"))
    taken = []

    def clouds():
        for path in files:
            taken.append(path)
            yield zoo_clouds.read_file(trained, path)

    predictions = zoo_predict.predict_files(trained, clouds(), batch_size=2)
    next(predictions)
    assert len(taken) == 2
    assert len(list(predictions)) == 3 and len(taken) == 4
