"""Recipes of ModelNet40: what differs between runs, and that stored records have today's."""

from __future__ import annotations

import copy
import doctest

import pytest
from dgl import DGLError

from benchmarks.experiments.json_files import read_records
from benchmarks.experiments.modelnet40 import recipes
from benchmarks.experiments.modelnet40.recipes import LONG, NETWORKS, long_run, protocol_run, trial_run
from benchmarks.experiments.training import is_current
from benchmarks.report import RESULTS
from dgl_orient.config.recipe import check
from dgl_orient.train.training_folder import differences

RUNS, TRIALS = (read_records(RESULTS / "modelnet40" / name) for name in ("runs", "trials"))
REMOVED = {"attention", "refined", "relative", "large-8-normal-relative"}  # networks of trials


def test_examples_run():
    failed, attempted = doctest.testmod(recipes)
    assert attempted and not failed


@pytest.mark.parametrize("task", NETWORKS)
def test_networks_of_a_task_differ_in_their_architecture_alone(task):
    first, *others = (protocol_run(task, model, "z", 10, seed=3).recipe for model in NETWORKS[task])
    for other in others:
        assert other == first | {"model": other["model"]}
    twins = (protocol_run(task, model, "z", 10).recipe["model"] for model in ("oriented-dgcnn", "dgcnn"))
    oriented, plain = ({**model, "name": None} for model in twins)
    assert plain.items() <= oriented.items()


def test_training_with_so3_differs_in_the_protocol_alone():
    z, so3 = (protocol_run("cls", "dgcnn", train, 10).recipe for train in ("z", "so3"))
    assert differences(z, so3) == ["general_pipeline.protocol"]


@pytest.mark.parametrize("kind", LONG)
def test_long_training_changes_the_protocols_recipe_as_listed(kind):
    expected = copy.deepcopy(protocol_run("cls", "oriented-dgcnn", "z", 9).recipe)
    for section, values in LONG[kind].items():
        expected[section] = values if "name" in values else expected[section] | values
    assert long_run(kind, 9).recipe == check(expected)
    assert differences(long_run(kind, 9, train="so3").recipe, check(expected)) == [
        "general_pipeline.protocol"
    ]


def test_unknown_names_are_refused():
    with pytest.raises(DGLError):
        protocol_run("normals", "oriented-rscnn", "z", 1)
    with pytest.raises(DGLError):
        trial_run("k-9")


@pytest.mark.parametrize("name", RUNS)
def test_stored_records_have_the_recipe_of_their_run(name):
    record = RUNS[name]
    if name.startswith("long_"):
        _, kind, epochs = name.split("_")
        record = record | {"initial_weights": None}
        assert is_current(record, long_run(kind, int(epochs)))
    else:
        task, model, train, epochs, seed = name.split("_")
        assert is_current(record, protocol_run(task, model, train, int(epochs), int(seed)))


@pytest.mark.parametrize("name", TRIALS)
def test_trials_can_be_repeated_unless_their_network_was_removed(name):
    if name in REMOVED:
        with pytest.raises(DGLError):
            trial_run(name)
    else:
        assert is_current(TRIALS[name], trial_run(name))
