"""The command line for molecules: from files to a table, and to a picture."""

import csv
import json

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient import pretrained
from dgl_orient.config.recipe import check
from dgl_orient.data import read_molecules
from dgl_orient.geometry import random_rotation
from dgl_orient.go import apply as go_apply
from dgl_orient.go.configure import configure, configure_apply
from dgl_orient.go.export import script_of
from dgl_orient.go.view_cloud import view_cloud, view_folder
from dgl_orient.go.view_run import view_run
from tests.go import tiny
from tests.molecules import SYMBOLS, random_molecule

pytest.importorskip("ase")


def xyz(element, pos):
    lines = [f"{SYMBOLS[z]} {x:.6f} {y:.6f} {w:.6f}" for z, (x, y, w) in zip(element, pos)]
    return "\n".join([str(len(lines)), "", *lines, ""])


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(5)
    frames = [xyz(*random_molecule(rng, number)) for number in (5, 6, 4)]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "two.xyz").write_text("".join(frames[:2]))
    (tmp_path / "mine" / "one.xyz").write_text(frames[2])
    return tmp_path / "mine"


def table(applied):
    with open(applied.folder / "predictions.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_each_molecule_has_a_row_of_its_properties(folder, tmp_path):
    applied = tiny.apply("molprop", folder, tmp_path / "out")
    rows = table(applied)
    assert [row["molecule"] for row in rows] == ["", "0", "1"] and [row["atoms"] for row in rows] == [
        "4",
        "5",
        "6",
    ]
    trained = pretrained(tiny.trained("molprop"))
    for row, prediction in zip(rows, trained.predict(folder)):
        assert float(row["alpha"]) == pytest.approx(prediction["properties"]["alpha"], rel=1e-5)
        assert row["formula"] == prediction["formula"]
    written = json.loads((applied.folder / "predictions.json").read_text())
    assert written["units"] == {"alpha": "Bohr³", "gap": "eV"} and len(written["predictions"]) == 3


def test_tensors_of_a_rotated_file_are_rotated(folder, tmp_path):
    (molecule,) = read_molecules(folder / "one.xyz")
    rotation = random_rotation(dtype=torch.float64).numpy()
    (tmp_path / "rotated.xyz").write_text(xyz(molecule.element, molecule.pos @ rotation.T))
    tensors = []
    for number, path in enumerate((folder / "one.xyz", tmp_path / "rotated.xyz")):
        (row,) = table(tiny.apply("moltensor", path, tmp_path / str(number)))
        components = (float(row[f"polarizability_{name}"]) for name in ("xx", "xy", "xz", "yy", "yz", "zz"))
        xx, xy, xz, yy, yz, zz = components
        tensors.append(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    np.testing.assert_allclose(rotation @ tensors[0] @ rotation.T, tensors[1], atol=1e-3)


def test_predictions_for_the_data_set_stand_beside_the_true_properties(tmp_path):
    trained = pretrained(tiny.trained("molprop"))
    applied = go_apply.apply_data(trained, trained.recipe["data"], "test", tmp_path, progress=False)
    rows = table(applied)
    errors = [abs(float(row["alpha"]) - float(row["true_alpha"])) for row in rows]
    assert np.mean(errors) == pytest.approx(trained.scores["test"]["mae_alpha"], rel=1e-4)
    with pytest.raises(DGLError):
        go_apply.apply_data(trained, {**trained.recipe["data"], "targets": ["u0"]}, "test", tmp_path / "b")


def test_bad_molecules_are_a_sentence_or_skipped(folder, tmp_path):
    (folder / "bad.xyz").write_text("3\n\nO 0 0 0\n")
    (folder / "gold.xyz").write_text("1\n\nAu 0 0 0\n")
    (folder / "notes.md").write_text("")
    with pytest.raises(DGLError, match="bad.xyz as a molecule.*--skip-bad"):
        tiny.apply("molprop", folder, tmp_path / "out")
    applied = tiny.apply("molprop", folder, tmp_path / "out", skip_bad=True)
    assert len(applied.predictions) == 3 and len(applied.skipped) == 2
    assert "atomic number 79" in applied.skipped[1]["reason"] and applied.unsupported[0].name == "notes.md"


def test_graphs_and_mappings_are_molecules_too():
    trained = pretrained(tiny.trained("molprop"))
    pos, element = np.array([[0.0, 0, 0], [0, 0, 1.1]]), np.array([6, 8])
    (prediction,) = trained.predict({"pos": pos, "element": element})
    assert prediction["formula"] == "CO"
    with pytest.raises(DGLError, match="Expected element, 2 atomic numbers"):
        trained.predict(pos)


@pytest.mark.parametrize("pipeline", ["molprop", "moltensor"])
def test_a_molecule_is_drawn_with_its_orientations(pipeline, folder, tmp_path):
    path = view_cloud(folder / "two.xyz", tiny.trained(pipeline), tmp_path / "molecule.html", num_poses=2)
    page = path.read_text()
    assert "element" in page and "pose 2" in page
    assert (
        view_folder(folder, tiny.trained(pipeline), tmp_path / "all.png", progress=False).stat().st_size
        > 5000
    )


def test_a_training_is_drawn_with_its_predictions(tmp_path):
    results = tiny.trained("molprop").parent
    assert view_run(results, tmp_path / "training.png", progress=False).stat().st_size > 5000


@pytest.mark.parametrize("pipeline", ["molprop", "moltensor"])
def test_recipes_are_configured_and_exported(pipeline, tmp_path):
    path = configure(pipeline, "qm9", "oriented-mol", tmp_path / "cfg.yaml", size="small")
    assert "targets" in path.read_text() and "references" not in path.read_text()
    source = script_of(check(tiny.recipe(pipeline)))
    compile(source, "script.py", "exec")
    assert "OrientedMol(**train_set.outputs" in source
    path = configure_apply(pipeline, tiny.trained(pipeline), cfg=tmp_path / "apply.yaml")
    assert "skip_bad" in path.read_text()
