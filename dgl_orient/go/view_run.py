"""Draw what became of a training: its curves and test results, or the quality of its orientations."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from .._training_folders import newest_training
from ..config.build import data_set
from ..data import ChargedParticles, PointCloudDataset, simulate
from ..metrics import Accuracy, PartIoU, chosen_direction
from ..plot.prediction_colors import angular_error
from ..plot.quality_figure import quality_figure
from ..plot.saving import output_path, save_figure, write_text
from ..plot.training_figure import (
    Drawing,
    System,
    confusion_matrix,
    error_curve,
    iou_bars,
    property_scatter,
    read_history,
    training_figure,
    trajectories,
)
from ..train.predict import predict
from ..zoo.loading import load_trained_model
from ..zoo.quality import measure_quality
from ..zoo.trained_model import TrainedModel

__all__ = ["view_quality", "view_run"]

_NUM_SYSTEMS = 4
_NUM_STEPS = 50  # of a drawn trajectory


def view_run(
    folder: str | Path, out: str | Path | None = None, progress: bool = True, allow_plugins: bool = False
) -> Path:
    """Draw the results of a training, given its folder; return the file.

    Of the folder in a recipe's ``save_path`` it is the newest training.

    Beside the curves of all runs there is, for the test set and the best network of the first run: for
    ``pointcls`` the confusion matrix, for ``partseg`` the IoU of every category, for ``normals`` and
    ``upright`` the distribution of errors, for ``nbody`` some trajectories, for molecules predicted against
    true properties. Without a checkpoint, as before the training is complete, there are curves alone.
    """
    folder = newest_training(Path(folder))
    path = output_path(out, folder.resolve().name or "training")
    logs = {log.parent.name.removeprefix("run_"): log for log in folder.glob("run_*/log.jsonl")}
    logs = {int(number): log for number, log in logs.items() if number.isdecimal()}
    if not logs:
        raise DGLError(
            f"There is no training in the folder {folder}: expected run_0/log.jsonl in it; to draw a point "
            f"cloud, name its file."
        )
    histories = {f"run {number}": read_history(logs[number]) for number in sorted(logs)}
    title, metric, result = folder.resolve().name, None, None
    if (folder / "run_0.pth").exists():
        trained = load_trained_model(folder / "run_0.pth", allow_plugins=allow_plugins)
        recipe, metric = trained.recipe, trained.task.main_metric
        data = recipe.get("data")  # absent if the model was trained in Python
        title += f": {trained.pipeline}, {data['name'] if data else 'own data'}, {recipe['model']['name']}"
        if data:
            result = _RESULTS[trained.pipeline](trained, data_set(recipe, "test"), progress)
    return save_figure(training_figure(histories, metric, title, result), path, title)


def _items(dataset: PointCloudDataset) -> Iterator[tuple[DGLGraph, Tensor | None]]:
    for index in range(len(dataset)):
        item = dataset[index]
        yield item if isinstance(item, tuple) else (item, None)


def _confusion(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    names = list(trained.metadata["class_names"])
    accuracy, outputs = Accuracy(len(names)), predict(trained.network, trained.task, test, progress=progress)
    accuracy.update(torch.stack(list(outputs)), torch.as_tensor(test.labels).long())
    return confusion_matrix(accuracy.totals.long().numpy(), names)


def _iou(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    metric, task = PartIoU(trained.task.class_parts), trained.task
    for (graph, label), logits in zip(_items(test), predict(trained.network, task, test, progress=progress)):
        category = torch.zeros(1, dtype=torch.int64) if label is None else label.reshape(1)
        predicted = task.predictions(logits, graph, category)
        metric.update(predicted, graph.ndata["part"], category, graph.batch_num_nodes())
    return iou_bars(metric.by_class(), trained.metadata["class_names"])


def _normal_errors(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    predictions = predict(trained.network, trained.task, test, progress=progress)
    errors = [
        angular_error(vec.reshape(-1, 3).numpy(), graph.ndata["normal"].numpy(), trained.task.signed)
        for (graph, _), vec in zip(_items(test), predictions)
    ]
    return error_curve(np.concatenate(errors))


def _up_errors(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    outputs = torch.stack(list(predict(trained.network, trained.task, test, progress=progress)))
    up = np.stack([graph.ndata["up"][0].numpy() for graph, _ in _items(test)])
    return error_curve(angular_error(chosen_direction(outputs)[0].numpy(), up), "upward direction", "clouds")


def _trajectories(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    few = torch.utils.data.Subset(test, range(min(_NUM_SYSTEMS, len(test))))
    systems = []
    for graph, predicted in zip(few, predict(trained.network, trained.task, few, progress=progress)):
        data = {name: values.double().numpy() for name, values in graph.ndata.items()}
        path = np.stack([data["pos"], data["target_pos"]])
        if isinstance(test, ChargedParticles) and not test.noise:
            steps = np.unique(np.linspace(0, test.horizon, _NUM_STEPS).round().astype(int)).tolist()
            path, _ = simulate(data["pos"], data["vel"], data["charge"], steps, physics=test.physics)
        systems.append(System(path, predicted.double().numpy(), data["charge"].ravel()))
    return trajectories(systems)


def _properties(trained: TrainedModel, test: PointCloudDataset, progress: bool) -> Drawing:
    outputs = torch.stack(list(predict(trained.network, trained.task, test, progress=progress)))
    true, names = torch.as_tensor(test.labels), trained.metadata["targets"]
    if trained.pipeline == "moltensor":  # all components together
        return property_scatter(true.reshape(-1, 1).numpy(), outputs.reshape(-1, 1).numpy(), names)
    units = trained.metadata["units"]
    named = [f"{name}, {unit}" if unit else name for name, unit in zip(names, units)]
    return property_scatter(true.numpy(), outputs.numpy(), named)


_RESULTS = {
    "pointcls": _confusion,
    "partseg": _iou,
    "normals": _normal_errors,
    "upright": _up_errors,
    "nbody": _trajectories,
    "molprop": _properties,
    "moltensor": _properties,
}


def view_quality(
    checkpoint: str | Path,
    out: str | Path | None = None,
    num_clouds: int = 20,
    seed: int = 0,
    progress: bool = True,
    allow_plugins: bool = False,
) -> list[Path]:
    """Draw the quality of a trained network's orientations; return the picture and the numbers, a .json file.

    See :func:`dgl_orient.zoo.quality.measure_quality`.
    """
    path = output_path(out, "quality")
    record = measure_quality(
        load_trained_model(checkpoint, allow_plugins=allow_plugins), num_clouds, seed, progress
    )
    recipe, settings = record["recipe"], record["settings"]
    title = (
        f"Orientations of {recipe['model']['name']} on {settings['num_clouds']} test clouds of "
        f"{recipe['data']['name']}, {settings['num_points']} points"
    )
    return [
        save_figure(quality_figure(record["networks"], title), path, title),
        write_text(json.dumps(record, indent=1) + "\n", path.with_suffix(".json")),
    ]
