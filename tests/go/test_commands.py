"""The commands on small trainings: they agree with each other, and nothing is lost by wrong calls."""

import json
import os

import numpy as np
import pytest
import torch
import yaml
from dgl import DGLError

from dgl_orient.data import write_cloud
from dgl_orient.train import checkpoint
from dgl_orient.weights import checkpoint_path
from tests.go.cli_runner import run_cli
from tests.go.hostile import GOOD


def test_each_training_has_a_folder_and_the_last_is_resumed(training, capfd):
    first, second = (training / "results" / number for number in ("001", "002"))
    results = json.loads((first / "results.json").read_text())
    assert set(results["metrics"]["test"]) >= {"accuracy"}
    before = (first / "run_0.pth").read_bytes()
    code, _, err = run_cli(capfd, "train", "--cfg", training / "cfg.yaml")
    assert code == 0 and str(second) in err
    assert (first / "run_0.pth").read_bytes() == before
    assert checkpoint_path(training / "results") == second / "run_0.pth"
    assert run_cli(capfd, "train", "--cfg", training / "cfg.yaml", "--resume", "--quiet") == (0, "", "")
    assert not (training / "results" / "003").exists()


def test_apply_directly_and_by_recipe(training, in_folder, capfd):
    write_cloud(in_folder / "cloud.ply", np.random.default_rng(0).random((50, 3)))
    checkpoint = training / "results" / "001" / "run_0.pth"
    code, out, err = run_cli(capfd, "apply", "--cpt", checkpoint, "cloud.ply", "--out", "first")
    assert code == 0, err
    assert "predictions.json" in out
    first = json.loads((in_folder / "first" / "predictions.json").read_text())
    assert run_cli(capfd, "configure-apply", "pointcls", "--cpt", checkpoint, "--cfg", "apply.yaml")[0] == 0
    recipe = yaml.safe_load((in_folder / "apply.yaml").read_text())
    recipe["data"]["raw_dir"] = "cloud.ply"
    recipe["general_pipeline"]["save_path"] = "second"
    (in_folder / "apply.yaml").write_text(yaml.safe_dump(recipe))
    assert run_cli(capfd, "apply", "--cfg", "apply.yaml", "--quiet") == (0, "", "")
    assert json.loads((in_folder / "second" / "predictions.json").read_text()) == first


def test_names_of_files_are_no_formulas(in_folder, capfd):
    for name in ("scan_$5_$.ply", os.fsdecode(b"\xff.ply")):
        try:
            write_cloud(in_folder / name, np.random.default_rng(0).random((50, 3)))
        except DGLError:  # not every file system has such names
            continue
        code, _, err = run_cli(capfd, "view", name, "--out", "view.png", "--seed", 10**20)
        assert code == 0, err


@pytest.mark.parametrize("output", [".", "", ".."])
def test_scripts_need_a_name(training, output, in_folder, capfd):
    code, _, err = run_cli(capfd, "export", "--cfg", training / "cfg.yaml", "--output", output)
    assert code == 2 and err.count("\n") == 1 and "write" in err


def test_warnings_are_sentences(training, in_folder, capfd):
    write_cloud(in_folder / "small.ply", np.random.default_rng(0).random((9, 3)))
    given = ["apply", "--cpt", training / "results" / "001" / "run_0.pth", "small.ply"]
    code, out, err = run_cli(capfd, *given)
    assert (code, err) == (0, "") and "  small.ply: 9 points" in out
    assert run_cli(capfd, *given, "--quiet") == (0, "", "")


def test_apply_prints_the_prediction_and_keeps_earlier_results(training, in_folder, capfd):
    write_cloud(in_folder / "cloud.ply", np.random.default_rng(0).random((50, 3)))
    (in_folder / "b.docx").touch()
    given = ["apply", "--cpt", training / "results" / "001" / "run_0.pth", "."]
    code, out, err = run_cli(capfd, *given)
    (entry,) = json.loads((in_folder / "apply_results" / "predictions.json").read_text())["predictions"]
    row = next(line for line in out.splitlines() if line.startswith("cloud.ply"))
    assert (code, err) == (0, "") and row.split()[1:3] == [entry["class"], f"{entry['probability']:.1%}"]
    assert "  b.docx" in out.splitlines()
    assert run_cli(capfd, *given, "--quiet")[0] == 0 and (in_folder / "apply_results_2").exists()
    code, out, err = run_cli(capfd, *given, "--out", "apply_results")
    assert code == 2 and "--overwrite" in err and err.count("\n") == 1
    assert run_cli(capfd, *given, "--out", "apply_results", "--overwrite", "--quiet") == (0, "", "")


