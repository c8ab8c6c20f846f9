"""The folder of a training: one process at a time, and what makes two recipes differ."""

from __future__ import annotations

import json

import pytest
from dgl import DGLError

from dgl_orient._training_folders import newest_training
from dgl_orient.train.training_folder import TrainingFolder, differences, summary
from tests.train.small import settings, train


def test_two_processes_do_not_train_in_one_folder(tmp_path):
    with TrainingFolder(tmp_path, {}, settings()).locked(resume=False):
        for resume in (False, True):
            with pytest.raises(DGLError):
                train(tmp_path, resume=resume, num_epochs=1)
    train(tmp_path, num_epochs=1)  # now it is free


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DGLError, match="save_path"):
        train(tmp_path / "file" / "results")


def test_differences_name_keys_of_every_depth():
    one = {"device": "cpu", "data": {"name": "shapes", "level_sizes": [1, 2]}, "model": {"k": 20}, "seed": 0}
    other = {
        "device": "cuda",
        "data": {"name": "shapes", "level_sizes": [1, 3]},
        "model": {"k": 20, "deep": None},
    }
    assert differences(one, other) == ["data.level_sizes", "model.deep", "seed"]
    assert differences(one, one) == []


def test_what_has_no_part_in_the_result_may_differ():
    one = {"device": "cpu", "general_pipeline": {"num_workers": 0, "save_path": "a", "seed": 1}}
    other = {"device": "cuda", "general_pipeline": {"num_workers": 4, "save_path": "b", "seed": 1}}
    assert differences(one, other) == []


def test_a_recipe_is_kept_as_it_will_be_read(tmp_path):
    assert TrainingFolder(tmp_path, {"widths": (8, 8)}, settings()).recipe == {"widths": [8, 8]}
    with pytest.raises(DGLError):
        TrainingFolder(tmp_path, {"model": object()}, settings())
    with pytest.raises(DGLError):
        TrainingFolder(tmp_path, {"lr": float("nan")}, settings())


def test_a_single_run_has_no_deviation():
    assert summary([{"test": {"mse": 2.0}}])["test"]["mse"] == {
        "mean": 2.0,
        "deviation": 0.0,
        "values": [2.0],
    }


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"recipe": {"a": 1}, "settings": {}})])
def test_results_of_another_training_are_not_taken_for_its_own(tmp_path, content):
    records = TrainingFolder(tmp_path, {}, settings())
    records.results_path.write_text(content)
    assert records.results() is None


def test_each_training_has_a_number_and_resume_finds_the_last_of_its_recipe(tmp_path):
    parent = tmp_path / "results"
    first, other = (TrainingFolder(parent, {"k": number}, settings()) for number in (1, 2))
    assert first.numbered(resume=True).folder == parent / "001"
    for number, records in ((2, first), (3, other)):
        numbered = records.numbered(resume=False)
        assert numbered.folder == parent / f"{number:03}"
        numbered.save_last(0, {"run": 0})
    assert first.numbered(resume=True).folder == parent / "002"
    assert other.numbered(resume=True).folder == parent / "003"
    unknown = TrainingFolder(parent, {"k": 3}, settings()).numbered(resume=True)
    assert unknown.folder == parent / "001"  # nothing was trained in it yet
    (parent / "001").rmdir()
    with pytest.raises(DGLError, match="003"):
        TrainingFolder(parent, {"k": 3}, settings()).numbered(resume=True).last(0)


def test_a_folder_stands_for_the_newest_training_in_it(tmp_path):
    assert newest_training(tmp_path) == tmp_path
    for name in ("001", "999", "1000", "1001", "notes"):
        (tmp_path / name).mkdir()
    for name in ("001", "999", "1000"):
        (tmp_path / name / "run_0.pth").touch()
    assert newest_training(tmp_path) == tmp_path / "1000"
    assert newest_training(tmp_path / "001") == tmp_path / "001"
