"""What trainings of all experiments have in common."""

from __future__ import annotations

import doctest

import pytest

from benchmarks.experiments import protocols, results_page, training


@pytest.mark.parametrize("module", [protocols, results_page, training])
def test_examples_run(module):
    failed, attempted = doctest.testmod(module)
    assert attempted and not failed


def test_folders_of_this_machine_leave_the_recipe_as_it_is(tmp_path):
    recipe = {"data": {"name": "shapes", "raw_dir": "data"}, "model": {"name": "dgcnn"}}
    local = training.localize(recipe, raw_dir=tmp_path, save_dir=tmp_path / "arrays")
    assert local["data"]["raw_dir"] == str(tmp_path) and local["model"] == recipe["model"]
    assert recipe["data"] == {"name": "shapes", "raw_dir": "data"}