def test_a_recipe_has_the_options_of_apply(training, in_folder, capfd):
    write_cloud(in_folder / "cloud.ply", np.random.default_rng(0).random((50, 3)))
    checkpoint = training / "results" / "001" / "run_0.pth"
    assert run_cli(capfd, "configure-apply", "pointcls", "--cpt", checkpoint, "--cfg", "apply.yaml")[0] == 0
    recipe = yaml.safe_load((in_folder / "apply.yaml").read_text())
    recipe["data"]["raw_dir"] = "cloud.ply"
    recipe["general_pipeline"] |= {"votes": 3, "remove_outliers": False, "allow_unknown": False}
    recipe["general_pipeline"]["save_path"] = "recipe"
    (in_folder / "apply.yaml").write_text(yaml.safe_dump(recipe))
    assert run_cli(capfd, "apply", "--cfg", "apply.yaml", "--quiet") == (0, "", "")
    code, _, err = run_cli(capfd, "apply", "--cfg", "apply.yaml", "--quiet")
    assert code == 2 and "overwrite: true" in err
    flags = ["--votes", "3", "--keep-outliers", "--no-unknown", "--out", "flags", "--quiet"]
    assert run_cli(capfd, "apply", "--cpt", checkpoint, "cloud.ply", *flags) == (0, "", "")
    by_recipe, by_flags = (
        json.loads((in_folder / folder / "predictions.json").read_text())["predictions"]
        for folder in ("recipe", "flags")
    )
    assert by_recipe == by_flags


def test_apply_to_the_data_set_of_the_training(training, in_folder, capfd):
    checkpoint = training / "results" / "001" / "run_0.pth"
    words = ["configure-apply", "pointcls", "--data", "shapes", "--cpt", checkpoint, "--cfg", "apply.yaml"]
    assert run_cli(capfd, *words)[0] == 0
    code, out, err = run_cli(capfd, "apply", "--cfg", "apply.yaml")
    assert code == 0 and "predictions.csv" in out, err
    stored = json.loads((in_folder / "apply_results" / "predictions.json").read_text())["predictions"]
    assert [each["file"] for each in stored] == [f"test/{number:05d}" for number in range(20)]
    assert run_cli(capfd, "export", "--cfg", "apply.yaml", "--output", "own.py")[0] == 0
    compile((in_folder / "own.py").read_text(), "own.py", "exec")


def test_configure_train_export_agree(training, in_folder, capfd):
    assert run_cli(capfd, "configure", "pointcls", "--data", "shapes", "--model", "dgcnn")[0] == 0
    code, out, _ = run_cli(capfd, "export", "--cfg", "pointcls_shapes_dgcnn.yaml", "--output", "train.py")
    assert code == 0 and "train.py" in out
    compile((in_folder / "train.py").read_text(), "train.py", "exec")


def test_what_this_machine_cannot_do_is_an_error_before_any_work(in_folder, capfd, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    recipe = yaml.safe_load(GOOD) | {"device": "cuda:0"}
    recipe["general_pipeline"]["num_workers"] = 10**6
    (in_folder / "cfg.yaml").write_text(yaml.safe_dump(recipe))
    code, _, err = run_cli(capfd, "train")
    assert code == 2 and err.count("\n") == 2 and "finds no GPU" in err and "num_workers" in err
    assert not (in_folder / "results").exists()


def test_writing_where_nothing_can_be_written(in_folder, capfd):
    names = ["--data", "shapes", "--model", "dgcnn"]
    code, _, err = run_cli(capfd, "configure", "pointcls", *names, "--cfg", "no/such/folder/cfg.yaml")
    assert code == 2 and "no/such/folder" in err and err.count("\n") == 1
    assert not list(in_folder.iterdir())


def test_a_script_never_replaces_its_recipe(training, in_folder, capfd):
    text = (training / "cfg.yaml").read_text()
    (in_folder / "cfg.yaml").write_text(text)
    code, out, err = run_cli(capfd, "export", "--output", "../" + in_folder.name + "/cfg.yaml")
    assert (code, out) == (2, "") and "over the recipe" in err
    assert (in_folder / "cfg.yaml").read_text() == text


def test_apply_by_recipe_asks_for_a_network_of_its_pipeline(training, in_folder, capfd):
    checkpoint = training / "results" / "001" / "run_0.pth"
    assert run_cli(capfd, "configure-apply", "pointcls", "--cpt", checkpoint, "--cfg", "apply.yaml")[0] == 0
    recipe = yaml.safe_load((in_folder / "apply.yaml").read_text())
    recipe["data"]["raw_dir"], recipe["pipeline_name"] = "cloud.ply", "normals"
    (in_folder / "apply.yaml").write_text(yaml.safe_dump(recipe))
    code, out, err = run_cli(capfd, "apply", "--cfg", "apply.yaml")
    assert (code, out) == (2, "") and "is of the pipeline 'pointcls', not 'normals'" in err


@pytest.mark.parametrize(
    "change",
    [{"plugins": 5}, {"device": torch.ones(2)}, {"data": {"name": "shapes", "split": torch.ones(1)}}],
)
def test_recipes_of_untrusted_checkpoints_are_checked_first(change, training, in_folder, capfd):
    state = checkpoint.load(training / "results" / "001" / "run_0.pth")
    checkpoint.save(in_folder / "strange.pth", state | {"recipe": state["recipe"] | change})
    code, out, err = run_cli(capfd, "configure-apply", "pointcls", "--cpt", "strange.pth", "--data", "shapes")
    assert (code, out) == (2, "") and "strange.pth" in err
    code, out, err = run_cli(capfd, "view", "x.ply", "--cpt", "strange.pth", "--allow-plugins")
    assert (code, out) == (2, "") and err.count("\n") == 1
