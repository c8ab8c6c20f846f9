"""Recipes that are written: valid, commented, and only for checkpoints that can be used."""

import re
import typing

import pytest
import torch
import yaml
from dgl import DGLError

from dgl_orient.config import registry
from dgl_orient.config.build import check_model
from dgl_orient.config.recipe import RecipeError, check, check_apply, load
from dgl_orient.config.schema import settings_section
from dgl_orient.config.sections import model_section
from dgl_orient.go.apply_recipe import apply_script
from dgl_orient.go.configure import configure, configure_apply
from dgl_orient.models import DGCNN
from dgl_orient.train import checkpoint
from dgl_orient.weights import DEFAULT
from dgl_orient.zoo.loading import load_trained_model
from tests.config.test_recipes import FOLDER
from tests.go import tiny

COMBINATIONS = [
    (pipeline, data, model)
    for pipeline in registry.PIPELINES
    for data, entry in registry.DATA.items()
    for model, of in registry.MODELS.items()
    if pipeline in entry.pipelines and pipeline in of.pipelines
]


@pytest.mark.parametrize("pipeline, data, model", COMBINATIONS)
def test_every_recipe_that_is_written_is_a_good_one(pipeline, data, model, tmp_path):
    path = configure(pipeline, data, model, tmp_path / "cfg.yaml", size="full")
    recipe = yaml.safe_load(path.read_text())
    keys = ["version", "pipeline_name", "pipeline_mode", "device", "data", "model", "general_pipeline"]
    assert list(recipe) == keys and recipe["pipeline_mode"] == "train"
    missing = {"raw_dir": "somewhere"} if "raw_dir" in recipe["data"] else {}
    missing |= {"gravity": "z"} if data == "folder" else {}
    checked = check(recipe | {"data": recipe["data"] | missing})
    assert checked["general_pipeline"] == recipe["general_pipeline"]
    bare = {"pipeline_name": pipeline, "data": {"name": data, **missing}, "model": {"name": model}}
    assert check(bare)["general_pipeline"] == checked["general_pipeline"]


def written(*arguments, **options) -> dict:
    recipe = yaml.safe_load(configure(*arguments, **options).read_text())
    return check(recipe | {"data": recipe["data"] | {"raw_dir": "mine", "gravity": "z"}})


@pytest.mark.parametrize("pipeline", ["pointcls", "partseg", "normals"])
def test_files_of_ones_own_get_the_small_network_of_the_quick_recipe(pipeline, tmp_path):
    quick = load(FOLDER / f"{pipeline}_folder_oriented-dgcnn-quick.yaml")
    small = written(pipeline, "folder", "oriented-dgcnn", tmp_path / "small.yaml")
    full = written(pipeline, "folder", "oriented-dgcnn", tmp_path / "full.yaml", size="full")
    assert small["model"] == {"orientation": None} | quick["model"]  # of the preset, too
    assert small["general_pipeline"] == quick["general_pipeline"]
    assert small["data"]["num_points"] == quick["data"]["num_points"] and full["model"]["preset"] == "full"
    assert small["general_pipeline"]["num_epochs"] < full["general_pipeline"]["num_epochs"]
    other = written(pipeline, "folder", "dgcnn", tmp_path / "other.yaml")
    assert other["model"] == {"name": "dgcnn", "preset": "light"}
    assert other["general_pipeline"] == quick["general_pipeline"]
    with pytest.raises(DGLError, match="small"):
        configure(pipeline, "folder", "dgcnn", tmp_path / "cfg.yaml", size="smal")


def test_fine_tuning_is_written_with_the_arguments_of_the_trained_model(tmp_path):
    recipe = written("pointcls", "folder", cfg=tmp_path / "cfg.yaml", init_from=DEFAULT)
    trained = load_trained_model(DEFAULT)
    assert recipe["model"] == trained.recipe["model"]
    assert recipe["data"]["num_points"] == trained.num_points
    general = recipe["general_pipeline"]
    assert (general["init_from"], general["freeze"]) == (DEFAULT, True)
    check_model(recipe)
    with pytest.raises(DGLError, match="pipeline"):
        configure("partseg", "folder", cfg=tmp_path / "other.yaml", init_from=DEFAULT)


