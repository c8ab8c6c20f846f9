"""A trained network put to work on a data set: the clouds by which it was scored, or those of another set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from dgl import DGLError, DGLGraph

from ..config.build import data_set, dataset_metadata
from ..data import PointCloudDataset
from ..train.predict import predict
from ..zoo.trained_model import TrainedModel, load_trained_model
from . import outputs
from .apply import Applied

__all__ = ["apply_data"]

#: What is written of the points beside the answer.
_POINTS = {"partseg": ("pos", "normal"), "normals": ("pos",), "nbody": ("pos", "vel", "charge")}


def apply_data(
    checkpoint: str | Path,
    data: Mapping[str, object],
    split: str = "test",
    output: str | Path = "apply_results",
    batch_size: int = 32,
    device: str = "cpu",
    file_format: str | None = None,
    progress: bool = True,
) -> Applied:
    """Predict the clouds of a data set with a trained network.

    They are turned and scaled as those of the training's recipe: for its own data set the predictions of the
    test split are those that were scored. Clouds are named ``test/00017`` by their split and number. What is
    written is as for files, see :func:`dgl_orient.go.apply.apply`, and the true class of a cloud beside it.

    Parameters
    ----------
    checkpoint : str or Path
        The file ``run_0.pth`` of a training, or the name of a network that comes with this package.
    data : mapping
        The data set as a checked recipe has it: its ``name`` and its arguments.
    split : {"train", "val", "test"}
        Which of its clouds.
    output : str or Path
        The folder to write into.
    batch_size : int
        How many clouds are predicted at once.
    device : str
        Where to compute.
    file_format : {"ply", "npz"}, optional
        Of the clouds that are written: not given, ``"ply"``, and ``"npz"`` for particles.
    progress : bool
        Whether a terminal sees a progress bar.

    Raises
    ------
    DGLError
        If the checkpoint or the data set cannot be used, or nothing can be written.
    """
    trained = load_trained_model(checkpoint, device)
    ending = outputs.check_format(trained.pipeline, file_format)
    clouds = data_set({**trained.recipe, "data": data}, split)
    _check_classes(trained, clouds, data["name"])
    folder = outputs.make_folder(output)
    predictions, written = [], []
    answers = predict(
        trained.model, trained.task, clouds, batch_size, device=trained.device, progress=progress
    )
    for number, answer in enumerate(answers):
        graph, label = _pair(clouds[number])
        about, of_points = outputs.MAKERS[trained.pipeline](trained, answer, label)
        name = PurePosixPath(split, f"{number:05d}")
        entry = {"file": str(name)}
        if of_points:
            path = folder / f"{name}.{ending}"
            kept = (each for each in _POINTS[trained.pipeline] if each in graph.ndata)
            outputs.write_cloud_with(path, {each: graph.ndata[each].numpy() for each in kept}, of_points)
            written.append(path)
            entry["output"] = str(path)
        if trained.pipeline == "pointcls":
            entry["true_class"] = trained.metadata["class_names"][label]
        predictions.append(entry | about)
    written += outputs.write_lists(folder, trained, predictions, [])
    return Applied(predictions, [], written)


def _pair(item: DGLGraph | tuple) -> tuple[DGLGraph, int | None]:
    """A cloud and its label, if it has one."""
    return (item, None) if isinstance(item, DGLGraph) else (item[0], int(item[1]))


def _check_classes(trained: TrainedModel, clouds: PointCloudDataset, name: str) -> None:
    """Refuse a data set whose labels mean something else to the network."""
    known, given = (list(facts["class_names"]) for facts in (trained.metadata, dataset_metadata(clouds)))
    if trained.pipeline in ("pointcls", "partseg") and given != known:
        raise DGLError(
            f"The data set {name!r} has other classes than those that the network was trained for; give its "
            f"own data set, or put the clouds into files and use --data folder."
        )
