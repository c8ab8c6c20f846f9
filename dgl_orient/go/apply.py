"""The command ``apply``: a trained network predicts files, or the clouds of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor

from ..config.build import data_set
from ..config.metadata import dataset_metadata
from ..data import PointCloudDataset
from ..data.choices import CloudFormat, Split
from ..data.progress import progress_bar
from ..train.predict import predict
from ..zoo.category_proposal import CategoryProposer
from ..zoo.clouds import PointCloudFile, category_number, read_clouds
from ..zoo.input_files import InputFile, find_inputs
from ..zoo.loading import load_trained_model
from ..zoo.molecules import file_extensions, molecules_of_file
from ..zoo.predict import predict_files
from ..zoo.prediction_files import check_format, destination_of, destinations
from ..zoo.prediction_folder import Applied, PredictionFolder, output_folder
from ..zoo.predictions import prediction_of
from ..zoo.trained_model import TrainedModel

__all__ = ["Applied", "apply", "apply_data"]

#: What is written of the points of a data set beside the prediction.
_POINTS = {"partseg": ("pos", "normal"), "normals": ("pos",), "nbody": ("pos", "vel", "charge")}


def apply(
    checkpoint: str | Path | TrainedModel,
    inputs: Sequence[str | Path],
    output: str | Path | None = None,
    batch_size: int = 32,
    device: str = "cpu",
    file_format: CloudFormat | None = None,
    category: str | None = None,
    columns: Sequence[int] | Sequence[str] | None = None,
    seed: int = 0,
    votes: int = 1,
    remove_outliers: bool = True,
    allow_unknown: bool = True,
    skip_bad: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> Applied:
    """Predict files with a trained network.

    The checkpoint alone says what the network is, what it was trained for and how clouds are prepared for
    it; nothing in it is executed. Clouds are centered and scaled as in training, except those of particles.

    - ``pointcls``: a cloud is resampled by seed to as many points as in training, at random or, if that is
      how points were sampled there, to those farthest apart.
    - ``partseg`` and ``normals``: every point of a file gets a prediction. A cloud with more points than in
      training is split at random, by seed, into clouds of that size, so that points are as dense as in
      training; a network that fits planes predicts overlapping patches instead, at the file's density, and
      takes the normals' signs from a sample of the whole cloud. The file's points are written with their
      parts (``part``, its ``probability``, and a colour) or normals. Meshes are sampled first.
    - ``upright``: a sample of the cloud is given to the network as for ``pointcls``, and all points of the
      file are written rotated about their centroid so that z points up, with their normals.
    - ``nbody``: files hold ``pos``, ``vel`` and ``charge``; ``predicted_pos`` is written beside them.
    - ``molprop`` and ``moltensor``: files are molecules, .xyz (also of several frames), .sdf or .pdb; each
      molecule has a row with its formula and its properties, vectors and tensors in the file's axes.

    All predictions are listed in ``predictions.json`` and ``predictions.csv``, with warnings by file, such as
    of fewer points than clouds had in training. Files are read once, in order, and predicted a batch at a
    time. At a file that cannot be read it stops and leaves no results, unless bad files are skipped.

    Parameters
    ----------
    checkpoint : str, Path or TrainedModel
        The file ``run_0.pth`` of a training, the name of a pretrained model, or what was loaded from it.
    inputs : sequence of str or Path
        Files, in all formats of :func:`dgl_orient.data.read_cloud`, or of
        :func:`dgl_orient.data.read_molecules`, and folders of them.
    output : str or Path, optional
        The folder to write into. Files keep their names, and their places below a folder that was given. By
        default a new one, ``apply_results`` or, if that holds files, ``apply_results_2`` and so on.
    batch_size : int
        How many clouds are predicted at once.
    device : str
        Where to compute.
    file_format : {"ply", "npz"}, optional
        Of the clouds that are written: not given, ``"ply"``, and ``"npz"`` for particles.
    category : str, optional
        For parts, the category of all files. Not given, that of a file is the name of its folder, or what the
        pretrained classifier says.
    columns : sequence of int or str, optional
        Which columns of tables hold the coordinates, and perhaps normals: numbers from 0, or names in the
        header; not given, as in training.
    seed : int
        Of the points that are sampled from a file, and of how a large cloud is split.
    votes : int
        For classes, over how many samples of a cloud's points probabilities are averaged.
    remove_outliers : bool
        Whether points far from all others are removed before a cloud is given to the network.
    allow_unknown : bool
        Whether the class of a cloud that is unlike the training data is ``"unknown"``. Otherwise it is the
        nearest class.
    skip_bad : bool
        Leave out files that cannot be read. Otherwise the first of them is an error.
    overwrite : bool
        Whether results that exist may be replaced.
    progress : bool
        Whether to show a progress bar, if stderr is a terminal.

    Raises
    ------
    DGLError
        If the checkpoint or a file cannot be used, or nothing can be written.
    """
    trained = _loaded(checkpoint, device)
    ending, folder = check_format(trained.pipeline, file_format), output_folder(output, overwrite)
    files, unsupported = find_inputs(inputs, folder, file_extensions(trained))
    _check_category(trained, category)
    paths = destinations(trained.pipeline, files, folder, ending)
    skipped: list[dict[str, str]] = []
    bar = progress_bar(files, "Predicting", "files", shown=progress)
    options = dict(category=category, columns=columns, seed=seed, remove_outliers=remove_outliers)
    options["propose_category"] = CategoryProposer()
    clouds = _readable(trained, bar, skipped if skip_bad else None, options)
    with PredictionFolder(trained, folder, paths.values(), overwrite) as results:
        for cloud, prediction in predict_files(trained, clouds, batch_size, seed, votes, progress):
            path = destination_of(cloud.path, paths)
            results.add(str(cloud.path), prediction, cloud.points, path, allow_unknown)
        if not results.predictions:
            raise DGLError(f"None of {len(files)} files can be read; the first: {skipped[0]['reason']}")
        return results.finish(skipped, unsupported)


def apply_data(
    checkpoint: str | Path | TrainedModel,
    data: Mapping[str, object],
    split: Split = "test",
    output: str | Path | None = None,
    batch_size: int = 32,
    device: str = "cpu",
    file_format: CloudFormat | None = None,
    overwrite: bool = False,
    progress: bool = True,
) -> Applied:
    """Predict the clouds of a data set with a trained network.

    They are rotated and scaled as those of the training's recipe: for its own data set the predictions of the
    test split are those that were scored. Clouds are named ``test/00017`` by their split and number. The same
    is written as by :func:`apply`, and the true class of a cloud beside it; of ``upright`` the lists alone.

    Parameters
    ----------
    checkpoint : str, Path or TrainedModel
        The file ``run_0.pth`` of a training, the name of a pretrained model, or what was loaded from it.
    data : mapping
        The data set as a checked recipe has it: its ``name`` and its arguments.
    split : {"train", "val", "test"}
        Which of its clouds.
    output : str or Path, optional
        The folder to write into; by default a new one.
    batch_size : int
        How many clouds are predicted at once.
    device : str
        Where to compute.
    file_format : {"ply", "npz"}, optional
        Of the clouds that are written: not given, ``"ply"``, and ``"npz"`` for particles.
    overwrite : bool
        Whether results that exist may be replaced.
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
    folder = output_folder(output, overwrite)
    names = [f"{split}/{number:05d}" for number in range(len(clouds))]
    is_class, per_cloud = trained.pipeline == "pointcls", trained.task.per_cloud
    paths = [None if per_cloud else folder / f"{name}.{ending}" for name in names]
    outputs = predict(
        trained.network, trained.task, clouds, batch_size, device=trained.device, progress=progress
    )
    with PredictionFolder(trained, folder, [] if per_cloud else paths, overwrite) as results:
        for number, raw in enumerate(outputs):
            graph, label = _pair(clouds[number])
            kept = (each for each in _POINTS.get(trained.pipeline, ()) if each in graph.ndata)
            points = {each: graph.ndata[each].numpy() for each in kept}
            truth = {"true_class": trained.metadata["class_names"][label]} if is_class else {}
            if trained.is_molecular:
                truth = {"true_properties": prediction_of(trained, label)["properties"]}
            prediction = prediction_of(trained, raw, None if trained.is_molecular else label)
            results.add(names[number], prediction, points, paths[number], **truth)
        return results.finish()


