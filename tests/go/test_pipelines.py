"""Our pipelines, data sets and networks in dglgo's factories, and the recipes that they write."""

import importlib
import re

import pytest
import yaml
from dgl import DGLError

from dgl_orient.config import names, registry
from dgl_orient.config.recipe import RecipeError, check, load, settings_arguments
from dgl_orient.go import pipelines
from dgl_orient.go.apply_recipe import check_apply
from dgl_orient.go.factories import MODEL_FACTORIES, ApplyPipelineFactory, DataFactory, PipelineFactory
from dgl_orient.train import checkpoint

COMBINATIONS = [
    (pipeline, data, model)
    for pipeline in names.PIPELINES
    for data, entry in names.DATA.items()
    for model, of in names.MODELS.items()
    if pipeline in entry.pipelines and pipeline in of.pipelines
]


def test_dglgo_knows_ours_beside_its_own():
    from dglgo.utils.factory import PipelineBase

    for factory in (PipelineFactory, ApplyPipelineFactory):
        assert {*names.PIPELINES, *names.DGLGO_APPLY} <= set(factory.registry)
        for name in names.PIPELINES:
            assert isinstance(factory.registry[name], PipelineBase)
            assert factory.registry[name].get_description() == names.PIPELINES[name]
    for pipeline in names.PIPELINES:
        assert set(DataFactory.filter(pipeline).registry) == set(registry.data_names(pipeline))
        assert set(MODEL_FACTORIES[pipeline].registry) == set(registry.model_names(pipeline))
    assert {"cora", "reddit"} <= set(DataFactory.filter("nodepred").registry)
    assert not set(names.DATA) & set(DataFactory.filter("nodepred").registry)


@pytest.mark.parametrize("pipeline, data, model", COMBINATIONS)
def test_every_recipe_that_is_written_is_a_good_one(pipeline, data, model, tmp_path):
    path = pipelines.configure(pipeline, data, model, tmp_path / "cfg.yaml")
    recipe = yaml.safe_load(path.read_text())
    keys = ["version", "pipeline_name", "pipeline_mode", "device", "data", "model", "general_pipeline"]
    assert list(recipe) == keys and recipe["pipeline_mode"] == "train"
    missing = {"raw_dir": "somewhere"} if "raw_dir" in recipe["data"] else {}
    missing |= {"gravity": "z"} if data == "folder" else {}
    checked = check(recipe | {"data": recipe["data"] | missing})
    assert checked["general_pipeline"] == recipe["general_pipeline"]
    bare = {"pipeline_name": pipeline, "data": {"name": data, **missing}, "model": {"name": model}}
    assert check(bare)["general_pipeline"] == checked["general_pipeline"]


def test_comments_are_the_docstrings(tmp_path):
    text = pipelines.configure("pointcls", "shapes", "oriented-dgcnn", tmp_path / "cfg.yaml").read_text()
    assert re.search(r"^device: cpu +# Torch device name", text, re.M)
    # Of the data set, of the network, of the one that it says it is as, of the settings and inside them.
    assert re.search(r"^  num_points: 1024 +# Points of each cloud\.$", text, re.M)
    assert re.search(
        r"^  orientation_k: +# Neighbours of a point in the network .* \(full: 24\)$", text, re.M
    )
    assert re.search(r"^  k: +# Neighbours of a point\. \(full: 20\)$", text, re.M)
    for name, argument in settings_arguments("pointcls").items():
        shown = re.search(rf"^  {name}:.*# (.*)$", text, re.M)
        assert argument.nested and argument.default or shown.group(1) == argument.help
    assert re.search(r"^    lr: 0\.001 +# the learning rate", text, re.M)


@pytest.mark.parametrize("pipeline, data, model", COMBINATIONS)
def test_comments_are_plain_and_tell_all_choices(pipeline, data, model, tmp_path):
    text = pipelines.configure(pipeline, data, model, tmp_path / "cfg.yaml").read_text()
    assert "`" not in text and "\\" not in text
    for name, argument in registry.model_arguments(model, pipeline).items():
        (line,) = re.findall(rf"^  {name}:(.*)$", text, re.M)
        assert all(choice in line for choice in argument.choices)


def test_normals_say_whether_their_sign_counts(tmp_path):
    text = pipelines.configure("normals", "shapes", "oriented-dgcnn", tmp_path / "cfg.yaml").read_text()
    comment = r"Whether the loss of normals counts to which side they point\."
    assert re.search(rf"^  signed: true +# {comment}$", text, re.M)
    other = pipelines.configure("partseg", "shapes", "oriented-dgcnn", tmp_path / "cfg.yaml").read_text()
    assert "signed" not in other


def test_blank_folder_is_named_before_training(tmp_path):
    path = pipelines.configure("pointcls", "modelnet40", "dgcnn", tmp_path / "cfg.yaml")
    with pytest.raises(RecipeError, match="data.raw_dir is missing: The folder of the download"):
        load(path)


def test_configure_suggests_names_and_writes_nothing(tmp_path):
    for arguments in [
        ("pointcls", "shape", "dgcnn"),
        ("pointcls", "shapes", "dgcn"),
        ("nbody", "charged", "eggn"),
    ]:
        with pytest.raises(DGLError, match="did you mean"):
            pipelines.configure(*arguments, tmp_path / "cfg.yaml")
    with pytest.raises(DGLError, match="expected one of charged"):
        pipelines.configure("nbody", "shapes", "egnn", tmp_path / "cfg.yaml")
    assert not list(tmp_path.iterdir())


