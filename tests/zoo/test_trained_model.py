"""Models loaded from checkpoints, also from strange ones."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch
from dgl import DGLError
from torch import nn

from dgl_orient.models import OrientedDGCNN
from dgl_orient.train import checkpoint
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.trained_model import TrainedModel
from tests.clouds import ball
from tests.go import tiny


def test_the_network_of_a_checkpoint_is_the_trained_one():
    path = tiny.trained("pointcls")
    model = load_trained_model(path).network
    weights = checkpoint.load(path)["weights"]
    assert isinstance(model, OrientedDGCNN) and not model.training
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    trained = load_trained_model(path)
    assert (trained.pipeline, trained.num_points, trained.columns) == ("pointcls", 40, None)
    assert trained.metadata["class_names"][0] == "armchair"


def test_loading_a_model_leaves_the_generator_as_it_is():
    before = torch.get_rng_state()
    load_trained_model(tiny.trained("pointcls"))
    assert torch.equal(before, torch.get_rng_state())


def _changed(path, **changes):
    state = checkpoint.load(tiny.trained("pointcls"))
    state = {name: value for name, value in (state | changes).items() if value is not None}
    checkpoint.save(path, {name: state[name] for name in state if name not in ("format", "version")})
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": None},
        {"recipe": {}, "model": {}},
        {"metadata": {}},
        {"metadata": {"num_classes": "ten"}},
        {"metadata": {"num_classes": 11}},
        {"weights": {}},
        {"recipe": {"pipeline_name": "pointcls", "data": {"name": "os.system"}}},
    ],
)
def test_a_strange_checkpoint_is_an_error_that_names_it(tmp_path, changes):
    path = _changed(tmp_path / "strange.pth", **changes)
    with pytest.raises(DGLError, match="strange.pth|num_classes"):
        load_trained_model(path)


@pytest.mark.parametrize(
    "model",
    [
        {"embed_feats": 100_000, "head_feats": [100_000]},
        {"widths": [30_000, 30_000]},
        {"orientation": {"num_layers": 10**9}},
        {"orientation": {"hidden_vectors": 10**5}},
    ],
)
def test_a_strangers_checkpoint_does_not_fill_the_memory(tmp_path, model):
    recipe = tiny.recipe("pointcls", model={"name": "oriented-dgcnn", **model})
    repeated = {name: torch.zeros(1).expand(10**12) for name in ("first", "second")}
    path = _changed(tmp_path / "large.pth", recipe=recipe, weights=repeated)
    assert path.stat().st_size < 10_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DGLError, match="large.pth .*larger than its weights"):
        load_trained_model(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KiB


def _in_itself():
    endless = []
    endless.append(endless)
    return endless


def _doubled():
    """A list of 2 ** 40 ones, of which all but forty are the same."""
    ones = [1]
    for _ in range(40):
        ones = [ones, ones]
    return ones


@pytest.mark.parametrize(
    "changes",
    [
        {"recipe": {"plugins": torch.zeros(2)}},
        {"recipe": {"model": _in_itself()}},
        {"metadata": {"num_classes": 10, "class_names": torch.arange(10)}},
        {"tests": torch.zeros(2)},
        {"release": _in_itself()},
        {"metadata": {"class_names": _doubled()}},
    ],
    ids=["plugins", "endless", "names", "tests", "release", "doubled"],
)
def test_more_than_strings_and_numbers_beside_the_weights_is_refused(tmp_path, changes):
    recipe = checkpoint.load(tiny.trained("pointcls"))["recipe"]
    if "recipe" in changes:
        changes = {"recipe": recipe | changes["recipe"]}
    with pytest.raises(DGLError):
        load_trained_model(_changed(tmp_path / "strange.pth", **changes))


@pytest.mark.parametrize(
    "metadata, words",
    [
        ({"class_names": 5}, "class_names"),
        ({"class_names": [["a"]] * 10}, "class_names"),
        ({"class_names": ["a"]}, "class_names.* 1 for 10"),
        ({"part_names": 5}, "part_names"),
        ({"part_names": ["a"]}, "part_names.* 1 for 30"),
        ({"class_parts": [[0, 30]] * 10}, r"0 to 29.*\[0, 30\]"),
        ({"class_parts": [[-1]] * 10}, "0 to 29"),
        ({"class_parts": [[]] * 10}, "0 to 29"),
        ({"class_parts": [0] * 10}, "0 to 29"),
        ({"num_parts": 0}, "num_parts"),
    ],
)
def test_contradictory_metadata_are_refused(tmp_path, metadata, words):
    state = checkpoint.load(tiny.trained("partseg"))
    path = _changed(tmp_path / "parts.pth", **state | {"metadata": state["metadata"] | metadata})
    with pytest.raises(DGLError, match=words) as raised:
        load_trained_model(path)
    assert "parts.pth" in str(raised.value)


def test_a_guard_ends_with_the_network_it_is_for():
    model = nn.Linear(2000, 2000)
    with checkpoint.no_larger_than(model.state_dict()):
        nn.Linear(2000, 2000)
    shared = dict.fromkeys(map(str, range(2000)), torch.zeros(1000))
    for few in ({}, shared):
        with checkpoint.no_larger_than(few), pytest.raises(DGLError):
            nn.Linear(2000, 2000)
    nn.Linear(2000, 2000)


def test_the_number_of_points_is_that_of_the_test_set():
    def trained(num_points):
        recipe = {"data": {"name": "modelnet40", "raw_dir": "data", "num_points": num_points}}
        return TrainedModel(Path(), recipe, {}, None, None)

    assert trained({"train": 1024, "val": 256, "test": 200}).num_points == 200
    assert trained({"train": 512}).num_points == 1024  # the data set's own
    assert trained(64).num_points == 64


@pytest.mark.parametrize("scores", [None, 5])
def test_scores_that_are_none_are_refused(tmp_path, scores):
    with pytest.raises(DGLError, match="Expected scores in .*strange.pth to be a map"):
        load_trained_model(_changed(tmp_path / "strange.pth", release={"scores": scores}))


def test_clouds_with_as_many_points_as_in_training_are_not_called_small(tmp_path):
    tiny.train(tiny.recipe("pointcls", augmentation={"num_points": 24}), tmp_path)
    model = load_trained_model(tmp_path / "run_0.pth")
    few, enough = model.predict([ball(23), ball(24)], remove_outliers=False)
    assert [len(each.warnings) for each in (few, enough)] == [1, 0]
