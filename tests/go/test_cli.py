"""The command line: commands, exit codes, sentences, and what it does not import."""

import importlib.metadata
import sys

import pytest

from dgl_orient.go import cli, recipes
from tests.go.cli_runner import run_cli, start_process
from tests.go.hostile import GOOD, HOSTILE


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["recipe", "list"],
        ["configure", "--help"],
        ["configure", "pointcls", "--help"],
        ["train", "--help"],
        ["apply", "--help"],
        ["view", "--help"],
    ],
    ids=" ".join,
)
def test_help_and_list_need_no_torch(arguments, tmp_path):
    for name in ("torch", "dgl", "numpy", "dglgo", "matplotlib", "plotly"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemError('{name} was imported')")
    process = start_process(*arguments, folder=tmp_path, path=[str(tmp_path)])
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.startswith("====" if "list" in arguments else "Usage: dgl-orient")


def test_help_names_all_verbs_and_pipelines(capfd):
    _, out, _ = run_cli(capfd, "--help")
    for verb in ("configure", "configure-apply", "train", "apply", "export", "recipe", "Examples:"):
        assert verb in out
    _, out, _ = run_cli(capfd, "configure", "--help")
    for pipeline in ("pointcls", "partseg", "normals", "nbody", "nodepred", "linkpred", "graphpred"):
        assert f"\n  {pipeline} " in out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["trian"], "No such command"),
        (["train", "--cgf", "x"], "No such option"),
        (["train", "--cfg", "nowhere.yaml"], "Cannot read 'nowhere.yaml': no such file"),
        (["train", "--cfg", "."], "Cannot read '.': is a directory"),
        (["export", "--cfg", "nowhere.yaml"], "Cannot read 'nowhere.yaml'"),
        (["apply"], "Name files or folders to predict, or give --cfg FILE"),
        (["apply", "--cpt", "x.pth"], "Name files or folders"),
        (["apply", "--cpt", "x.pth", "a.ply"], "x.pth"),
        (["apply", "--cpt", "oriented-dgcnn-modelnet", "a.ply"], "did you mean 'oriented-dgcnn-modelnet40'?"),
        (["apply", "--cfg", "x.yaml", "--cpt", "x.pth"], "With --cfg the recipe says cpt"),
        (["apply", "--cfg", "x.yaml", "--seed", "3"], "With --cfg the recipe says seed"),
        (["configure", "pointcls", "--data", "shapes"], "in --model"),
        (["configure", "pointcls", "--data", "shapse", "--model", "dgcnn"], "did you mean 'shapes'?"),
        (
            ["configure", "pointcls", "--data", "shapes", "--model", "egnn"],
            "'egnn' is not known for pointcls",
        ),
        (["configure", "nodepred", "--data", "corra", "--model", "gcn"], "'corra' is not one of 'cora'"),
        (["configure-apply", "pointcls", "--cpt", "nowhere.pth"], "nowhere.pth"),
    ],
)
def test_user_errors_are_sentences(arguments, words, in_folder, capfd):
    code, out, err = run_cli(capfd, *arguments)
    assert (code, out) == (2, "") and words in err and "Traceback" not in err
    assert not list(in_folder.iterdir())


@pytest.mark.parametrize("verb", ["train", "export"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_recipes_end_in_sentences(name, verb, in_folder, capfd):
    text, words = HOSTILE[name]
    (in_folder / "cfg.yaml").write_text(text)
    code, out, err = run_cli(capfd, verb)
    assert (code, out) == (2, ""), err
    assert words in err and "Traceback" not in err
    assert all(line.isprintable() and len(line) < 1000 for line in err.splitlines())
    assert [path.name for path in in_folder.iterdir()] == ["cfg.yaml"]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00a", b"caf\xe9: 1", b"a: \x00", b"\x89PNG\r\n", b"\n" * 9]
)
def test_files_that_are_no_text(content, in_folder, capfd):
    (in_folder / "cfg.yaml").write_bytes(content)
    code, _, err = run_cli(capfd, "train", "--cfg", "cfg.yaml")
    assert code == 2 and "cfg.yaml" in err and err.count("\n") == 1


PLUGIN = """
from pathlib import Path
from dgl_orient.config.registry import register_model
from dgl_orient.models import DGCNN

Path("imported").touch()

@register_model("allowed-net", pipelines=["pointcls"])
class AllowedNet(DGCNN):
    pass
"""


def test_plugins_run_only_if_allowed(in_folder, capfd, monkeypatch):
    monkeypatch.syspath_prepend(in_folder)
    (in_folder / "plugin_of_recipe.py").write_text(PLUGIN)
    recipe = GOOD.replace("dgcnn", "allowed-net") + "plugins: [plugin_of_recipe]\n"
    (in_folder / "cfg.yaml").write_text(recipe)
    for verb in ("train", "export"):
        code, _, err = run_cli(capfd, verb)
        assert code == 2 and "--allow-plugins" in err
        assert "plugin_of_recipe" not in sys.modules and not (in_folder / "imported").exists()
    code, _, err = run_cli(capfd, "export", "--allow-plugins")
    assert code == 0, err
    assert (in_folder / "imported").exists()
    assert "from plugin_of_recipe import AllowedNet" in (in_folder / "script.py").read_text()
    del sys.modules["plugin_of_recipe"]


def test_errors_of_the_network_are_sentences():
    assert cli._sentence(ConnectionError("no route\nto the host")) == "Cannot go on: no route."
    assert cli._sentence(OSError(2, "No such file", "x.yaml")) == "Cannot use x.yaml: no such file."
    assert cli._sentence(RuntimeError("of ours")) is None


def test_the_version_is_that_of_the_package(capfd):
    assert run_cli(capfd, "--version") == (0, f"{importlib.metadata.version('dgl-orient')}\n", "")


def test_bugs_are_not_hidden(monkeypatch):
    monkeypatch.setattr(recipes, "recipe_table", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.run(["recipe", "list"])
