"""Reading and checking recipes: all problems are reported at once, and nothing is executed."""

import copy
from collections.abc import Mapping

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dgl_orient.config import recipe as recipes
from dgl_orient.config import registry
from dgl_orient.config.recipe import RecipeError, check, data_arguments
from dgl_orient.train.settings import Settings
from tests.go.hostile import GOOD

RECIPE = yaml.safe_load(GOOD)


def problems_of(recipe) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        check(recipe)
    return caught.value.problems


def test_good_recipe_is_filled_with_defaults():
    checked = check(RECIPE)
    assert checked["data"] == {"name": "shapes", "num_points": 64}
    assert checked["model"] == {"name": "dgcnn", "preset": "light"}
    of_other_tasks = {"signed": True, "part_balance": 0.0, "iou_loss": 0.0}
    assert checked["general_pipeline"] | of_other_tasks == Settings(num_epochs=1).as_dict()
    assert list(checked) == [
        *("version", "pipeline_name", "pipeline_mode", "device", "data", "model", "general_pipeline")
    ]


def test_checked_recipe_is_its_own_check():
    for pipeline, data, model in [
        ("pointcls", "shapes", "oriented-rscnn"),
        ("partseg", "shapes", "oriented-dgcnn"),
        ("normals", "shapes", "oriented-dgcnn"),
        ("partseg", "shapes", "dgcnn"),
        ("normals", "shapes", "dgcnn"),
        ("nbody", "charged", "egnn"),
    ]:
        once = check({"pipeline_name": pipeline, "data": {"name": data}, "model": {"name": model}})
        assert check(once) == once


def test_check_leaves_the_recipe_as_it_is():
    before = copy.deepcopy(RECIPE)
    check(RECIPE)
    assert before == RECIPE


def test_all_problems_are_listed_together_with_the_nearest_spelling():
    wrong = {
        "pipeline_name": "pointcl",
        "devise": "cpu",
        "data": {"name": "shape"},
        "model": {"name": "oriented_dgcnn"},
        "general_pipeline": {"num_epoch": 3, "optimizer": {"lr": "fast", "nam": "sgd"}, "protocol": "z/so2"},
    }
    text = "\n".join(problems_of(wrong))
    for words in [
        "devise: there is no such key; did you mean 'device'?",
        "pipeline_name: 'pointcl' is not known; did you mean 'pointcls'?",
        "data.name: 'shape' is not known; did you mean 'shapes'?",
        "model.name: 'oriented_dgcnn' is not known; did you mean 'oriented-dgcnn'?",
        "general_pipeline.num_epoch: there is no such key; did you mean 'num_epochs'?",
        "general_pipeline.optimizer.lr: expected a number, got 'fast'.",
        "general_pipeline.optimizer.nam: there is no such key; did you mean 'name'?",
        "general_pipeline.protocol: 'z/so2' is not known; did you mean 'z/so3'?",
    ]:
        assert words in text


@pytest.mark.parametrize(
    "pipeline, data, model, setting",
    [
        ("nbody", "charged", "gnn", "protocol"),
        ("nbody", "charged", "linear", "augmentation"),
        ("normals", "shapes", "oriented-dgcnn", "label_smoothing"),
        ("pointcls", "shapes", "dgcnn", "signed"),
        ("partseg", "shapes", "oriented-dgcnn", "signed"),
        ("nbody", "charged", "linear", "signed"),
    ],
)
def test_settings_without_meaning_are_refused(pipeline, data, model, setting):
    recipe = {"pipeline_name": pipeline, "data": {"name": data}, "model": {"name": model}}
    assert setting not in check(recipe)["general_pipeline"]
    (problem,) = problems_of(recipe | {"general_pipeline": {setting: None}})
    assert problem == f"general_pipeline.{setting}: has no meaning for {pipeline}; leave it out."


def test_values_of_settings_are_checked_together():
    settings = {"num_epochs": 0, "label_smoothing": 2, "optimizer": {"lr": 0}, "grad_clip": "x"}
    found = problems_of(RECIPE | {"general_pipeline": settings})
    assert len(found) == 4 and all(problem.startswith("general_pipeline") for problem in found)


def test_missing_folder_and_missing_axis():
    folder = {"name": "folder"}
    found = problems_of(RECIPE | {"data": folder})
    assert any(problem.startswith("data.raw_dir is missing") for problem in found)
    assert any(problem.startswith("data.gravity is missing") for problem in found)
    folder |= {"raw_dir": "x", "gravity": "y"}
    assert check(RECIPE | {"data": folder})["data"] == folder
    any_way = {"data": {"name": "folder", "raw_dir": "x"}, "general_pipeline": {"protocol": "so3/so3"}}
    assert check(RECIPE | any_way)["data"] == any_way["data"]


def test_null_arguments_are_the_class_defaults():
    model = {"name": "dgcnn", "preset": "light", "k": None, "dropout": None}
    assert check(RECIPE | {"model": model})["model"] == {"name": "dgcnn", "preset": "light"}
    # Null has a meaning there: all points of the file.
    data = {"name": "modelnet40", "raw_dir": "x", "num_points": None}
    assert check(RECIPE | {"data": data})["data"] == data


def test_numbers_for_each_split():
    checked = check(RECIPE | {"data": {"name": "shapes", "num_shapes": {"train": 30, "test": 10}}})
    given = {split: data_arguments(checked, split) for split in ("train", "val", "test")}
    assert given == {"train": {"num_shapes": 30}, "val": {}, "test": {"num_shapes": 10}}
    for data in ({"num_shapes": {"train": "x"}}, {"num_points": {"train": 3}}):
        assert len(problems_of(RECIPE | {"data": {"name": "shapes", **data}})) == 1


def test_numbers_may_be_written_as_in_yaml_1_2(tmp_path):
    path = tmp_path / "cfg.yaml"
    path.write_text(GOOD.replace("num_epochs: 1", "optimizer: {lr: 1e-3, weight_decay: 1E-4}"))
    optimizer = recipes.load(path)["general_pipeline"]["optimizer"]
    assert optimizer == {"name": "adam", "lr": 1e-3, "weight_decay": 1e-4}


def test_sentences_are_short_and_printable():
    recipe = RECIPE | {"data": {"name": "\x1b[31m" + "x" * 10**5}, "k" * 10**5: 1, "\x1b[2J": 2}
    for problem in problems_of(recipe):
        assert problem.isprintable() and len(problem) < 600


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = """name data model pipeline_name general_pipeline optimizer num_shapes k raw_dir plugins orientation
preset lr train device version augmentation scale"""
words = st.sampled_from([*KEYS.split(), "shapes", "dgcnn", "pointcls", "nbody", "folder"])
values = st.recursive(
    plain | words,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_any_value_passes_or_is_refused_in_sentences(value):
    for recipe in (value, RECIPE | value if isinstance(value, dict) else RECIPE):
        try:
            checked = check(recipe)
        except RecipeError as error:
            assert error.problems and all(error.problems)
        else:
            assert isinstance(recipe, Mapping) and checked["data"]["name"] in registry.data_names()


@given(st.sampled_from(["data", "model", "general_pipeline"]), words, values)
def test_any_value_in_a_section_passes_or_is_refused_in_sentences(section, key, value):
    recipe = RECIPE | {section: RECIPE[section] | {key: value}}
    try:
        check(recipe)
    except RecipeError as error:
        assert error.problems and all(error.problems)
