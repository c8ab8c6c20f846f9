"""The settings of a training reach its clouds and its task, from Python as from a recipe."""

from __future__ import annotations

import pytest
import torch
from dgl import DGLError
from torch import nn
from torch.utils.data import Subset

import dgl_orient
from dgl_orient.config.build import build, data_class, data_options
from dgl_orient.data import RandomScale, Shapes
from dgl_orient.train import NormalEstimation, PointClassification, Settings, Splits, checkpoint, fit
from dgl_orient.train.augmentation import transform_for, transform_steps, with_transform
from tests.go import tiny

ROTATIONS = Settings(protocol="so3/so3")


class Recorder(nn.Module):
    """Remembers the coordinates of the clouds that it is given."""

    def __init__(self):
        super().__init__()
        self.bias, self.clouds = nn.Parameter(torch.zeros(10)), {True: [], False: []}

    def forward(self, graph):
        self.clouds[self.training] += graph.ndata["pos"].split(graph.batch_num_nodes().tolist())
        return self.bias.expand(graph.batch_size, -1)


def recorded(tmp_path, splits=None, **settings) -> Recorder:
    model = Recorder()
    options = dict(num_epochs=2, train_batch_size=4, eval_batch_size=4)
    sets = splits or Splits(
        *(Shapes(split, 24, 4) for split in ("train", "val")), {"test": Shapes("test", 24, 4)}
    )
    fit(PointClassification(10), model, sets, Settings(**options | settings), folder=tmp_path, progress=False)
    return model


def distances(pos):
    return torch.cdist(pos.double(), pos.double()).sort()[0].sort(0)[0]


def test_fit_rotates_clouds_as_its_protocol_says(tmp_path):
    clouds = recorded(tmp_path, protocol="z/so3").clouds
    train, val = (Shapes(split, 24, 4) for split in ("train", "val"))
    for given, graph in ((clouds[True], train[0][0]), (clouds[False], val[0][0])):
        pos = graph.ndata["pos"]
        same = [each for each in given if torch.allclose(distances(each), distances(pos), atol=1e-4)]
        assert same and not any(torch.allclose(each, pos, atol=1e-3) for each in same)
    # About the axis of gravity in training, and about any in validation.
    heights = [train[0][0].ndata["pos"][:, 2], val[0][0].ndata["pos"][:, 2]]
    assert any(torch.allclose(each[:, 2], heights[0], atol=1e-4) for each in clouds[True])
    assert not any(torch.allclose(each[:, 2], heights[1], atol=1e-3) for each in clouds[False])


def test_stray_points_of_all_clouds_are_removed_if_asked(tmp_path):
    def strays(split):
        shapes = Shapes(split, 64, 4)
        return with_transform(
            shapes,
            lambda graph: dgl_orient.point_cloud(torch.cat([graph.ndata["pos"], torch.full((1, 3), 50.0)])),
        )

    splits = Splits(strays("train"), strays("val"), {"test": strays("test")})
    for remove, largest in ((False, 65), (True, 64)):
        clouds = recorded(tmp_path / str(remove), splits, remove_outliers=remove).clouds
        assert max(len(each) for each in clouds[True] + clouds[False]) == largest
        metadata = checkpoint.load(tmp_path / str(remove) / "run_0.pth")["metadata"]
        assert metadata["preprocessing"]["remove_outliers"] is remove


def test_training_clouds_are_augmented_and_others_not(tmp_path):
    clouds = recorded(tmp_path, protocol=None, augmentation={"scale": [2.0, 3.0], "num_points": 20}).clouds
    assert all(len(each) == 20 and each.norm(dim=1).max() > 1.9 for each in clouds[True])
    assert all(len(each) == 24 and each.norm(dim=1).max() < 1.01 for each in clouds[False])


