"""A trained network put to work on files: classes, parts, normals, or where particles will be."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor

from ..data import read_cloud
from ..train.predict import predict
from ..zoo.trained_model import TrainedModel, load_trained_model
from . import outputs
from .inputs import Cloud, CloudFiles, Piece, Source, check_range, dealt, find_files, readable_files

__all__ = ["Applied", "apply"]


class Applied(NamedTuple):
    """What came of it."""

    predictions: list[dict]  #: what is known of each file, as in ``predictions.json``
    skipped: list[dict[str, str]]  #: the files that could not be read, and why
    written: list[Path]  #: the files that were written


def apply(
    checkpoint: str | Path,
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
      how clouds were covered there, to those farthest apart. The classes and their probabilities are in
      ``predictions.json`` and ``predictions.csv``.
    - ``partseg`` and ``normals``: every point of a file gets its answer. A cloud with more points than in
      training is dealt at random, by seed, to clouds of that size, so that points are as dense as the
      network knows them. The file's points are written with their parts (``part``, and its
      ``probability``) or normals. Meshes are sampled first.
    - ``nbody``: files hold ``pos``, ``vel`` and ``charge``; ``predicted_pos`` is written beside them.

    It warns of files with fewer points than clouds had in training: they are answered all the same.

    Parameters
    ----------
    checkpoint : str or Path
        The file ``run_0.pth`` of a training, or the name of a network that comes with this package.
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
        Of which points of a file are taken, or dealt where.
    skip_bad : bool
        Leave out files that cannot be read. Otherwise they are an error, before any is predicted.
    progress : bool
        Whether a terminal sees progress bars.

    Raises
    ------
    DGLError
        If the checkpoint or a file cannot be used, or nothing can be written.
    """
    trained = load_trained_model(checkpoint, device)
    ending = outputs.check_format(trained.pipeline, file_format)
    found = find_files(inputs, output)
    _check_category(trained, category)
    folder = outputs.make_folder(output)
    columns = trained.columns if columns is None else columns
    read = functools.partial(_read, trained=trained, category=category, columns=columns, seed=seed)
    sources, sizes, skipped = readable_files(found, read, skip_bad, progress)
    paths = outputs.destinations(trained.pipeline, sources, folder, ending)
    clouds = CloudFiles(sources, _pieces(trained, sizes, seed), read, trained.prepare)
    answers = predict(
        trained.model, trained.task, clouds, batch_size, device=trained.device, progress=progress
    )
    predictions, written, seen = [], [], []
    for number, answer in _of_files(clouds.pieces, answers):
        cloud = read(sources[number])
        seen.append(_points_seen(trained, cloud, sources[number].path, columns))
        about, of_points = outputs.MAKERS[trained.pipeline](trained, answer, cloud.label)
        entry = {"file": str(sources[number].path)}
        if of_points:
            outputs.write_cloud_with(paths[number], cloud.points, of_points)
            written.append(paths[number])
            entry["output"] = str(paths[number])
        predictions.append(entry | about)
    written += outputs.write_lists(folder, trained, predictions, skipped)
    _warn_of_few_points(trained, sources, seen)
    return Applied(predictions, skipped, written)


def _read(
    source: Source, trained: TrainedModel, category: str | None, columns: Sequence[int] | None, seed: int
) -> Cloud:
    """A file's points with whatever else the network looks at, and its label if the network is told one."""
    number = trained.num_points if trained.pipeline == "pointcls" else None
    arrays = read_cloud(source.path, number, seed, columns, np.float64, trained.sampling)
    # Clouds that are scaled are float64 until then.
    check_range(source.path, arrays["pos"], np.float64 if trained.is_normalized else np.float32)
    if trained.pipeline == "nbody":
        return Cloud(_particles(source.path, arrays))
    points = {name: arrays[name] for name in ("pos", "normal") if name in arrays}
    return Cloud(points, _label(source.path, trained, category) if trained.is_told_category else None)


def _particles(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    rows = len(arrays["pos"])
    if arrays.get("charge", arrays["pos"]).shape == (rows,):
        arrays = arrays | {"charge": arrays["charge"][:, None]}
    for name, width in {"vel": 3, "charge": 1}.items():
        given = arrays.get(name)
        if given is None or given.shape != (rows, width) or not np.isfinite(given).all():
            raise DGLError(
                f"Expected {name}, finite numbers of shape ({rows}, {width}), beside pos in {path}; write "
                f"pos, vel and charge of the particles to an .npz file."
            )
    return {name: arrays[name].astype(np.float64) for name in ("pos", "vel", "charge")}


def _check_category(trained: TrainedModel, category: str | None) -> None:
    if category is None:
        return
    if not trained.is_told_category:
        raise DGLError(f"This network, for {trained.pipeline}, is not told a category; leave out --category.")
    _number(category, trained, f"--category, got {category!r}")


def _label(path: Path, trained: TrainedModel, category: str | None) -> int:
    """The number of a file's category."""
    folder = path.absolute().parent.name
    return _number(folder if category is None else category, trained, f"the folder of {path}, or --category")


def _number(name: str, trained: TrainedModel, where: str) -> int:
    names = trained.metadata["class_names"]
    if name not in names:
        raise DGLError(f"Expected a category that the network knows as {where}: {', '.join(names)}.")
    return names.index(name)


def _pieces(trained: TrainedModel, sizes: Sequence[int], seed: int) -> list[Piece]:
    """The clouds that the network sees: the files' own, or parts of those that are too large."""
    most = trained.num_points if trained.pipeline in ("partseg", "normals") else None
    return [Piece(number, *part) for number, size in enumerate(sizes) for part in dealt(size, most, seed)]


def _points_seen(trained: TrainedModel, cloud: Cloud, path: Path, columns: Sequence[int] | None) -> int:
    """How many points of a file the network sees, or could: those that coincide are counted once."""
    pos = cloud.points["pos"]
    if trained.pipeline != "pointcls" or len(np.unique(pos, axis=0)) == len(pos):
        return len(pos)
    # Some are there twice: the cloud was filled up, or the file has such points among enough others.
    return len(np.unique(read_cloud(path, columns=columns)["pos"], axis=0))


def _warn_of_few_points(trained: TrainedModel, sources: Sequence[Source], seen: Sequence[int]) -> None:
    fewest = min(range(len(seen)), key=seen.__getitem__)
    if trained.num_points is not None and seen[fewest] < trained.num_points:
        number = sum(points < trained.num_points for points in seen)
        warnings.warn(
            f"The network was trained with clouds of {trained.num_points:,} points, but {number} of "
            f"{len(seen)} files have fewer, {sources[fewest].path} only {seen[fewest]:,}; expect "
            "worse answers.",
            stacklevel=3,
        )


def _of_files(pieces: Sequence[Piece], answers: Iterable[Tensor]) -> Iterator[tuple[int, Tensor]]:
    """The numbers of the files with their answers, those of their pieces put together again."""
    for number, group in itertools.groupby(zip(pieces, answers), key=lambda pair: pair[0].number):
        group = list(group)
        if group[0][1].ndim == 1:  # one answer for the whole cloud
            yield number, group[0][1]
            continue
        rows = np.concatenate([piece.rows[: piece.own] for piece, _ in group])
        rows_answers = torch.cat([answer[: piece.own] for piece, answer in group])
        yield number, rows_answers[np.argsort(rows)]
