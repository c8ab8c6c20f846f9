"""Exported scripts: they run on their own, train as the recipe does, and hold nothing unchecked."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from dgl import DGLError

from dgl_orient.config.registry import register_data, register_model
from dgl_orient.data import Shapes
from dgl_orient.go.export import _literal, export, script_of
from dgl_orient.models import DGCNN
from tests.go import tiny

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _run(path, folder) -> str:
    """What a script prints; dglgo cannot be imported while it runs."""
    blocked = folder / "blocked"
    blocked.mkdir(exist_ok=True)
    (blocked / "dglgo.py").write_text("raise ImportError('not needed')")
    environment = os.environ | {"PYTHONPATH": f"{blocked}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "pipeline, model",
    [*((pipeline, None) for pipeline in tiny.PIPELINES), ("partseg", tiny.PLAIN), ("normals", tiny.PLAIN)],
    ids=[*tiny.PIPELINES, "plain partseg", "plain normals"],
)
def test_a_script_trains_as_its_recipe_does(pipeline, model, tmp_path):
    general = dict(num_epochs=2, grad_clip=1.0, seed=3, lr_scheduler={"name": "cosine", "warmup_epochs": 1})
    if pipeline != "nbody":
        general |= dict(augmentation={"scale": [0.6666666, 1.5], "jitter": 0.01})
    if pipeline == "normals":
        general |= dict(signed=False)
    recipe = tiny.recipe(pipeline, model=model, **general)
    export(recipe, tmp_path / "script.py")
    printed = _run(tmp_path / "script.py", tmp_path)
    results = tiny.train(recipe, tmp_path / "trained")
    log = (tmp_path / "trained" / "run_0" / "log.jsonl").read_text().splitlines()
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", printed)]
    assert losses == pytest.approx([json.loads(line)["loss"] for line in log], rel=1e-4, abs=2e-6)
    metrics = results["metrics"]["test"]
    for name, value in re.findall(r"^(\w+): ([\d.]+) ±", printed, re.MULTILINE):
        assert float(value) == pytest.approx(metrics.pop(name)["mean"], abs=1e-3)
    assert not metrics
    assert (tmp_path / "results" / "weights_3.pth").exists()


VARIANTS = {
    "step": dict(lr_scheduler={"name": "step", "step_size": 1}, optimizer={"name": "sgd", "lr": 0.1}),
    "plateau": dict(lr_scheduler={"name": "plateau"}, optimizer={"name": "adamw"}, num_runs=3),
    "none": dict(lr_scheduler={"name": "none"}, bf16=True, early_stop={"patience": 3}),
    "cosine": dict(label_smoothing=0.2, num_workers=2, save_path="folder with 'quotes' and \"more\""),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_all_settings_give_code_of_our_style(name, tmp_path):
    text = script_of(tiny.recipe("pointcls", **VARIANTS[name]))
    compile(text, "script.py", "exec")
    assert ("autocast" in text) == (name == "none") and ("PATIENCE" in text) == (name == "none")
    ruff = shutil.which("ruff", path=os.path.dirname(sys.executable)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    path = tmp_path / "script.py"
    path.write_text(text)
    options = ["--config", os.path.join(ROOT, "pyproject.toml"), str(path)]
    subprocess.run([ruff, "check", *options], check=True)
    if name != "cosine":  # which has a text in whose quotes ruff would have a say
        subprocess.run([ruff, "format", "--check", *options], check=True)


def test_a_plateau_is_what_it_is_in_recipes():
    assert "threshold=0.0" in script_of(tiny.recipe("pointcls", **VARIANTS["plateau"]))


def test_the_sign_of_normals_changes_the_loss_and_the_choice_of_the_epoch():
    signed, unsigned = (
        script_of(tiny.recipe("normals", signed=value)).splitlines() for value in (True, False)
    )
    changed = [pair for pair in zip(signed, unsigned, strict=True) if pair[0] != pair[1]]
    assert ["cosine.abs()" in line for pair in changed for line in pair if "mean()" in line] == [False, True]
    metrics = [line for pair in changed for line in pair if "normal_error" in line]
    assert ["unsigned" in line for line in metrics] == [False, True] and len(changed) == 2


HOSTILE = [
    "'); import os; os.system('touch owned'); ('",
    '""" import os """',
    "{{ 7 * 7 }}{% raw %}",
    "\\",
    "ünï 'c' \"d\"",
    "rés😀ultats",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_of_a_recipe_stay_texts(text):
    recipe = tiny.recipe("pointcls")
    recipe["general_pipeline"]["save_path"] = recipe["data"]["save_dir"] = text
    tree = ast.parse(script_of(recipe))
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert values.count(text) == 4  # the folder, and where three data sets are kept
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names <= {"copy", "math", "os", "torch"}
    calls = [
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "id")
    ]
    assert not {"exec", "eval", "__import__"} & set(calls)


@pytest.mark.parametrize("value", [object(), float("nan"), lambda: 0, DGCNN, (x for x in "a")])
def test_only_plain_values_are_written(value):
    with pytest.raises(DGLError, match="plain value"):
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
    with pytest.raises(DGLError, match="top of a module"):
        script_of(tiny.recipe("pointcls", model={"name": "hidden-net"}))


def test_a_script_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DGLError, match="Cannot write"):
        export(tiny.recipe("pointcls"), tmp_path / "file" / "script.py")


class _Unlabelled(Shapes):
    """Shapes of one class that say neither their class nor how many there are."""

    def __init__(self, split="train", num_points=40, num_shapes=10, transform=None, seed=0):
        super().__init__(split, num_points, num_shapes, ["chair"], transform=transform, seed=seed)
        del self.num_classes

    def __getitem__(self, idx):
        return super().__getitem__(idx)[0]


def test_parts_of_a_single_category_need_no_labels(tmp_path):
    register_data("unlabelled", ["partseg"])(_Unlabelled)
    model = {**tiny.PLAIN, "name": "dgcnn"}
    recipe = tiny.recipe("partseg", {"name": "unlabelled", "num_shapes": 10}, model)
    results = tiny.train(recipe, tmp_path / "trained")
    export(recipe, tmp_path / "script.py")
    printed = _run(tmp_path / "script.py", tmp_path)
    score = float(re.search(r"^instance_miou: ([\d.]+) ±", printed, re.MULTILINE)[1])
    assert score == pytest.approx(results["metrics"]["test"]["instance_miou"]["mean"], abs=1e-3)


def test_a_script_stops_where_the_loss_is_not_finite(tmp_path):
    recipe = tiny.recipe("nbody", optimizer={"name": "sgd", "lr": 1e20}, num_epochs=3)
    export(recipe, tmp_path / "script.py")
    with pytest.raises(AssertionError, match=r"The loss is (nan|inf); lower LEARNING_RATE\."):
        _run(tmp_path / "script.py", tmp_path)
    assert not (tmp_path / "results").exists()


def test_fewer_epochs_than_the_rate_takes_to_rise(tmp_path):
    scheduler = {"name": "cosine", "warmup_epochs": 1}
    export(tiny.recipe("nbody", num_epochs=3, lr_scheduler=scheduler), tmp_path / "script.py")
    script = (tmp_path / "script.py").read_text()
    (tmp_path / "script.py").write_text(script.replace("NUM_EPOCHS = 3", "NUM_EPOCHS = 1"))
    assert "test, epoch 1" in _run(tmp_path / "script.py", tmp_path)
