"""From a recipe to what is trained."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.config.build import build, check_model, transform_steps
from dgl_orient.config.metadata import dataset_metadata
from dgl_orient.config.recipe import RecipeError, check
from dgl_orient.config.registry import MODELS, PIPELINES, register_data
from dgl_orient.config.sections import model_section
from dgl_orient.data import PointCloudDataset, PointClouds, Shapes, write_cloud
from dgl_orient.go.apply import apply, apply_data
from dgl_orient.models import DGCNN
from dgl_orient.train import checkpoint
from dgl_orient.weights import DEFAULT
from dgl_orient.zoo.loading import load_trained_model
from tests.clouds import ball
from tests.go import tiny


@pytest.mark.parametrize(
    "name, pipeline", [(name, each) for name in MODELS for each in MODELS[name].pipelines]
)
def test_bounds_of_numbers_are_those_of_the_network(name, pipeline):
    """What the schema accepts of a number alone, the network accepts."""
    recipe = tiny.recipe(pipeline) | {"model": {"name": name}}
    for key, field in model_section(name, pipeline).fields().items():
        for value in (-1, 0, 1) if isinstance(field.default, int) else (-0.5, 0.0, 1.0):
            try:
                checked = check(recipe | {"model": {"name": name, key: value}})
            except RecipeError:
                continue
            check_model(checked)


def test_all_numbers_out_of_bounds_are_listed_together():
    model = {
        "name": "oriented-dgcnn",
        "embed_feats": 0,
        "widths": [8, 0],
        "dropout": 1.0,
        "level_sizes": [1.5],
    }
    data = {"name": "shapes", "num_shapes": {"test": 0}}
    with pytest.raises(RecipeError) as caught:
        check(tiny.recipe("pointcls") | {"data": data, "model": model})
    places = [problem.partition(":")[0] for problem in caught.value.problems]
    options = ["widths[1]", "embed_feats", "dropout", "level_sizes[0]"]
    assert places == ["data.num_shapes.test", *(f"model.{option}" for option in options)]


@pytest.mark.parametrize("pipeline", tiny.PIPELINES)
def test_the_output_of_the_model_fits_the_task(pipeline):
    setup = build(tiny.recipe(pipeline))
    batch = setup.splits.train[0]
    graph, label = batch if isinstance(batch, tuple) else (batch, None)
    output = setup.task.forward(setup.make_model().eval(), graph, None if label is None else label[None])
    loss, count = setup.task.loss(output, graph, None if label is None else label[None])
    assert torch.isfinite(loss) and count > 0
    assert [len(setup.splits.train), len(setup.splits.val), len(setup.splits.tests["test"])] == [10, 5, 5]


def test_the_protocol_rotates_clouds():
    same = build(tiny.recipe("pointcls", protocol="z/so3")).splits
    plain = Shapes("train", num_points=40, num_shapes=10)
    rotated, _ = same.train[3]
    before = plain[3][0].ndata["pos"]
    assert torch.allclose(rotated.ndata["pos"][:, 2], before[:, 2], atol=1e-5)  # about z only
    assert not torch.allclose(rotated.ndata["pos"], before, atol=1e-2)
    tested, _ = same.tests["test"][3]
    upright = Shapes("test", num_points=40, num_shapes=5)[3][0].ndata["pos"]
    assert not torch.allclose(tested.ndata["pos"][:, 2], upright[:, 2], atol=1e-2)


def test_two_seeds_train_on_other_rotations_and_are_scored_by_the_same():
    one, other = (build(tiny.recipe("pointcls", seed=seed)).splits for seed in (0, 1))
    assert not torch.equal(one.train[0][0].ndata["pos"], other.train[0][0].ndata["pos"])
    assert torch.equal(one.tests["test"][0][0].ndata["pos"], other.tests["test"][0][0].ndata["pos"])


def test_the_training_seed_leaves_the_particles_alone():
    one, other = (build(tiny.recipe("nbody", seed=seed)).splits for seed in (0, 1))
    assert torch.equal(one.train[0].ndata["pos"], other.train[0].ndata["pos"])


def test_augmentation_is_for_training_only():
    augmentation = {
        "scale": [0.5, 2.0],
        "anisotropic_scale": [0.8, 1.2],
        "translate": 0.1,
        "jitter": 0.01,
        "point_dropout": 0.3,
        "num_points": 20,
    }
    recipe = tiny.recipe("pointcls", augmentation=augmentation)
    assert transform_steps(recipe, "train") == [
        ("FixedPoints", (20,)),
        ("NormalizeScale", ()),
        ("RandomScale", (0.5, 2.0)),
        ("RandomScale", (0.8, 1.2, True)),
        ("RandomTranslate", (0.1,)),
        ("RandomPointDropout", (0.3,)),
        ("RandomJitter", (0.01, 0.05)),
        ("RandomRotate", ("z",)),
    ]
    assert transform_steps(recipe, "test") == [("NormalizeScale", ()), ("RandomRotate", ("so3",))]
    assert transform_steps(tiny.recipe("nbody"), "train") == []


def test_farthest_samples_are_the_farthest_apart_of_twice_as_many():
    recipe = tiny.recipe("pointcls", augmentation={"num_points": 20, "farthest": True})
    assert transform_steps(recipe, "train")[:2] == [
        ("FixedPoints", (20, "random_farthest")),
        ("NormalizeScale", ()),
    ]

    def nearest(recipe):
        pos = build(recipe).splits.train[0][0].ndata["pos"]
        return (torch.cdist(pos, pos) + 9 * torch.eye(len(pos))).amin(1).mean()

    assert nearest(recipe) > 1.1 * nearest(tiny.recipe("pointcls", augmentation={"num_points": 20}))


@pytest.mark.parametrize("farthest", [False, True])
def test_training_clouds_are_other_samples_each_time(farthest):
    splits = build(tiny.recipe("pointcls", augmentation={"num_points": 12, "farthest": farthest})).splits
    whole = build(tiny.recipe("pointcls")).splits
    assert whole.train[0][0].num_nodes() > 12 == splits.train[0][0].num_nodes()
    assert splits.tests["test"][0][0].num_nodes() == whole.tests["test"][0][0].num_nodes()
    lengths = []
    for epoch in (0, 0, 1):
        splits.train.set_epoch(epoch)
        pos = splits.train[0][0].ndata["pos"]
        assert len(torch.unique(pos, dim=0)) == 12
        lengths.append(pos.norm(dim=1).sort()[0])
    assert torch.equal(lengths[0], lengths[1])
    assert not torch.allclose(lengths[0], lengths[2], atol=1e-3)


def test_clouds_of_a_folder_are_normalized_to_the_unit_sphere(tmp_path):
    for name in ("cube", "ball"):
        (tmp_path / name).mkdir()
        for number in range(5):
            write_cloud(tmp_path / name / f"{number}.npz", 40 + 7 * ball(50, number))
    data = {"name": "folder", "raw_dir": str(tmp_path), "num_points": 30, "gravity": "y"}
    recipe = tiny.recipe("pointcls") | {"data": data}
    setup = build(recipe)
    pos = setup.splits.train[0][0].ndata["pos"]
    assert float(pos.norm(dim=1).max()) == pytest.approx(1, abs=1e-5)
    assert transform_steps(recipe, "train")[-1] == ("RandomRotate", ("y",))
    assert setup.task.num_classes == 2


def test_shapes_may_keep_their_scale():
    recipe = tiny.recipe("pointcls", data={"normalize": False})
    assert transform_steps(recipe, "test") == [("RandomRotate", ("so3",))]


def test_presets_and_arguments_reach_the_network():
    light = build(tiny.recipe("pointcls", model={"name": "dgcnn", "preset": "light", "k": 7})).make_model()
    full = build(tiny.recipe("pointcls", model={"name": "dgcnn", "k": 7})).make_model()
    sizes = [sum(each.numel() for each in net.parameters()) for net in (light, full)]
    assert sizes == [sum(each.numel() for each in net.parameters()) for net in (DGCNN.light(10), DGCNN(10))]
    assert light.backbone.k == full.backbone.k == 7


class OtherSide(Shapes):
    """Shapes whose normals point to the other side at half of the points."""

    def __getitem__(self, index):
        graph, label = super().__getitem__(index)
        graph.ndata["normal"][::2] *= -1
        return graph, label


@pytest.mark.parametrize("signed", [False, True])
def test_the_unsigned_loss_does_not_depend_on_signs(signed, tmp_path):
    register_data("other-side", ["normals"], ["num_shapes"])(OtherSide)
    losses, errors = [], []
    for name in ("shapes", "other-side"):
        results = tiny.train(tiny.recipe("normals", data={"name": name}, signed=signed), tmp_path / name)
        (line,) = (tmp_path / name / "run_0" / "log.jsonl").read_text().splitlines()
        losses.append(json.loads(line)["loss"])
        errors.append({key: value["mean"] for key, value in results["metrics"]["test"].items()})
        assert {*errors[-1]} == {"normal_error", "unsigned_normal_error"}
    assert (losses[0] == losses[1]) is not signed
    assert (errors[0]["unsigned_normal_error"] == errors[1]["unsigned_normal_error"]) is not signed
    assert errors[0]["normal_error"] != errors[1]["normal_error"]


@pytest.mark.parametrize(
    "model, words",
    [
        ({"name": "oriented-dgcnn", "level_sizes": [4, 8]}, "level_sizes"),
        ({"name": "dgcnn", "widths": []}, "widths"),
        ({"name": "oriented-rscnn", "k": [8]}, "1 k and"),
    ],
)
def test_an_argument_that_the_model_refuses_is_named_before_data_are_read(model, words, monkeypatch):
    monkeypatch.setattr("dgl_orient.config.build.data_set", lambda *_: pytest.fail("data were read"))
    with pytest.raises(DGLError, match=words):
        build(tiny.recipe("pointcls", model=model))


@pytest.mark.parametrize(
    "change, words",
    [
        ({"init_from": "none.pth"}, "none.pth"),
        ({"init_from": DEFAULT}, "no weights"),
        ({"init_from": DEFAULT, "freeze": ["backbon"]}, "backbone"),
    ],
)
def test_fine_tuning_that_cannot_be_is_named_before_data_are_read(change, words, monkeypatch):
    monkeypatch.setattr("dgl_orient.config.build.data_set", lambda *_: pytest.fail("data were read"))
    model = load_trained_model(DEFAULT).recipe["model"] if "freeze" in change else {"name": "rscnn"}
    with pytest.raises(DGLError, match=words):
        build(tiny.recipe("pointcls", model=model, **change))


@pytest.mark.parametrize("pipeline", list(PIPELINES))
def test_all_models_can_be_checked_without_memory(pipeline):
    for name in MODELS:
        if pipeline in MODELS[name].pipelines:
            check_model(tiny.recipe(pipeline, model={"name": name}))


def test_a_training_makes_one_model_for_each_run(tmp_path, monkeypatch):
    made, original = [], DGCNN.__init__

    @functools.wraps(original)
    def counted(self, *args, **kwargs):
        original(self, *args, **kwargs)
        if not next(self.parameters()).is_meta:  # one of no size checks the arguments first
            made.append(self)

    monkeypatch.setattr(DGCNN, "__init__", counted)
    recipe = tiny.recipe("pointcls", model=tiny.PLAIN, num_runs=2)
    tiny.train(recipe, tmp_path / "results")
    assert len(made) == 2


class _Unnamed(PointCloudDataset):
    """Clouds with two parts, and labels of numbers of NumPy if they have any."""

    gravity = "z"

    def __init__(self, split: str, size: int = 8, transform=None, seed: int = 0):
        self.size = size
        super().__init__(type(self).__name__, transform=transform, seed=seed)

    def process(self):
        rng, n = np.random.default_rng(0), 40 * self.size
        points = {"pos": rng.random((n, 3)).astype(np.float32), "part": rng.integers(2, size=n)}
        labels = {"label": np.arange(self.size) % 2} if hasattr(self, "num_classes") else {}
        self.clouds = PointClouds(np.full(self.size, 40), points, labels)


class _Classes(_Unnamed):
    num_classes = np.int64(2)


class _Parts(_Unnamed):
    num_parts, class_parts, class_names = np.int64(2), np.array([[0, 1]]), None


class _PartsOfTwo(_Parts):
    num_classes, class_parts = None, [(0, 1), (0, 1)]

    def process(self):
        super().process()
        parts = np.repeat(np.arange(self.size) % 2, 40)  # a cloud has the part of its category
        self.clouds.node["part"] = parts


@pytest.mark.parametrize(
    "pipeline, cls, category",
    [("pointcls", _Classes, None), ("partseg", _Parts, None), ("partseg", _PartsOfTwo, "1")],
)
def test_data_sets_without_class_names_work_from_training_to_predictions(pipeline, cls, category, tmp_path):
    name = f"unnamed-{cls.__name__}".replace("_", "")
    register_data(name, [pipeline])(cls)
    data = {"name": name, "size": 6}
    recipe = tiny.recipe(pipeline) | {"data": data}
    tiny.train(check(recipe), tmp_path / "results")
    path = tmp_path / "results" / "run_0.pth"
    write_cloud(tmp_path / "cloud.ply", np.random.default_rng(1).random((40, 3)))
    given = [tmp_path / "cloud.ply"]
    (of_file,) = apply(path, given, tmp_path / "out", category=category, progress=False).predictions
    if pipeline == "partseg" and category is None:
        with pytest.raises(DGLError, match="not conditioned on a category; leave out --category"):
            apply(path, given, tmp_path / "out", category="1", progress=False)
    of_data = apply_data(path, check(recipe)["data"], "test", tmp_path / "own", progress=False).predictions
    assert len(of_data) == 6
    key = {"pointcls": "class", "partseg": "category"}[pipeline]
    assert {each[key] for each in (of_file, *of_data)} <= {"0", "1"}
    assert category is None or of_file["category"] == category


def test_names_without_a_number_are_kept():
    only = type("Only", (_Unnamed,), {"class_names": ["a", "b"], "num_parts": None})
    assert dataset_metadata(only("train")) == {"class_names": ["a", "b"]}


def test_names_of_classes_that_do_not_fit_are_an_error(tmp_path):
    state = checkpoint.load(tiny.trained("pointcls"))
    odd = ({"class_names": ["mug"]}, {"num_classes": "x"}, {"class_names": 3}, {"num_classes": 10**12})
    for changes in odd:
        checkpoint.save(tmp_path / "odd.pth", state | {"metadata": state["metadata"] | changes})
        with pytest.raises(DGLError):
            load_trained_model(tmp_path / "odd.pth")
    for name in ("weights", "metadata"):
        checkpoint.save(tmp_path / "odd.pth", state | {name: [1]})
        with pytest.raises(DGLError):
            load_trained_model(tmp_path / "odd.pth")


def test_parts_have_no_part_where_they_are_not_asked_for():
    dataset = _Classes("test")
    dataset.part_names = ["lid"]
    assert "num_parts" not in dataset_metadata(dataset)
