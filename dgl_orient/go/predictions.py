"""Predictions as files: lists of all clouds, and clouds with a prediction for each point."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence, Set
from pathlib import Path

import numpy as np
from dgl import DGLError

from .._atomic import atomic_write, reason
from ..data import write_cloud
from ..zoo.input_files import InputFile
from ..zoo.trained_model import TrainedModel
from .console import printable

__all__ = ["check_format", "destinations", "make_folder", "write_lists", "write_point_predictions"]

_FORMATS = ("ply", "npz")
#: With which a spreadsheet takes a cell for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_format(pipeline: str, file_format: str | None) -> str:
    """The extension of clouds that are written."""
    if file_format not in (*_FORMATS, None):
        raise DGLError(
            f"Expected the format {' or '.join(_FORMATS)} of clouds to write, got {file_format!r}."
        )
    return file_format or ("npz" if pipeline == "nbody" else "ply")


def make_folder(folder: str | Path) -> Path:
    """The folder, made if it does not exist, before any work is done for it."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from error
    return folder


def destinations(pipeline: str, files: Sequence[InputFile], folder: Path, ending: str) -> dict[Path, Path]:
    """Where the predictions for each file go: below the folder as it was below its own, none over another.

    For classes no clouds are written.

    Raises
    ------
    DGLError
        If two would go to one place, or one, or a list of all, over a file that is predicted.
    """
    given = {os.path.realpath(file.path) for file in files}
    for name in _lists(pipeline):
        _check_free(folder / name, given)
    if pipeline == "pointcls":
        return {}
    plain = [file.name.with_suffix(f".{ending}") for file in files]
    # Files that differ by their extensions alone keep them.
    names = [
        each if plain.count(each) == 1 else file.name.with_name(f"{file.name.name}.{ending}")
        for each, file in zip(plain, files)
    ]
    taken: dict[Path, Path] = {}
    for name, file in zip(names, files):
        path = folder / name
        other = taken.setdefault(path, file.path)
        if other is not file.path:
            raise DGLError(
                f"The predictions of {other} and {file.path} would both go to {path}: predict them into "
                f"different folders."
            )
        _check_free(path, given)
    return {source: path for path, source in taken.items()}


def _check_free(path: Path, given: Set[str]) -> None:
    """Raise if this is one of the files that are predicted."""
    if os.path.realpath(path) in given:
        raise DGLError(f"Predictions would be written over the file {path}: name another output folder.")


def _lists(pipeline: str) -> list[str]:
    """The names of the files in which all predictions are listed."""
    return ["predictions.json", *(["predictions.csv"] if pipeline == "pointcls" else [])]


def write_point_predictions(
    path: Path, points: dict[str, np.ndarray], per_point: dict[str, np.ndarray]
) -> None:
    """Write a cloud together with the predictions for its points."""
    make_folder(path.parent)
    write_cloud(path, **({name: _compact(array) for name, array in points.items()} | per_point))


def _compact(array: np.ndarray) -> np.ndarray:
    """In float32 if that changes no number."""
    small = array.astype(np.float32)
    return small if np.array_equal(small, array) else array


def write_lists(
    folder: Path, trained: TrainedModel, predictions: Sequence[dict], skipped: Sequence[dict[str, str]]
) -> list[Path]:
    """Write ``predictions.json`` and, for classes, ``predictions.csv``; return their paths."""
    head = {"pipeline": trained.pipeline, "checkpoint": str(trained.path)}
    everything = head | {"predictions": list(predictions), "skipped": list(skipped)}
    contents = [json.dumps(everything, indent=1, ensure_ascii=False) + "\n"]
    if trained.pipeline == "pointcls":
        contents.append(_table(trained.metadata["class_names"], predictions))
    paths = [folder / name for name in _lists(trained.pipeline)]
    for path, content in zip(paths, contents):
        try:
            with atomic_write(path) as file:
                # File names may hold bytes that are no UTF-8.
                file.write(content.encode("utf-8", errors="backslashreplace"))
        except OSError as error:
            raise _not_written(path, error) from error
    return paths


def _table(names: Sequence[str], predictions: Sequence[dict]) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["file", "class", "probability", *map(_cell, names)])
    for each in predictions:
        cells = [_cell(each["file"]), _cell(each["class"]), each["probability"]]
        writer.writerow([*cells, *each["probabilities"].values()])
    return lines.getvalue()


def _cell(content: str) -> str:
    """A string that neither a terminal nor a spreadsheet takes for a command."""
    return printable(f"'{content}" if content.startswith(_FORMULA) else content)


def _not_written(path: Path, error: OSError) -> DGLError:
    return DGLError(f"Cannot write {path}: {reason(error)}; name a folder with space to write in.")
