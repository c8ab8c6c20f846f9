"""Predictions for files: all points, any pose, bad files."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data import NormalizeScale, read_cloud, write_cloud
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import point_cloud
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.predict import split_points
from dgl_orient.zoo.prediction_folder import PredictionFolder
from dgl_orient.zoo.predictions import Prediction
from tests.clouds import ball, generator
from tests.go import tiny


def test_classes_are_the_networks_and_probabilities_add_up(tmp_path):
    files = tiny.write_files(tmp_path / "in")
    result = tiny.apply("pointcls", files, tmp_path / "out", batch_size=3)
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
    result = tiny.apply("pointcls", tiny.write_files(tmp_path / "in"), tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "predictions.json").read_text())
    assert stored["predictions"] == result.predictions and stored["skipped"] == []
    with open(tmp_path / "out" / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == [entry["class"] for entry in result.predictions]
    assert float(rows[0]["mug"]) == result.predictions[0]["probabilities"]["mug"]


def test_a_file_is_predicted_the_same_alone_and_among_others(tmp_path):
    files = tiny.write_files(tmp_path / "in", points=90)  # more than the network's 40: some are sampled
    together = tiny.apply("pointcls", files, tmp_path / "a").predictions
    alone = tiny.apply("pointcls", together[2]["file"], tmp_path / "b").predictions[0]
    assert alone["probabilities"] == pytest.approx(together[2]["probabilities"], abs=1e-4)


def test_normals_rotate_with_the_cloud(tmp_path):
    pos, rotation = ball(40), random_rotation(generator=generator(3), dtype=torch.float64)
    write_cloud(tmp_path / "a.npz", pos)
    write_cloud(tmp_path / "b.npz", pos @ rotation.T)
    result = tiny.apply(
        "normals", [tmp_path / "a.npz", tmp_path / "b.npz"], tmp_path / "out", file_format="npz"
    )
    before, after = (read_cloud(entry["output"], dtype=np.float64)["normal"] for entry in result.predictions)
    assert np.linalg.norm(before, axis=1) == pytest.approx(1, abs=1e-5)
    close = np.abs(after - before @ rotation.numpy().T).max(1) < 1e-2
    assert close.mean() > 0.9  # all but points whose frame is nearly degenerate


def test_particles_get_their_positions(tmp_path):
    pos, vel, charge = ball(5), ball(5, 1), torch.ones(5)
    write_cloud(tmp_path / "system.npz", pos, vel=vel, charge=charge)
    (entry,) = tiny.apply("nbody", tmp_path / "system.npz", tmp_path / "out").predictions
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
        tiny.apply("nbody", tmp_path / "half.npz", tmp_path / "out")


@pytest.mark.parametrize("pipeline", ["pointcls", "partseg", "normals"])
def test_files_with_fewer_points_than_in_training_are_reported(tmp_path, pipeline):
    files = tiny.write_files(tmp_path / "in", 2)  # as many as in training
    small = tmp_path / "in" / "mug" / "small.ply"
    small.parent.mkdir(exist_ok=True)
    write_cloud(small, ball(11))
    *enough, few = tiny.apply(pipeline, files, tmp_path / "out").predictions
    assert [each["warnings"] for each in enough] == [[], []]
    assert few["file"] == str(small) and "11 points" in few["warnings"][0]
    with open(tmp_path / "out" / "predictions.csv", newline="") as file:
        assert [row["warnings"] for row in csv.DictReader(file)] == ["", "", *few["warnings"]]


def test_coincident_points_among_enough_others_are_no_few(tmp_path):
    pos = torch.randint(6, (3000, 3), generator=generator(0)).double()
    write_cloud(tmp_path / "grid.ply", pos)
    assert len(np.unique(read_cloud(tmp_path / "grid.ply", 40)["pos"], axis=0)) < 40
    (entry,) = tiny.apply("pointcls", tmp_path / "grid.ply", tmp_path / "out").predictions
    assert entry["warnings"] == []


def test_a_bad_file_is_an_error_without_lists_or_is_left_out(tmp_path):
    files = tiny.write_files(tmp_path / "in")
    (files / "broken.npz").write_bytes(b"PK\x03\x04 garbled")
    (files / "empty.xyz").write_text("")
    with pytest.raises(DGLError, match=r"broken\.npz.*--skip-bad"):
        tiny.apply("pointcls", files, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(DGLError, match=r"broken\.npz.*--skip-bad"):
        tiny.apply("normals", files, tmp_path / "out", batch_size=1)
    assert not (tmp_path / "out").exists()
    result = tiny.apply("pointcls", files, tmp_path / "out", skip_bad=True)
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
    with pytest.raises(DGLError, match=r"large\.npz.*--skip-bad"):
        tiny.apply(pipeline, folder, tmp_path / "out")
    result = tiny.apply(pipeline, folder, tmp_path / "out", skip_bad=True)
    assert len(result.predictions) == len(result.skipped) == 1


def test_columns_of_tables_can_be_chosen(tmp_path):
    pos = ball(40).numpy()
    np.savetxt(tmp_path / "plain.xyz", pos)
    np.savetxt(tmp_path / "more.xyz", np.column_stack([np.full(40, 7), pos, 255 * np.ones((40, 3))]))
    with pytest.raises(DGLError, match="--columns") as caught:
        tiny.apply("pointcls", tmp_path / "more.xyz", tmp_path / "out")
    assert "0,1,2" not in str(caught.value)  # which are not the coordinates
    np.savetxt(tmp_path / "named.csv", np.column_stack([np.arange(40), pos]), "%.18g", ",", header="id,x,y,z")
    (plain,) = tiny.apply("pointcls", tmp_path / "plain.xyz", tmp_path / "plain").predictions
    (more,) = tiny.apply("pointcls", tmp_path / "more.xyz", tmp_path / "more", columns=(1, 2, 3)).predictions
    (named,) = tiny.apply("pointcls", tmp_path / "named.csv", tmp_path / "named").predictions
    assert plain["probabilities"] == more["probabilities"] == named["probabilities"]


@pytest.mark.parametrize("network", ["pointcls", "normals"])
def test_all_clouds_of_an_array_are_predicted_as_from_files_of_their_own(tmp_path, network):
    clouds = np.random.default_rng(0).normal(size=(3, 60, 3))
    folder = tmp_path / "in"
    folder.mkdir()
    np.save(folder / "several.npy", clouds)
    for number, cloud in enumerate(clouds):
        np.save(folder / f"{number}.npy", cloud)
    applied = tiny.apply(network, [folder], tmp_path / "out")
    *alone, first, second, third = applied.predictions
    assert [each["file"] for each in (first, second, third)] == [
        str(folder / "several.npy" / str(number)) for number in range(3)
    ]
    for one, other in zip(alone, (first, second, third)):
        if network == "pointcls":
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
        else:
            paths = (Path(each["output"]) for each in (one, other))
            one, other = (read_cloud(path)["normal"] for path in paths)
            np.testing.assert_allclose(one, other, atol=1e-4)


def test_nothing_but_bad_files_is_an_error(tmp_path):
    (tmp_path / "empty.xyz").write_text("")
    with pytest.raises(DGLError, match=r"empty\.xyz"):
        tiny.apply("pointcls", tmp_path / "empty.xyz", tmp_path / "out", skip_bad=True)


@pytest.mark.parametrize("name", ["nowhere.ply", "notes.md"])
def test_a_file_that_is_absent_or_of_no_format_is_named(tmp_path, name):
    (tmp_path / "notes.md").touch()
    with pytest.raises(DGLError, match=name):
        tiny.apply("pointcls", tmp_path / name, tmp_path / "out")


def test_votes_outliers_and_unknown_reach_the_network(tmp_path, monkeypatch):
    write_cloud(tmp_path / "cloud.ply", torch.cat([ball(90), 30 + ball(1)]))
    plain, voted, kept = (
        tiny.apply("pointcls", tmp_path / "cloud.ply", tmp_path / str(number), **options).predictions[0]
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


@pytest.mark.parametrize(
    "options, words", [({"file_format": "obj"}, "obj"), ({"batch_size": 0}, "batch_size")]
)
def test_bad_options_are_sentences(tmp_path, options, words):
    write_cloud(tmp_path / "cloud.ply", ball())
    with pytest.raises(DGLError, match=words):
        tiny.apply("normals", tmp_path / "cloud.ply", tmp_path / "out", **options)


@pytest.mark.parametrize("device", ["cuda:99", "cuda:200", "foo", "mps"])
def test_a_device_that_is_not_there_is_a_sentence(tmp_path, device):
    with pytest.raises(DGLError, match=device):
        tiny.apply("pointcls", tiny.write_files(tmp_path / "in", 1), tmp_path / "out", device=device)


@pytest.mark.parametrize("size, most", [(1, 4), (4, 4), (5, 4), (8, 4), (103, 40), (7, None)])
def test_every_point_belongs_to_one_piece(size, most):
    pieces = list(split_points(size, most, seed=0))
    own = np.concatenate([rows[:count] for rows, count in pieces])
    assert sorted(own) == list(range(size))
    for rows, _ in pieces:
        assert len(set(rows)) == len(rows) == min(size, most or size)


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
    together = tiny.apply(pipeline, folder, tmp_path / "out").predictions
    assert len(together) == (2 if pipeline == "nbody" else 4)
    for entry in together:
        alone = tiny.apply(pipeline, entry["file"], tmp_path / "alone", overwrite=True).predictions[0]
        assert alone.keys() == entry.keys()
        if pipeline == "pointcls":
            assert alone["probabilities"] == pytest.approx(entry["probabilities"], abs=1e-4)
