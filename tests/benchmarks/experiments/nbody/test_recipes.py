"""Recipes of the N-body networks: what differs between runs, and that stored records have today's."""

from __future__ import annotations

import doctest

import pytest
from dgl import DGLError

from benchmarks.experiments.json_files import read_records
from benchmarks.experiments.nbody import recipes
from benchmarks.experiments.nbody.recipes import ablation_run, efficiency_run, protocol_run
from benchmarks.experiments.training import Run, is_current
from benchmarks.report import RESULTS
from dgl_orient.config.build import data_set
from dgl_orient.config.recipe import load

STORED = read_records(RESULTS / "nbody" / "runs")


def test_examples_run():
    failed, attempted = doctest.testmod(recipes)
    assert attempted and not failed


@pytest.mark.parametrize("model", ["oriented-nbody", "egnn", "gnn", "linear"])
def test_recipe_differs_from_its_file_in_seed_epochs_and_box_alone(model):
    file = load(recipes._RECIPES / f"nbody_charged20_{model}.yaml")
    recipe = protocol_run("n20-box", model, seed=7, epochs=11).recipe
    general = file["general_pipeline"] | {"seed": 7, "num_epochs": 11}
    if "warmup_epochs" in general["lr_scheduler"]:  # the same fraction of the epochs
        assert general["lr_scheduler"]["warmup_epochs"] * 10 == file["general_pipeline"]["num_epochs"]
        general["lr_scheduler"] |= {"warmup_epochs": 1}
    assert recipe["general_pipeline"] == general
    assert recipe["data"] == file["data"] | {"box": 5.0}
    assert recipe["model"] == file["model"]


def test_tuned_egnn_differs_from_oriented_nbody_in_the_network_alone():
    egnn, inverse, tuned, oriented = (
        protocol_run("n10", model, 0, 100).recipe
        for model in ("egnn", "egnn-inverse", "egnn-inverse-tuned", "oriented-nbody")
    )
    assert inverse == egnn | {"model": egnn["model"] | {"inverse_distance": True}}
    assert tuned["model"] == inverse["model"]
    assert tuned["general_pipeline"] == oriented["general_pipeline"] != egnn["general_pipeline"]
    assert tuned["data"] == egnn["data"] == oriented["data"]


def test_data_do_not_depend_on_the_seed_and_smaller_sets_are_prefixes():
    one, other, fewer = (
        data_set(run.recipe, "train")
        for run in (
            protocol_run("n10", "egnn", 0, 1, quick=True),
            protocol_run("n10", "gnn", 1, 1, quick=True),
            efficiency_run("egnn", 1000, 1, quick=True),
        )
    )
    assert (len(one), len(other), len(fewer)) == (30, 30, 10)
    for name in ("pos", "target_pos"):
        assert (one[29].ndata[name] == other[29].ndata[name]).all()
        assert (one[9].ndata[name] == fewer[9].ndata[name]).all()


def test_unknown_names_are_refused():
    with pytest.raises(DGLError):
        protocol_run("n7", "egnn", 0, 1)
    with pytest.raises(DGLError):
        protocol_run("n5", "painn", 0, 1)


def _run(name: str) -> Run:
    first, model, number, *epochs = name.split("_")
    if first == "ablation":
        return ablation_run(model, int(number))
    if first == "efficiency":
        return efficiency_run(model, int(number), int(*epochs))
    return protocol_run(first, model, int(number), int(*epochs))


@pytest.mark.parametrize("name", STORED)
def test_stored_records_have_the_recipe_of_their_run(name):
    assert _run(name).name == name
    assert is_current(STORED[name], _run(name))
