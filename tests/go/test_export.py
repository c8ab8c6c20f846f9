"""Exported scripts: they run on their own, train as the recipe does, and hold nothing unchecked."""

from __future__ import annotations

import ast
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.config.registry import register_data, register_model
from dgl_orient.data import Shapes
from dgl_orient.go.export import _literal, script_of
from dgl_orient.models import DGCNN
from dgl_orient.train import Settings, checkpoint
from tests.go import tiny

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _run(recipe: dict) -> None:
    """Run the script of a recipe in this folder."""
    Path("script.py").write_text(script_of(recipe))
    runpy.run_path("script.py", run_name="__main__")


def _run_alone(recipe: dict) -> None:
    """The same in a process of its own, in which dglgo cannot be imported."""
    Path("script.py").write_text(script_of(recipe))
    Path("blocked").mkdir()
    Path("blocked", "dglgo.py").write_text("raise ImportError('not needed')")
    path = os.pathsep.join([os.path.abspath("blocked"), ROOT])
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "script.py"]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "pipeline, model",
    [*((pipeline, None) for pipeline in tiny.PIPELINES), ("partseg", tiny.PLAIN), ("normals", tiny.PLAIN)],
    ids=[*tiny.PIPELINES, "plain partseg", "plain normals"],
)
def test_a_script_trains_as_its_recipe_does(pipeline, model, in_folder):
    general = dict(num_epochs=2, grad_clip=1.0, seed=3, lr_scheduler={"name": "cosine", "warmup_epochs": 1})
    if pipeline != "nbody":
        general |= dict(augmentation={"scale": [0.6666666, 1.5], "jitter": 0.01})
    if pipeline == "normals":
        general |= dict(signed=False)
    if pipeline == "pointcls":
        general |= dict(label_smoothing=0.2)
    recipe = tiny.recipe(pipeline, model=model, **general)
    (_run_alone if pipeline == "pointcls" else _run)(recipe)  # a process of its own takes seconds to start
    tiny.train(recipe, in_folder / "trained")
    script, trained = (checkpoint.load(in_folder / each / "run_0.pth") for each in ("results/001", "trained"))
    assert script["weights"].keys() == trained["weights"].keys()
    for name, value in trained["weights"].items():
        torch.testing.assert_close(script["weights"][name], value, rtol=1e-4, atol=1e-5)
    assert script["tests"]["test"] == pytest.approx(trained["tests"]["test"], abs=1e-3)
    assert script["model"] == trained["model"] and script["metadata"] == trained["metadata"]
    loaded = dgl_orient.pretrained(in_folder / "results").network
    torch.testing.assert_close(loaded.state_dict(), dict(script["weights"]), rtol=0, atol=0)


VARIANTS = {
    "step": dict(lr_scheduler={"name": "step", "step_size": 1}, optimizer={"name": "sgd", "lr": 0.1}),
    "plateau": dict(lr_scheduler={"name": "plateau"}, optimizer={"name": "adamw"}, num_runs=3),
    "none": dict(lr_scheduler={"name": "none"}, bf16=True, early_stop={"patience": 3}),
    "cosine": dict(label_smoothing=0.2, num_workers=2, save_path="folder with 'quotes' and \"more\""),
    "augmentation": dict(
        augmentation={
            "anisotropic_scale": [0.8, 1.25],
            "point_dropout": 0.5,
            "num_points": 30,
            "farthest": True,
        }
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_all_settings_give_code_of_our_style(name, tmp_path):
    source = script_of(tiny.recipe("pointcls", **VARIANTS[name]))
    compile(source, "script.py", "exec")
    ruff = shutil.which("ruff", path=os.path.dirname(sys.executable)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    path = tmp_path / "script.py"
    path.write_text(source)
    options = ["--config", os.path.join(ROOT, "pyproject.toml"), str(path)]
    subprocess.run([ruff, "check", *options], check=True)
    if name != "cosine":  # which has a string whose quotes ruff would change
        subprocess.run([ruff, "format", "--check", *options], check=True)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_settings_of_a_script_are_those_of_its_recipe(name):
    recipe = tiny.recipe("pointcls", **VARIANTS[name])
    tree = ast.parse(script_of(recipe))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    (call,) = (each for each in calls if getattr(each.func, "id", "") == "Settings")
    given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    assert Settings.of(given) == Settings.of(recipe["general_pipeline"])


HOSTILE = [
    "'); import os; os.system('touch owned'); ('",
    '""" import os """',
    "{{ 7 * 7 }}{% raw %}",
    "\\",
    "ünï 'c' \"d\"",
    "rés😀ultats",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_strings_of_a_recipe_stay_strings(text):
    recipe = tiny.recipe("pointcls")
    recipe["general_pipeline"]["save_path"] = recipe["data"]["save_dir"] = text
    tree = ast.parse(script_of(recipe))
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert values.count(text) == 4  # the folder, and where three data sets are kept
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names <= {"os"}
    calls = [
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "id")
    ]
    assert not {"exec", "eval", "__import__"} & set(calls)


@pytest.mark.parametrize("value", [object(), float("nan"), lambda: 0, DGCNN, (x for x in "a")])
def test_only_plain_values_are_written(value):
    with pytest.raises(DGLError):
        _literal(value)


def test_a_network_of_ones_own_is_imported_from_its_module():
    register_model("exported-net", ["pointcls"])(_Own)
    text = script_of(tiny.recipe("pointcls", model={"name": "exported-net", "k": 5}))
    assert f"from {_Own.__module__} import _Own" in text and "_Own(train_set.num_classes, k=5)" in text


class _Own(DGCNN):
    """A network of a user."""


def test_a_class_inside_a_function_cannot_be_exported():
    class Hidden(DGCNN):
        pass

    register_model("hidden-net", ["pointcls"])(Hidden)
    with pytest.raises(DGLError):
        script_of(tiny.recipe("pointcls", model={"name": "hidden-net"}))


class _Unlabelled(Shapes):
    """Shapes of one class that say neither their class nor how many there are."""

    def __init__(self, split="train", num_points=40, num_shapes=10, transform=None, seed=0):
        super().__init__(split, num_points, num_shapes, ["chair"], transform=transform, seed=seed)
        del self.num_classes

    def __getitem__(self, idx):
        return super().__getitem__(idx)[0]


def test_parts_of_a_single_category_need_no_labels(in_folder):
    register_data("unlabelled", ["partseg"])(_Unlabelled)
    model = {**tiny.PLAIN, "name": "dgcnn"}
    recipe = tiny.recipe("partseg", {"name": "unlabelled", "num_shapes": 10}, model)
    results = tiny.train(recipe, in_folder / "trained")
    _run(recipe)
    score = checkpoint.load(in_folder / "results" / "001" / "run_0.pth")["tests"]["test"]["instance_miou"]
    assert score == pytest.approx(results["metrics"]["test"]["instance_miou"]["mean"], abs=1e-3)


def test_a_script_stops_where_the_loss_is_not_finite(in_folder):
    with pytest.raises(DGLError, match=r"lower optimizer.lr"):
        _run(tiny.recipe("nbody", optimizer={"name": "sgd", "lr": 1e20}, num_epochs=3))
    assert not (in_folder / "results" / "001" / "results.json").exists()


def test_a_script_that_is_run_again_keeps_what_was_trained(in_folder):
    _run(tiny.recipe("nbody"))
    before = (in_folder / "results" / "001" / "run_0.pth").read_bytes()
    _run(tiny.recipe("nbody"))
    assert (in_folder / "results" / "001" / "run_0.pth").read_bytes() == before
