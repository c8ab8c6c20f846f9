"""Networks trained on a folder of files: colours reach them in prediction, and parts keep their numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data import FolderDataset
from tests.data.test_folder_attributes import cloud, write_npz
from tests.go import tiny


def train(pipeline: str, folder, results, **data) -> None:
    """Train a tiny network on the files of a folder."""
    given = tiny.recipe(pipeline, model=tiny.PLAIN, protocol="so3/so3")
    own = {"name": "folder", "raw_dir": str(folder), "num_points": 24} | data
    tiny.train(tiny.check(given | {"data": own}), results)


def test_colours_reach_the_network_in_prediction_as_in_training(tmp_path):
    rng = np.random.default_rng(0)
    for label in ("red", "blue"):
        (tmp_path / "mine" / label).mkdir(parents=True)
        for number in range(5):
            path = tmp_path / "mine" / label / f"{number}.npz"
            np.savez(path, pos=rng.standard_normal((24, 3)), color=rng.integers(256, size=(24, 3)))
    train("pointcls", tmp_path / "mine", tmp_path / "results", features=["color"])
    model = dgl_orient.pretrained(tmp_path / "results")
    assert model.input_features == ("color",) and model.network.in_feats == 3
    dataset = FolderDataset(tmp_path / "mine", "all", 24, features=["color"], transform=model.transform)
    with torch.no_grad():
        expected = model.network(dataset[0][0]).softmax(1)[0].tolist()
    predicted = model.predict(dataset.files[0], remove_outliers=False)[0]["probabilities"]
    assert list(predicted.values()) == pytest.approx(expected, abs=1e-4)
    arrays = dict(np.load(dataset.files[0]))
    grey = model.predict(arrays | {"color": np.full((24, 3), 9)}, remove_outliers=False)[0]["probabilities"]
    assert list(grey.values()) != pytest.approx(expected, abs=1e-4)
    with pytest.raises(DGLError, match="color"):
        model.predict(arrays["pos"])


def test_parts_of_one_category_are_predicted_by_the_numbers_of_the_files(tmp_path):
    (tmp_path / "mine").mkdir()
    for number in range(10):
        write_npz(tmp_path / "mine" / str(number), *cloud(30, number))
    train("partseg", tmp_path / "mine", tmp_path / "results")
    model = dgl_orient.pretrained(tmp_path / "results")
    assert not model.is_category_conditioned
    predicted = model.predict(cloud(30, 99)[0])[0]
    assert set(predicted["part"].tolist()) <= {2, 5} and predicted["category"] == "mine"
