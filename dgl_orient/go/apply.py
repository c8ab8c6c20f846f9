"""The command ``apply``: a trained network predicts files, or the clouds of a data set."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from dgl import DGLError, DGLGraph
from tqdm import tqdm

from ..config.build import data_set, dataset_metadata
from ..data import PointCloudDataset
from ..train.predict import predict
from ..train.progress import has_terminal
from ..zoo.input_files import InputFile, find_files
from ..zoo.predict import PointCloudFile, category_number, predict_files, read_file
from ..zoo.predictions import prediction_of
from ..zoo.trained_model import TrainedModel, load_trained_model
from .predictions import check_format, destinations, make_folder, write_lists, write_point_predictions

__all__ = ["Applied", "apply", "apply_data"]

#: What is written of the points of a data set beside the prediction.
_POINTS = {"partseg": ("pos", "normal"), "normals": ("pos",), "nbody": ("pos", "vel", "charge")}


class Applied(NamedTuple):
    """What was predicted and written."""

    predictions: list[dict]  #: an entry for each file, as in ``predictions.json``
    skipped: list[dict[str, str]]  #: the files that could not be read, and why
    written: list[Path]  #: the files that were written


def apply(
    checkpoint: str | Path | TrainedModel,
    inputs: Sequence[str | Path],
    output: str | Path = "apply_results",
    batch_size: int = 32,
    device: str = "cpu",
    file_format: str | None = None,
    category: str | None = None,
    columns: Sequence[int] | None = None,
    seed: int = 0,
    skip_bad: bool = False,
    progress: bool = True,
) -> Applied:
    """Predict files with a trained network.

    The checkpoint alone says what the network is, what it was trained for and how clouds are prepared for
    it; nothing in it is executed. Clouds are centered and scaled as in training, except those of particles.

    - ``pointcls``: a cloud is resampled by seed to as many points as in training, at random or, if that is
      how points were sampled there, to those farthest apart. The classes and their probabilities are in
      ``predictions.json`` and ``predictions.csv``.
    - ``partseg`` and ``normals``: every point of a file gets a prediction. A cloud with more points than in
      training is split at random, by seed, into clouds of that size, so that points are as dense as in
      training. The file's points are written with their parts (``part``, and its ``probability``) or
      normals. Meshes are sampled first.
    - ``nbody``: files hold ``pos``, ``vel`` and ``charge``; ``predicted_pos`` is written beside them.

    Files are read once, in order, and predicted a batch at a time. At a file that cannot be read it stops,
    unless bad files are skipped: no list is then written, and clouds that were written already are complete.
    It warns of files with fewer points than clouds had in training: they are predicted all the same.

    Parameters
    ----------
    checkpoint : str, Path or TrainedModel
        The file ``run_0.pth`` of a training, the name of a pretrained model, or what was loaded from it.
    inputs : sequence of str or Path
        Files, in all formats of :func:`dgl_orient.data.read_cloud`, and folders of them.
    output : str or Path
        The folder to write into. Files keep their names, and their places below a folder that was given.
    batch_size : int
        How many clouds are predicted at once.
    device : str
        Where to compute.
    file_format : {"ply", "npz"}, optional
        Of the clouds that are written: not given, ``"ply"``, and ``"npz"`` for particles.
    category : str, optional
        For parts, the category of all files. Not given, that of a file is the name of its folder.
    columns : sequence of int, optional
        Which columns of tables hold the coordinates, and perhaps normals, counted from 0; not given, as in
        training.
    seed : int
        Of the points that are sampled from a file, and of how a large cloud is split.
    skip_bad : bool
        Leave out files that cannot be read. Otherwise the first of them is an error.
    progress : bool
        Whether to show a progress bar, if stderr is a terminal.

    Raises
    ------
    DGLError
        If the checkpoint or a file cannot be used, or nothing can be written.
    """
    trained = _loaded(checkpoint, device)
    ending = check_format(trained.pipeline, file_format)
    files = find_files(inputs, output)
    _check_category(trained, category)
    folder = make_folder(output)
    paths = destinations(trained.pipeline, files, folder, ending)
    skipped: list[dict[str, str]] = []
    bar = tqdm(files, "Predicting", unit="file", disable=not (progress and has_terminal()))
    options = dict(category=category, columns=columns, seed=seed)
    clouds = _readable(trained, bar, skipped if skip_bad else None, options)
    predictions, written, num_points = [], [], {}
    for cloud, raw in predict_files(trained, clouds, batch_size, seed):
        prediction = prediction_of(trained, raw, cloud.label)
        entry = {"file": str(cloud.path)}
        if prediction.per_point:
            path = paths[cloud.path]
            write_point_predictions(path, cloud.points, prediction.per_point)
            written.append(path)
            entry["output"] = str(path)
        predictions.append(entry | prediction.summary)
        num_points[cloud.path] = cloud.num_points
    if not predictions:
        raise DGLError(f"None of {len(files)} files can be read; the first: {skipped[0]['reason']}")
    written += write_lists(folder, trained, predictions, skipped)
    _warn_of_few_points(trained, num_points)
    return Applied(predictions, skipped, written)


def apply_data(
    checkpoint: str | Path | TrainedModel,
    data: Mapping[str, object],
    split: str = "test",
    output: str | Path = "apply_results",
    batch_size: int = 32,
    device: str = "cpu",
    file_format: str | None = None,
    progress: bool = True,
) -> Applied:
    """Predict the clouds of a data set with a trained network.

    They are rotated and scaled as those of the training's recipe: for its own data set the predictions of the
    test split are those that were scored. Clouds are named ``test/00017`` by their split and number. The same
    is written as by :func:`apply`, and the true class of a cloud beside it.

    Parameters
    ----------
    checkpoint : str, Path or TrainedModel
        The file ``run_0.pth`` of a training, the name of a pretrained model, or what was loaded from it.
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
        Whether to show a progress bar, if stderr is a terminal.

    Raises
    ------
    DGLError
        If the checkpoint or the data set cannot be used, or nothing can be written.
    """
    trained = _loaded(checkpoint, device)
    ending = check_format(trained.pipeline, file_format)
    clouds = data_set({**trained.recipe, "data": data}, split)
    _check_classes(trained, clouds, data["name"])
    folder = make_folder(output)
    predictions, written = [], []
    outputs = predict(
        trained.model, trained.task, clouds, batch_size, device=trained.device, progress=progress
    )
    for number, raw in enumerate(outputs):
        graph, label = _pair(clouds[number])
        prediction = prediction_of(trained, raw, label)
        name = PurePosixPath(split, f"{number:05d}")
        entry = {"file": str(name)}
        if prediction.per_point:
            path = folder / f"{name}.{ending}"
            kept = (each for each in _POINTS[trained.pipeline] if each in graph.ndata)
            points = {each: graph.ndata[each].numpy() for each in kept}
            write_point_predictions(path, points, prediction.per_point)
            written.append(path)
            entry["output"] = str(path)
        if trained.pipeline == "pointcls":
            entry["true_class"] = trained.metadata["class_names"][label]
        predictions.append(entry | prediction.summary)
    written += write_lists(folder, trained, predictions, [])
    return Applied(predictions, [], written)


def _loaded(checkpoint: str | Path | TrainedModel, device: str) -> TrainedModel:
    return checkpoint if isinstance(checkpoint, TrainedModel) else load_trained_model(checkpoint, device)


def _check_category(trained: TrainedModel, category: str | None) -> None:
    if category is None:
        return
    if not trained.is_category_conditioned:
        raise DGLError(
            f"This network, for {trained.pipeline}, is not conditioned on a category; leave out --category."
        )
    category_number(category, trained, f"--category, got {category!r}")


def _readable(
    trained: TrainedModel, files: Sequence[InputFile], skipped: list | None, options: Mapping[str, object]
) -> Iterator[PointCloudFile]:
    """The files' clouds; those that cannot be read are listed as skipped, or an error if there is no list."""
    for file in files:
        try:
            cloud = read_file(trained, file.path, **options)
        except DGLError as error:
            if skipped is None:
                raise DGLError(f"{error} To leave out such files, use --skip-bad.") from error
            skipped.append({"file": str(file.path), "reason": str(error)})
        else:
            yield cloud


def _warn_of_few_points(trained: TrainedModel, num_points: Mapping[Path, int]) -> None:
    fewest = min(num_points, key=num_points.__getitem__)
    if trained.num_points is not None and num_points[fewest] < trained.num_points:
        number = sum(points < trained.num_points for points in num_points.values())
        warnings.warn(
            f"The network was trained with clouds of {trained.num_points:,} points, but {number} of "
            f"{len(num_points)} files have fewer, {fewest} only {num_points[fewest]:,}; expect worse "
            f"predictions.",
            stacklevel=3,
        )


def _pair(item: DGLGraph | tuple) -> tuple[DGLGraph, int | None]:
    """A cloud and its label, if it has one."""
    return (item, None) if isinstance(item, DGLGraph) else (item[0], int(item[1]))


def _check_classes(trained: TrainedModel, clouds: PointCloudDataset, name: str) -> None:
    """Refuse a data set whose labels mean something else to the network."""
    known, given = (list(each["class_names"]) for each in (trained.metadata, dataset_metadata(clouds)))
    if trained.pipeline in ("pointcls", "partseg") and given != known:
        raise DGLError(
            f"The data set {name!r} has other classes than those that the network was trained for; give its "
            f"own data set, or put the clouds into files and use --data folder."
        )