def _loaded(checkpoint: str | Path | TrainedModel, device: str) -> TrainedModel:
    return checkpoint if isinstance(checkpoint, TrainedModel) else load_trained_model(checkpoint, device)


def _check_category(trained: TrainedModel, category: str | None) -> None:
    if category is None:
        return
    if not trained.is_category_conditioned:
        raise DGLError(
            f"This network, for {trained.pipeline}, is not conditioned on a category; leave out --category."
        )
    category_number(category, trained, f"--category {category!r} is not known")


def _readable(
    trained: TrainedModel, files: Sequence[InputFile], skipped: list | None, options: Mapping[str, object]
) -> Iterator[PointCloudFile]:
    """The files' clouds; those that cannot be read are listed as skipped, or an error if there is no list."""
    for file in files:
        try:
            if trained.is_molecular:
                yield from list(molecules_of_file(trained, file.path))  # all of a file or none
            else:
                yield from read_clouds(trained, file.path, **options)
        except DGLError as error:
            if skipped is None and len(files) == 1:
                raise
            if skipped is None:
                raise DGLError(f"{error} To leave out such files, use --skip-bad.") from error
            skipped.append({"file": str(file.path), "reason": str(error)})


def _pair(item: DGLGraph | tuple) -> tuple[DGLGraph, int | Tensor | None]:
    """A cloud and its label, if it has one: the number of a class, or the targets of a molecule."""
    if isinstance(item, DGLGraph):
        return item, None
    label = torch.as_tensor(item[1])
    return item[0], label if label.ndim else int(label)


def _check_classes(trained: TrainedModel, clouds: PointCloudDataset, name: str) -> None:
    """Refuse a data set whose labels mean something else to the network."""
    metadata = dataset_metadata(clouds)
    if trained.is_molecular and metadata["targets"] != trained.metadata["targets"]:
        raise DGLError(
            f"The data set {name!r} has the targets {', '.join(metadata['targets'])}, but the network was "
            f"trained for {', '.join(trained.metadata['targets'])}; name these in data.targets."
        )
    known, given = (list(each["class_names"]) for each in (trained.metadata, metadata))
    if trained.pipeline in ("pointcls", "partseg") and given != known:
        raise DGLError(
            f"The data set {name!r} has other classes than those that the network was trained for; give its "
            f"own data set, or put the clouds into files and use --data folder."
        )
