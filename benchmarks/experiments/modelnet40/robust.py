"""The accuracy on what happens to scans, predicted as users do, with outliers removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from dgl_orient.data.modelnet import ModelNet40
from dgl_orient.zoo.trained_model import TrainedModel

from ..corruptions import CASES
from ..network_figures import commands_of, measure_networks
from ..results_page import table
from ..training import Folders, command_of
from .predictions import accuracy_percent, predict_shapes, shapes_in_poses

__all__ = ["ROBUST", "measure_robust", "most_robust", "robust_tables"]

#: The name of the file of results.
ROBUST = "robust.json"


def measure_robust(names: Sequence[str], every: int, folders: Folders, raw_dir: Path, quick: bool) -> None:
    """Add the accuracies of networks, pretrained ones or those of runs, to :data:`ROBUST` of the results."""
    shapes = shapes_in_poses(ModelNet40(raw_dir, "test", 128 if quick else 1024))[::every]

    def measure(model: TrainedModel) -> list[dict[str, object]]:
        found = {case: accuracy_percent(model, predict_shapes(model, shapes, case), shapes) for case in CASES}
        return [{"shapes": len(shapes), "cases": {case: each["accuracy"] for case, each in found.items()}}]

    command = f"robust NAME{'' if every == 1 else f' --every {every}'}"
    measure_networks(names, folders, ROBUST, command_of("modelnet40", command), measure)


def most_robust(networks: Mapping[str, Mapping]) -> dict[str, dict[str, float]]:
    """For the summary: case to accuracy of the network whose mean over the cases is best, if there is one."""
    cases = [record["cases"] for record in networks.values()]
    return {"robust": max(cases, key=lambda each: mean(each.values()))} if cases else {}


def robust_tables(networks: Mapping[str, Mapping]) -> dict[str, str]:
    """The tables of ``page.md`` for which there are records."""
    if not networks:
        return {}
    rows = [
        [name, record["shapes"], *(record["cases"].get(case, "-") for case in CASES)]
        for name, record in networks.items()
    ]
    return {
        "robust": table(["network", "shapes", *CASES], rows),
        "robust_commands": commands_of(networks),
    }
