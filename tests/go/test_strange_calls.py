"""Calls of the command line that nobody should make, and some that few do: nothing is lost by them."""

import subprocess
import sys
import textwrap

import pytest
import torch
import yaml

from dgl_orient.train import checkpoint
from tests.go.commands import answer, command


def test_a_script_never_replaces_its_recipe(training, in_folder, capfd):
    text = (training / "cfg.yaml").read_text()
    (in_folder / "cfg.yaml").write_text(text)
    code, out, err = answer(capfd, "export", "--output", "../" + in_folder.name + "/cfg.yaml")
    assert (code, out) == (2, "") and "over the recipe" in err
    assert (in_folder / "cfg.yaml").read_text() == text


def test_apply_by_recipe_asks_for_a_network_of_its_pipeline(training, in_folder, capfd):
    checkpoint = training / "results" / "run_0.pth"
    assert answer(capfd, "configure-apply", "pointcls", "--cpt", checkpoint, "--cfg", "apply.yaml")[0] == 0
    recipe = yaml.safe_load((in_folder / "apply.yaml").read_text())
    recipe["data"]["raw_dir"], recipe["pipeline_name"] = "cloud.ply", "normals"
    (in_folder / "apply.yaml").write_text(yaml.safe_dump(recipe))
    code, out, err = answer(capfd, "apply", "--cfg", "apply.yaml")
    assert (code, out) == (2, "") and "is of the pipeline 'pointcls', not 'normals'" in err


def test_recipes_are_copied_whole_or_not_at_all(in_folder):
    program = """
        import resource, signal, sys
        from dgl_orient.go import cli
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        sys.exit(cli.run(["recipe", "get", "nodepred_cora_gcn.yaml"]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 2 and "nodepred_cora_gcn.yaml: file too large" in done.stderr, done.stderr
    assert str(in_folder) in done.stderr and not list(in_folder.iterdir())


def test_names_that_a_terminal_cannot_show_are_escaped(training, in_folder):
    given = ["export", "--cfg", training / "cfg.yaml", "--output", "caf\u00e9.py"]
    done = command(*given, folder=in_folder, PYTHONUTF8="0", PYTHONIOENCODING="ascii:strict")
    assert done.returncode == 0 and "caf\\xe9.py" in done.stdout, done.stderr
    assert (in_folder / "café.py").exists()


def test_half_of_what_torchrun_says_is_a_sentence(training, in_folder):
    (in_folder / "cfg.yaml").write_text((training / "cfg.yaml").read_text())
    done = command("train", "--resume", folder=in_folder, WORLD_SIZE="2")
    assert done.returncode == 2 and "start them with torchrun" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", ["a network of ours", "1 2 3"])
def test_checkpoints_that_are_not_of_dglgo_are_refused(content, training, in_folder, capfd):
    path = training / "results" / "run_0.pth"
    if content != "a network of ours":
        path = in_folder / "points.xyz"
        path.write_text(content)
    for pipeline in ("nodepred", "graphpred"):
        code, out, err = answer(capfd, "configure-apply", pipeline, "--cpt", path)
        assert (code, out) == (2, "") and "Traceback" not in err and err.rstrip().endswith(".")


@pytest.mark.parametrize(
    "change",
    [{"plugins": 5}, {"device": torch.ones(2)}, {"data": {"name": "shapes", "split": torch.ones(1)}}],
)
def test_recipes_of_untrusted_checkpoints_are_checked_first(change, training, in_folder, capfd):
    state = checkpoint.load(training / "results" / "run_0.pth")
    checkpoint.save(in_folder / "strange.pth", state | {"recipe": state["recipe"] | change})
    code, out, err = answer(capfd, "configure-apply", "pointcls", "--cpt", "strange.pth", "--data", "shapes")
    assert (code, out) == (2, "") and "strange.pth" in err
    code, out, err = answer(capfd, "view", "x.ply", "--cpt", "strange.pth", "--allow-plugins")
    assert (code, out) == (2, "") and err.count("\n") == 1


def test_columns_of_many_digits_are_a_sentence(in_folder, capfd):
    code, out, err = answer(capfd, "view", "x.xyz", "--columns", "0,1," + "9" * 5000)
    assert (code, out) == (2, "") and "such as 0,1,2, got '0,1,999" in err and len(err) < 1000