def test_the_transform_of_a_data_set_comes_first_and_once(tmp_path):
    sets = [
        Shapes(split, 24, 4, transform=RandomScale(5.0, 5.0), normalize=False) for split in ("train", "val")
    ]
    clouds = recorded(tmp_path, Splits(*sets, {"test": sets[1]}), protocol=None).clouds
    for kind, dataset in ((True, sets[0]), (False, sets[1])):
        radii = sorted(float(graph.ndata["pos"].norm(dim=1).max()) for graph, _ in dataset)
        assert sorted({round(float(each.norm(dim=1).max()), 3) for each in clouds[kind]}) == pytest.approx(
            sorted({round(each, 3) for each in radii}), abs=2e-3
        )
    assert sets[0]._transform is not None and len(sets[0]) == 4  # the data sets given stay as they are


@pytest.mark.parametrize("pipeline", ["pointcls", "normals"])
def test_fit_from_python_trains_what_a_recipe_trains(pipeline, tmp_path):
    general = dict(augmentation={"jitter": 0.02, "scale": [0.8, 1.25]}, protocol="z/so3", seed=3)
    general |= {"label_smoothing": 0.2} if pipeline == "pointcls" else {"signed": False}
    recipe = tiny.recipe(pipeline, **general)
    tiny.train(recipe, tmp_path / "recipe")
    setup, cls = build(recipe), data_class("shapes")
    train, val, test = (cls(**data_options(recipe, split)) for split in ("train", "val", "test"))
    task = PointClassification(train.num_classes) if pipeline == "pointcls" else NormalEstimation()
    splits = Splits(train, val, {"test": test})
    fit(task, setup.make_model, splits, setup.settings, folder=tmp_path / "python", progress=False)
    one, other = (checkpoint.load(tmp_path / name / "run_0.pth") for name in ("recipe", "python"))
    assert all(torch.equal(value, other["weights"][name]) for name, value in one["weights"].items())
    assert one["tests"] == other["tests"] and one["metadata"] == other["metadata"]


def test_what_a_task_was_given_holds():
    settings = Settings(label_smoothing=0.3, signed=False)
    assert PointClassification(4).with_settings(settings).label_smoothing == 0.3
    assert PointClassification(4, 0.0).with_settings(settings).label_smoothing == 0.0
    assert NormalEstimation().with_settings(settings).main_metric == "unsigned_normal_error"
    assert NormalEstimation(True).with_settings(settings).main_metric == "normal_error"


@pytest.mark.parametrize("wrap", [lambda shapes: Subset(shapes, range(3)), list])
def test_any_data_set_is_transformed_by_seed_epoch_and_number(wrap):
    shapes = Shapes("train", 24, 3)
    changed = with_transform(wrap(shapes), transform_for(ROTATIONS, "train"), seed=5)
    first = [graph.ndata["pos"] for graph, _ in changed]
    assert len(changed) == 3 and torch.equal(first[1], changed[1][0].ndata["pos"])
    assert int(changed[1][1]) == int(shapes[1][1])
    changed.set_epoch(1)
    assert not torch.allclose(first[1], changed[1][0].ndata["pos"], atol=1e-3)
    for graph, before in zip((shapes[1][0],), (first[1],)):
        torch.testing.assert_close(distances(before), distances(graph.ndata["pos"]), rtol=0, atol=1e-3)


def test_a_protocol_about_gravity_needs_its_axis():
    with pytest.raises(DGLError):
        transform_steps(Settings(protocol="z/z"), "train", gravity=None)


def test_views_and_density_come_before_points_are_sampled():
    augmentation = {"view": 0.5, "density": 2.0, "num_points": 32, "point_dropout": 0.1}
    names = [name for name, _ in transform_steps(Settings(protocol=None, augmentation=augmentation), "train")]
    assert names == ["RandomView", "RandomDensity", "FixedPoints", "NormalizeScale", "RandomPointDropout"]
    assert "RandomView" not in dict(transform_steps(Settings(augmentation=augmentation), "val", gravity="z"))