def test_comments_are_the_descriptions_of_the_schema(tmp_path):
    text = configure("pointcls", "shapes", "oriented-dgcnn", tmp_path / "cfg.yaml").read_text()
    assert re.search(r"^device: cpu +# Torch device name", text, re.M)
    assert re.search(r"^  num_points: 1024 +# \w", text, re.M)
    assert re.search(r"^  orientation_k: +# \w.* \(full: 20\)$", text, re.M)
    for name, field in settings_section("pointcls").fields().items():
        if name not in ("optimizer", "lr_scheduler"):
            comment = re.escape(field.field_info.description)
            assert re.search(rf"^  {name}:.* # {comment}$", text, re.M)
    assert re.search(r"^    lr: 0\.001 +# learning rate", text, re.M)
    assert re.search(r"^    name: cosine +# cosine, step, plateau or none$", text, re.M)


@pytest.mark.parametrize("pipeline, data, model", COMBINATIONS)
def test_comments_are_plain_and_name_all_choices(pipeline, data, model, tmp_path):
    text = configure(pipeline, data, model, tmp_path / "cfg.yaml").read_text()
    assert "`" not in text and "\\" not in text
    section = text.partition("\nmodel:")[2].partition("\ngeneral_pipeline:")[0]
    for name, field in model_section(model, pipeline).fields().items():
        (line,) = re.findall(rf"^  {name}:(.*)$", section, re.M)
        if typing.get_origin(field.type_) is typing.Literal:
            assert all(choice in line for choice in typing.get_args(field.type_))


class _Options(typing.TypedDict, total=False):
    width: int
    depth: int


class _Encoder(DGCNN):
    def __init__(self, num_classes: int, encoder: _Options | None = None):
        super().__init__(num_classes)


def test_comments_name_the_keys_of_options(tmp_path):
    registry.register_model("encoder", ["pointcls"])(_Encoder)
    text = configure("pointcls", "shapes", "encoder", tmp_path / "cfg.yaml").read_text()
    assert re.search(r"^  encoder: +# Keys: width, depth\.$", text, re.M)


def test_only_normals_say_whether_their_sign_counts(tmp_path):
    paths = [configure(name, "shapes", "dgcnn", tmp_path / f"{name}.yaml") for name in ("normals", "partseg")]
    texts = [path.read_text() for path in paths]
    assert re.search(r"^  signed: true +# ", texts[0], re.M) and "signed" not in texts[1]


def test_missing_folder_is_named_before_training(tmp_path):
    path = configure("pointcls", "modelnet40", "dgcnn", tmp_path / "cfg.yaml")
    with pytest.raises(RecipeError, match="data.raw_dir is missing"):
        load(path)


def test_configure_suggests_names_and_writes_nothing(tmp_path):
    for arguments in [
        ("pointcls", "shape", "dgcnn"),
        ("pointcls", "shapes", "dgcn"),
        ("nbody", "charged", "eggn"),
    ]:
        with pytest.raises(DGLError):
            configure(*arguments, tmp_path / "cfg.yaml")
    with pytest.raises(DGLError):
        configure("nbody", "shapes", "egnn", tmp_path / "cfg.yaml")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def trained():
    """The checkpoint of a segmentation model."""
    return tiny.trained("partseg")


def test_configure_apply(trained, tmp_path):
    path = configure_apply("partseg", trained, cfg=tmp_path / "apply.yaml")
    recipe = yaml.safe_load(path.read_text())
    assert recipe["pipeline_mode"] == "apply" and recipe["cpt_path"] == str(trained)
    assert recipe["general_pipeline"]["batch_size"] == 32
    assert recipe["general_pipeline"]["save_path"] is None
    with pytest.raises(RecipeError, match="data.raw_dir is missing"):
        check_apply(recipe)
    recipe["data"]["raw_dir"] = ["a.ply", "scans"]
    checked = check_apply(recipe)
    assert check_apply(checked) == checked and checked["data"]["raw_dir"] == ["a.ply", "scans"]
    compile(apply_script(checked), "script.py", "exec")