def test_dglgo_writes_and_exports_with_our_pipelines(tmp_path, monkeypatch):
    """dglgo's own functions, which know nothing of us but the factories."""
    monkeypatch.chdir(tmp_path)
    PipelineFactory.registry["pointcls"].get_cfg_func()(
        data=DataFactory.filter("pointcls").get_dataset_enum()["shapes"],
        model=MODEL_FACTORIES["pointcls"].get_model_enum()["dgcnn"],
    )
    assert (tmp_path / "pointcls_shapes_dgcnn.yaml").is_file()
    importlib.import_module("dglgo.cli.export_cli").export("pointcls_shapes_dgcnn.yaml", "script.py")
    script = (tmp_path / "script.py").read_text()
    compile(script, "script.py", "exec")
    assert "DGCNN(" in script


def test_dglgo_exports_nothing_that_is_not_checked(tmp_path):
    recipe = {"pipeline_name": "pointcls", "pipeline_mode": "train", "data": {"name": "shapes"}}
    path = tmp_path / "cfg.yaml"
    path.write_text(yaml.safe_dump(recipe | {"model": {"name": "dgcnn", "k": "1) or exit("}}))
    with pytest.raises(RecipeError, match="model.k: expected an integer"):
        importlib.import_module("dglgo.cli.export_cli").export(str(path), str(tmp_path / "script.py"))
    assert not (tmp_path / "script.py").exists()


@pytest.fixture
def trained(tmp_path):
    """A checkpoint that has a recipe, and no weights."""
    recipe = check(
        {
            "pipeline_name": "partseg",
            "data": {"name": "shapes", "num_shapes": {"test": 7}},
            "model": {"name": "oriented-dgcnn"},
            "general_pipeline": {"eval_batch_size": 7},
        }
    )
    checkpoint.save(tmp_path / "run_0.pth", {"recipe": recipe})
    return tmp_path / "run_0.pth"


def test_configure_apply(trained, tmp_path):
    path = pipelines.configure_apply("partseg", trained, cfg=tmp_path / "apply.yaml")
    recipe = yaml.safe_load(path.read_text())
    assert recipe["pipeline_mode"] == "apply" and recipe["cpt_path"] == str(trained)
    assert recipe["general_pipeline"]["batch_size"] == 7
    assert recipe["general_pipeline"]["save_path"] == "apply_results"
    with pytest.raises(RecipeError, match="data.raw_dir: expected a text or a list of texts"):
        check_apply(recipe)
    recipe["data"]["raw_dir"] = ["a.ply", "scans"]
    checked = check_apply(recipe)
    assert check_apply(checked) == checked and checked["data"]["raw_dir"] == ["a.ply", "scans"]
    compile(ApplyPipelineFactory.registry["partseg"].gen_script(recipe), "script.py", "exec")


def test_configure_apply_to_a_data_set(trained, tmp_path):
    path = pipelines.configure_apply("partseg", trained, "shapes", tmp_path / "apply.yaml")
    recipe = yaml.safe_load(path.read_text())
    assert (recipe["data"]["name"], recipe["data"]["split"]) == ("shapes", "test")
    assert recipe["data"]["num_shapes"] == {"test": 7} and recipe["data"]["num_points"] == 1024
    assert re.search(r"^  split: test +# train, val or test$", path.read_text(), re.M)
    assert re.search(r"^  num_points: 1024 +# Points of each cloud\.$", path.read_text(), re.M)
    assert not {"category", "skip_bad", "seed"} & {*recipe["general_pipeline"]}
    checked = check_apply(recipe)
    assert check_apply(checked) == checked
    compile(ApplyPipelineFactory.registry["partseg"].gen_script(recipe), "script.py", "exec")
    other = pipelines.configure_apply("partseg", trained, "shapenetpart", tmp_path / "other.yaml")
    with pytest.raises(RecipeError, match="data.raw_dir is missing"):
        check_apply(yaml.safe_load(other.read_text()))
    recipe["data"] |= {"split": "tset", "num_points": "8", "colour": 1}
    with pytest.raises(RecipeError, match="data.split.*'test'") as caught:
        check_apply(recipe)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    "changes",
    [{"model": None}, {"general_pipeline": [1]}, {"model": {"name": "../evil"}}, {"pipeline_name": []}],
)
def test_configure_apply_refuses_a_strangers_recipe(trained, tmp_path, changes, monkeypatch):
    (folder := tmp_path / "here").mkdir()
    monkeypatch.chdir(folder)
    state = checkpoint.load(trained)
    checkpoint.save(folder / "odd.pth", state | {"recipe": state["recipe"] | changes})
    with pytest.raises(DGLError, match="holds no recipe of ours"):
        pipelines.configure_apply("partseg", folder / "odd.pth")
    assert [path.name for path in folder.iterdir()] == ["odd.pth"]


def test_configure_apply_refuses(trained, tmp_path):
    with pytest.raises(DGLError, match="is of the pipeline 'partseg', not 'pointcls'"):
        pipelines.configure_apply("pointcls", trained, cfg=tmp_path / "apply.yaml")
    with pytest.raises(DGLError, match="--data 'modelnet40' is not known for partseg; .*shapenetpart"):
        pipelines.configure_apply("partseg", trained, "modelnet40", tmp_path / "apply.yaml")
    checkpoint.save(tmp_path / "other.pth", {"recipe": "exit()"})
    with pytest.raises(DGLError, match="holds no recipe of ours"):
        pipelines.configure_apply("partseg", tmp_path / "other.pth", cfg=tmp_path / "apply.yaml")
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
    path = pipelines.configure("pointcls", "shapes", "dgcnn", tmp_path / "cfg.yaml", plugins=["my_module"])
    assert yaml.safe_load(path.read_text())["plugins"] == ["my_module"]
