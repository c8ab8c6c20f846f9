"""How a training went, from its folder: curves, and what its network answers for the test set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from dgl import DGLError
from torch.nn.functional import normalize

from ..config.build import data_set
from ..data import ChargedParticles, PointCloudDataset, simulate
from ..metrics import PartIoU
from ..plot.saving import output_path, save_any
from ..plot.training_figure import (
    Drawing,
    System,
    confusion,
    error_curve,
    iou_bars,
    training_figure,
    trajectories,
)
from ..train.predict import predict
from ..zoo.trained_model import TrainedModel, load_trained_model

__all__ = ["read_log", "view_run"]

_NUM_SYSTEMS = 4
_NUM_STEPS = 50  # of a true path that are drawn
_MOST = 1e100  # what an axis can show


def view_run(folder: str | Path, out: str | Path | None = None, progress: bool = True) -> Path:
    """Draw how a training went.

    Beside the curves of all runs there is, for the test set and the first run's best network: for
    ``pointcls`` the confusion matrix, for ``partseg`` the IoU of every category, for ``normals`` the
    distribution of errors, for ``nbody`` some systems' trajectories. A training that is not done, or of which
    the checkpoint is gone, has its curves alone.

    Parameters
    ----------
    folder : str or Path
        The training's folder, ``save_path`` of its recipe.
    out : str or Path, optional
        The picture, .png .pdf or .svg, or a page, .html.
    progress : bool
        Whether a terminal sees a progress bar.

    Returns
    -------
    Path
        The file that was written.
    """
    folder = Path(folder)
    path = output_path(out, folder.resolve().name or "training")
    histories = {f"run {number}": read_log(log) for number, log in _logs(folder)}
    checkpoint = folder / "run_0.pth"
    title, metric, drawing = str(folder.resolve().name), None, None
    if checkpoint.exists():
        trained = load_trained_model(checkpoint)
        recipe, metric = trained.recipe, trained.task.main_metric
        data = recipe.get("data", {"name": "own data"})
        title += f": {recipe['pipeline_name']}, {data['name']}, {recipe['model']['name']}"
    if checkpoint.exists() and "data" in recipe:
        drawing = _RESULTS[trained.pipeline](trained, data_set(recipe, "test"), progress)
    return save_any(training_figure(histories, metric, title, drawing), path, title)


def _logs(folder: Path) -> list[tuple[int, Path]]:
    """The logs of all runs, in order."""
    logs = [log for log in folder.glob("run_*/log.jsonl") if log.parent.name[4:].isdecimal()]
    if not logs:
        raise DGLError(
            f"There is no training in the folder {folder}: expected run_0/log.jsonl in it; to see a cloud, "
            f"name its file."
        )
    return sorted((int(log.parent.name[4:]), log) for log in logs)


def read_log(path: Path) -> list[dict]:
    """The epochs' records of a run.

    A last line without an end is left out, for it is still being written.

    Raises
    ------
    DGLError
        If the file is not such a log, or no epoch is done.
    """
    lines = path.read_text("utf-8", errors="replace").split("\n")
    records = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            record = json.loads(line)
            numbers = [record[name] for name in ("epoch", "loss", "lr")] + list(record["val"].values())
            records.append(record | {"val": dict(record["val"])})
            if not all(isinstance(each, int | float) and not abs(each) > _MOST for each in numbers):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DGLError(
                f"Line {number} of {path} is no record of an epoch; expected epoch, loss, val and lr."
            ) from error
    if not records:
        raise DGLError(f"No epoch is recorded in {path} yet; wait for the first one.")
    return records


def _confusion(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    names = list(trained.metadata["class_names"])
    matrix = np.zeros((len(names), len(names)), dtype=int)
    answers = predict(trained.model, trained.task, test, progress=progress)
    for label, logits in zip(test.labels, answers):
        matrix[int(label), int(logits.argmax())] += 1
    return confusion(matrix, names)


def _iou(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    metric, task = PartIoU(trained.task.class_parts), trained.task
    answers = predict(trained.model, task, test, progress=progress)
    for number, logits in enumerate(answers):
        item = test[number]
        graph, label = item if isinstance(item, tuple) else (item, None)
        category = torch.zeros(1, dtype=torch.int64) if label is None else label.reshape(1)
        found = task.predictions(logits, graph, category)
        metric.update(found, graph.ndata["part"], category, graph.batch_num_nodes())
    return iou_bars(metric.by_class(), trained.metadata["class_names"])


def _normals(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    angles = []
    for number, vectors in enumerate(predict(trained.model, trained.task, test, progress=progress)):
        item = test[number]
        true = (item[0] if isinstance(item, tuple) else item).ndata["normal"]
        cosine = (normalize(vectors.reshape(-1, 3), dim=1) * true).sum(1)
        cosine = cosine if trained.task.signed else cosine.abs()
        angles.append(torch.rad2deg(cosine.clamp(-1, 1).acos()).numpy())
    return error_curve(np.concatenate(angles))


def _trajectories(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    few = torch.utils.data.Subset(test, range(min(_NUM_SYSTEMS, len(test))))
    systems = []
    for number, predicted in enumerate(predict(trained.model, trained.task, few, progress=progress)):
        data = {name: values.double().numpy() for name, values in few[number].ndata.items()}
        path = np.stack([data["pos"], data["target_pos"]])
        if isinstance(test, ChargedParticles) and not test.noise:
            steps = np.unique(np.linspace(0, test.horizon, _NUM_STEPS).round().astype(int)).tolist()
            path, _ = simulate(data["pos"], data["vel"], data["charge"], steps, physics=test.physics)
        systems.append(System(path, predicted.double().numpy(), data["charge"].ravel()))
    return trajectories(systems)


_RESULTS: dict[str, Callable[[TrainedModel, PointCloudDataset, bool], Drawing]] = {
    "pointcls": _confusion,
    "partseg": _iou,
    "normals": _normals,
    "nbody": _trajectories,
}
