"""One training on ModelNet40, and what is recorded of it."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dgl import DGLError
from torch import nn

from dgl_orient.config.build import TrainingSetup, build, data_set
from dgl_orient.train import checkpoint
from dgl_orient.train.loop import Splits
from dgl_orient.train.records import differences
from dgl_orient.zoo.trained_model import TrainedModel

from ..trainings.files import read_json, write_json
from ..trainings.training import Place, Run, fitted, is_of, log_of, record_of
from .sizes import few

__all__ = ["BEGAN_WITH", "located", "trained", "with_protocol"]

#: Beside a checkpoint: with which weights its training began, if with any.
BEGAN_WITH = "began_with.json"


def trained(
    run: Run,
    place: Place,
    raw_dir: Path,
    tests: Sequence[str],
    before: Mapping[str, object] | None = None,
    quick: bool = False,
    first: TrainedModel | None = None,
) -> dict[str, object]:
    """The record of a training: the one from before if it is of the same recipe, otherwise train.

    A training that was stopped goes on where it was.

    Parameters
    ----------
    run : Run
        What to train.
    place : Place
        Where to keep its files.
    raw_dir : Path
        The folder of the download.
    tests : sequence of str
        The protocols by which the best epoch is scored on the test set. With none the test set is not seen.
    before : mapping, optional
        A record from before.
    quick : bool
        Whether to take only a few shapes of each split.
    first : TrainedModel, optional
        A network of the same architecture, with whose weights to begin. What they are is kept with the
        training, which goes on only from the same ones.
    """
    told = _told_of(first)
    if is_of(before, run) and before.get("began_with") == told:
        print(f"{run.name} is done: {_told(before)}", flush=True)
        return dict(before)
    recipe = located(run.recipe, raw_dir)
    job = build(recipe) if first is None else _begun_with(first, build(recipe), run)
    scored = {name: data_set(with_protocol(recipe, name), "test") for name in tests}
    splits = Splits(job.splits.train, job.splits.val, scored)
    if quick:
        splits = Splits(
            few(splits.train), few(splits.val), {name: few(each) for name, each in scored.items()}
        )
    folder = place.of(run)
    _keep_beginning(folder, told)
    results = fitted(run, folder, job, splits)
    record = _record(run, folder, results, job.task.main_metric)
    if told is not None:
        record["began_with"] = told
    print(f"{run.name}: {_told(record)}", flush=True)
    return record


def _begun_with(first: TrainedModel, job: TrainingSetup, run: Run) -> TrainingSetup:
    """The job with networks that have these weights before their training."""

    def make() -> nn.Module:
        model = job.make_model()
        checkpoint.load_weights(model, first.model.state_dict(), first.path)
        return model

    sections = ("pipeline_name", "model")
    if differences(*({name: each[name] for name in sections} for each in (first.recipe, run.recipe))):
        raise DGLError(f"The network in {first.path} is of another architecture than {run.name}.")
    make()  # raises if the weights do not fit
    return replace(job, make_model=make)


def _told_of(first: TrainedModel | None) -> dict[str, object] | None:
    """Which network it is: by its weights, and by how it was trained."""
    if first is None:
        return None
    digest = hashlib.sha256()
    for values in first.model.state_dict().values():
        digest.update(values.numpy().tobytes())
    general = first.recipe["general_pipeline"]
    return {"sha256": digest.hexdigest()} | {
        name: general[name] for name in ("num_epochs", "protocol", "seed")
    }


def _keep_beginning(folder: Path, told: Mapping[str, object] | None) -> None:
    """Keep with a training what it begins with; raise if it has begun with something else."""
    path = folder / BEGAN_WITH
    if log_of(folder) and read_json(path) != told:
        raise DGLError(f"The training in {folder} began with other weights; give another --folder.")
    if told is not None:
        write_json(path, told)


def located(recipe: Mapping[str, object], raw_dir: Path) -> dict[str, object]:
    """The recipe with the folder in which the download is here."""
    recipe = copy.deepcopy(dict(recipe))
    recipe["data"]["raw_dir"] = str(raw_dir)
    return recipe


def with_protocol(recipe: Mapping[str, object], name: str) -> dict[str, object]:
    """The recipe with clouds turned in another way."""
    return {**recipe, "general_pipeline": recipe["general_pipeline"] | {"protocol": name}}


def _record(run: Run, folder: Path, results: Mapping[str, object], metric: str) -> dict[str, object]:
    account, log, common = results["runs"][0], log_of(folder), record_of(folder, results)
    # An epoch that was not validated has no figure.
    curve = [epoch["val"][metric] if epoch.get("val") else None for epoch in log]
    last = next((epoch["val"] for epoch in reversed(log) if epoch.get("val")), None)
    return {
        "command": run.command,
        "tests": account["tests"],
        "val": account["val"],
        "last_val": last,
        "minutes": round(account["seconds"] / 60, 2),
        "cpu_minutes": _cpu_minutes(common),
        **common,
        "val_curve": [value if value is None else round(value, 5) for value in curve],
    }


def _cpu_minutes(record: Mapping[str, object]) -> float | None:
    """The processor's minutes, reckoned from the epochs whose process has told them."""
    seconds = record["cpu_seconds_per_epoch"]
    return seconds and round(seconds * record["epochs"] / 60, 2)


def _told(record: Mapping[str, object]) -> str:
    figures = {"val": record["val"], **record["tests"]}
    parts = [f"{name} {next(iter(metrics.values())):.4f}" for name, metrics in figures.items()]
    return ", ".join([*parts, f"{record['minutes']:.1f} minutes."])
