"""The public object of a trained model: clouds in any form, features, orientations, saving, fine-tuning."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data import write_cloud
from dgl_orient.geometry import random_rotation
from dgl_orient.zoo.clouds import read_file
from tests.clouds import ball, generator
from tests.go import tiny


@pytest.fixture(scope="module")
def model():
    return dgl_orient.pretrained(tiny.trained("pointcls"))


@pytest.fixture(scope="module")
def pos() -> torch.Tensor:
    return ball(90).double()


def probabilities(model, data, **options) -> np.ndarray:
    return np.array([list(each["probabilities"].values()) for each in model.predict(data, **options)])


def test_the_form_of_clouds_makes_no_difference(model, pos, tmp_path):
    (expected,) = probabilities(model, pos)
    write_cloud(tmp_path / "0.npz", pos)
    forms = [
        *([pos.numpy(), pos.tolist(), dgl_orient.point_cloud(pos), {"pos": pos}]),
        *([tmp_path, str(tmp_path / "0.npz"), [pos], pos[None], np.array([tmp_path / "0.npz", None])[:1]]),
    ]
    for form in forms:
        np.testing.assert_allclose(probabilities(model, form)[0], expected, atol=1e-4)
    many = probabilities(model, [pos, pos[None], dgl_orient.point_cloud(torch.cat([pos, pos]), [90, 90])])
    np.testing.assert_allclose(many, np.tile(expected, (4, 1)), atol=1e-4)


def test_scale_place_and_pose_make_no_difference(model, pos):
    rotation = random_rotation(dtype=torch.float64, generator=generator(3))
    moved = 1e4 * pos @ rotation.T + 5e6
    np.testing.assert_allclose(*probabilities(model, [pos, moved]), atol=1e-3)


@pytest.mark.parametrize("data", [[], None, 3, np.zeros((4, 2)), np.zeros((0, 3)), np.full((9, 3), np.nan)])
def test_what_is_no_cloud_is_an_error(model, data):
    with pytest.raises(DGLError):
        model.predict(data)


def test_outliers_are_removed_and_reported(model, pos):
    stray = torch.cat([pos, torch.tensor([[9.0, 9, 9], [-8, 9, 7]], dtype=torch.float64)])
    with_stray, without = model.predict([stray, pos])
    assert "2 outliers" in " ".join(with_stray.warnings) and not without.warnings
    assert with_stray["probabilities"] == pytest.approx(without["probabilities"], abs=1e-4)
    (kept,) = model.predict(stray, remove_outliers=False)
    assert not kept.warnings


def test_an_outlier_has_the_prediction_of_the_nearest_point(pos):
    model = dgl_orient.pretrained(tiny.trained("normals"))
    stray = torch.cat([pos[:30], 9 * pos[:1]])
    (prediction,) = model.predict(stray)
    nearest = int((pos[:30] - stray[-1]).norm(dim=1).argmin())
    normal = prediction["normal"]
    assert normal.shape == (31, 3)
    np.testing.assert_array_equal(normal[-1], normal[nearest])


def test_few_points_are_reported(model, pos, tmp_path):
    write_cloud(tmp_path / "few.npz", pos[:12])
    assert "12 points" in " ".join(read_file(model, tmp_path / "few.npz").warnings)


def test_votes_are_the_mean_over_samples(model, pos):
    single = [np.log(probabilities(model, pos, votes=1)[0])]
    voted = probabilities(model, pos, votes=3)[0]
    assert not np.allclose(np.log(voted), single[0], atol=1e-5)
    np.testing.assert_allclose(voted.sum(), 1, atol=1e-4)
    with pytest.raises(DGLError):
        model.predict(pos, votes=0)


def test_features_are_invariant_and_orientations_equivariant(pos):
    model = dgl_orient.pretrained(tiny.trained("pointcls"))
    rotation = random_rotation(dtype=torch.float64, generator=generator(3))
    data = [pos, pos @ rotation.T]
    here, there = model.features(data)
    torch.testing.assert_close(here, there, rtol=1e-3, atol=1e-3)
    here, there = model.features(data, per="point")
    assert len(here) == 90
    cloud, rotated = model.orientations(data)
    torch.testing.assert_close(rotated, rotation.float() @ cloud, rtol=0, atol=1e-2)
    point, rotated = model.orientations(data, per="point")
    assert point.shape[0] == 90 and point.shape[2:] == (3, 3)
    assert ((rotated - rotation.float() @ point).abs().flatten(1).amax(1) < 1e-2).double().mean() > 0.9


def test_a_plain_network_has_no_orientations(tmp_path, pos):
    tiny.train(tiny.recipe("normals", model=tiny.PLAIN), tmp_path / "results")
    model = dgl_orient.pretrained(tmp_path / "results" / "run_0.pth")
    with pytest.raises(DGLError):
        model.orientations(pos)


def test_a_saved_model_is_the_same(model, pos, tmp_path):
    model.save(tmp_path / "copy.pth")
    copy = dgl_orient.pretrained(tmp_path / "copy.pth")
    np.testing.assert_array_equal(probabilities(copy, pos), probabilities(model, pos))
    assert copy.scores == model.scores and copy.recipe == model.recipe


def test_the_bare_network_warns_of_unprepared_clouds(model, pos):
    with pytest.warns(UserWarning, match="model.predict"), torch.no_grad():
        model.network(dgl_orient.point_cloud(1000 * pos.float()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = model.meta.transform(dgl_orient.point_cloud(pos.float()))
        model.network(prepared)
        model.predict(torch.ones(1, 3))  # which has no scale


def test_a_prediction_is_a_mapping(pos):
    (prediction,) = dgl_orient.pretrained(tiny.trained("partseg")).predict(pos, category="mug")
    assert "part" in prediction and "class" not in prediction and prediction.get("class") is None
    assert {"category", "parts", "part", "probability"} <= set(prediction) == set(dict(prediction))
    assert len(prediction) == len(list(prediction))


def test_predictions_print_as_a_table(model, pos):
    lines = repr(model.predict([pos, pos[:12]])).splitlines()
    assert len(lines) == 3 and "class" in lines[0] and "12 points" in lines[2]


def test_finetuning_gives_a_model_for_other_classes(model, tmp_path):
    clouds = [ball(50, seed) * torch.tensor([1, 1, scale]) for seed in range(4) for scale in (0.1, 1)]
    tuned = model.finetune(clouds, ["flat", "round"] * 4, num_epochs=2, progress=False)
    assert tuned.meta.class_names == ["flat", "round"] and tuned.num_points == model.num_points
    before, after = model.network.state_dict(), tuned.network.state_dict()
    changed = [name for name in before if not torch.equal(before[name], after[name])] if before else []
    assert changed and all(name.startswith("head.logits") for name in changed)
    tuned.save(tmp_path / "tuned.pth")
    assert dgl_orient.pretrained(tmp_path / "tuned.pth").predict(clouds[0])[0]["class"] in ("flat", "round")