def test_configure_apply_to_a_data_set(trained, tmp_path):
    path = configure_apply("partseg", trained, "shapes", tmp_path / "apply.yaml")
    recipe = yaml.safe_load(path.read_text())
    assert (recipe["data"]["name"], recipe["data"]["split"]) == ("shapes", "test")
    assert recipe["data"]["num_shapes"] == tiny.SIZES and recipe["data"]["num_points"] == 40
    assert re.search(r"^  split: test +# train, val or test$", path.read_text(), re.M)
    assert re.search(r"^  num_points: 40 +# \w", path.read_text(), re.M)
    assert not {"category", "skip_bad", "seed"} & {*recipe["general_pipeline"]}
    checked = check_apply(recipe)
    assert check_apply(checked) == checked
    compile(apply_script(checked), "script.py", "exec")
    other = configure_apply("partseg", trained, "shapenetpart", tmp_path / "other.yaml")
    with pytest.raises(RecipeError, match="data.raw_dir is missing"):
        check_apply(yaml.safe_load(other.read_text()))
    recipe["data"] |= {"split": "tset", "num_points": "8", "colour": 1}
    with pytest.raises(RecipeError, match="data.split.*'test'") as caught:
        check_apply(recipe)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    "section, changes",
    [
        ("recipe", {"model": None}),
        ("recipe", {"model": {"name": "../evil"}}),
        ("recipe", {"model": {"name": "oriented-dgcnn", "k": "1) or exit("}}),
        ("recipe", {"model": {"name": "dgcnn"}}),
        ("recipe", {"general_pipeline": [1]}),
        ("recipe", {"general_pipeline": {"seed": "x"}}),
        ("recipe", {"general_pipeline": {"eval_batch_size": 0}}),
        ("recipe", {"pipeline_name": []}),
        ("recipe", {"pipeline_name": "nodepred"}),
        ("recipe", {"device": "cpu; exit"}),
        ("recipe", {"plugins": ["os"]}),
        ("recipe", {"version": "99"}),
        ("recipe", {"data": {"name": "shapes", "num_points": 10_000_000}}),
        ("recipe", {"data": {"name": "nothing"}}),
        ("recipe", {"more": 1}),
        ("metadata", {"num_parts": -1}),
        ("metadata", {"num_parts": 10**12}),
        ("metadata", {"class_parts": [[99]]}),
        ("metadata", {"class_names": [1.5]}),
        ("metadata", {"part_names": "abc"}),
        ("weights", {"more": torch.zeros(2)}),
    ],
    ids=repr,
)
def test_configure_apply_refuses_a_tampered_checkpoint(trained, tmp_path, section, changes, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = checkpoint.load(trained)
    checkpoint.save(tmp_path / "odd.pth", state | {section: state[section] | changes})
    with pytest.raises(DGLError):
        load_trained_model(tmp_path / "odd.pth")
    with pytest.raises(DGLError):
        configure_apply("partseg", tmp_path / "odd.pth")
    assert [path.name for path in tmp_path.iterdir()] == ["odd.pth"]


def test_configure_apply_refuses(trained, tmp_path):
    with pytest.raises(DGLError):
        configure_apply("pointcls", trained, cfg=tmp_path / "apply.yaml")
    with pytest.raises(DGLError, match="--data 'modelnet40' is not known for partseg; .*shapenetpart"):
        configure_apply("partseg", trained, "modelnet40", tmp_path / "apply.yaml")
    checkpoint.save(tmp_path / "other.pth", {"recipe": "exit()"})
    with pytest.raises(DGLError):
        configure_apply("partseg", tmp_path / "other.pth", cfg=tmp_path / "apply.yaml")
    assert not (tmp_path / "apply.yaml").exists()


def test_problems_of_inference_recipes_are_listed_together():
    recipe = {
        "pipeline_name": "point",
        "pipeline_mode": "apply",
        "data": {"name": "folder", "raw_dir": 3, "split": "test"},
        "general_pipeline": {"batch_sise": 3, "seed": "x", "skip_bad": 1},
    }
    with pytest.raises(RecipeError) as caught:
        check_apply(recipe)
    text = str(caught.value)
    for words in [
        "did you mean 'batch_size'",
        "pipeline_name",
        "data.raw_dir",
        "data.split",
        "seed",
        "cpt_path",
    ]:
        assert words in text
    assert len(caught.value.problems) == 7


def test_plugins_are_written_into_the_recipe(tmp_path):
    path = configure("pointcls", "shapes", "dgcnn", tmp_path / "cfg.yaml", plugins=["my_module"])
    assert yaml.safe_load(path.read_text())["plugins"] == ["my_module"]
