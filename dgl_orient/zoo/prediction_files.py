"""Predictions as files: lists of all clouds, and clouds with a prediction for each point."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path

import numpy as np
from dgl import DGLError

from .._atomic import atomic_write, reason
from .._messages import printable
from .._validation import check_choice
from ..config.registry import MOLECULES
from ..data import write_cloud
from ..data.choices import CloudFormat
from ..plot.colors import palette
from .input_files import LISTS, InputFile

__all__ = [
    "check_format",
    "check_new",
    "destination_of",
    "destinations",
    "free_folder",
    "write_lists",
    "write_point_predictions",
]

#: With which a spreadsheet takes a cell for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def check_format(pipeline: str, file_format: CloudFormat | None) -> CloudFormat:
    """The extension of clouds that are written."""
    if file_format is not None:
        check_choice("the format of clouds to write", file_format, CloudFormat)
    return file_format or ("npz" if pipeline == "nbody" else "ply")


def free_folder(name: str | Path) -> Path:
    """The folder of this name, or the first with a number after it, that holds no file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.zoo.prediction_files import free_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "results").mkdir()
    ...     Path(folder, "results", "predictions.csv").touch()
    ...     free_folder(Path(folder, "results")).name
    'results_2'
    """
    name = Path(name)
    names = itertools.chain(
        [name], (name.with_name(f"{name.name}_{number}") for number in itertools.count(2))
    )
    return next(each for each in names if not _holds_files(each))


def _holds_files(folder: Path) -> bool:
    return os.path.lexists(folder) and (
        not folder.is_dir() or any(not path.is_dir() for path in folder.rglob("*"))
    )


def destinations(pipeline: str, files: Sequence[InputFile], folder: Path, ending: str) -> dict[Path, Path]:
    """Where the predictions for each file go: below the folder as it was below its own, none over another.

    For classes and for properties of molecules no clouds are written.

    Raises
    ------
    DGLError
        If two would go to one place, or one, or a list of all, over a file that is predicted.
    """
    given = {os.path.realpath(file.path) for file in files}
    for name in LISTS:
        _check_free(folder / name, given)
    if pipeline in ("pointcls", *MOLECULES):
        return {}
    plain = [file.name.with_suffix(f".{ending}") for file in files]
    number = Counter(plain)
    # Files that differ by their extensions alone keep them.
    names = [
        each if number[each] == 1 else file.name.with_name(f"{file.name.name}.{ending}")
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


def destination_of(cloud: Path, paths: Mapping[Path, Path]) -> Path | None:
    """Where the prediction for a file goes, or that for one of its several clouds: into a folder of its name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dgl_orient.zoo.prediction_files import destination_of
    >>> destination_of(Path("in/several.npy/3"), {Path("in/several.npy"): Path("out/several.ply")}).as_posix()
    'out/several.npy/3.ply'
    """
    if cloud in paths or cloud.parent not in paths:
        return paths.get(cloud)
    path = paths[cloud.parent]
    return path.with_name(cloud.parent.name) / f"{cloud.name}{path.suffix}"


def _check_free(path: Path, given: Set[str]) -> None:
    """Raise if this is one of the files that are predicted."""
    if os.path.realpath(path) in given:
        raise DGLError(f"Predictions would be written over the file {path}: name another output folder.")


def check_new(folder: Path, clouds: Iterable[Path]) -> None:
    """Raise if the folder has lists of predictions, or any of the clouds exists."""
    existing = [path for path in (*(folder / name for name in LISTS), *clouds) if os.path.lexists(path)]
    if existing:
        others = f" and {len(existing) - 1:,} more" if existing[1:] else ""
        raise DGLError(
            f"{existing[0]}{others} would be replaced: name another folder for the predictions, or use "
            f"--overwrite (in a recipe overwrite: true)."
        )


def make_folder(folder: Path) -> None:
    """Make a folder if it does not exist, before any work is done for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from error


def write_point_predictions(
    path: Path, points: Mapping[str, np.ndarray], per_point: Mapping[str, np.ndarray]
) -> None:
    """Write a cloud together with the predictions for its points; parts are coloured."""
    make_folder(path.parent)
    if "part" in per_point:
        part = per_point["part"]
        rgb = np.array(palette(int(part.max()) + 1), dtype=np.uint8)[part]  # (n, 3)
        per_point = {**per_point, "red": rgb[:, 0], "green": rgb[:, 1], "blue": rgb[:, 2]}
        points = {name: array for name, array in points.items() if name not in ("color", *per_point)}
    write_cloud(path, **({name: _compact(array) for name, array in points.items()} | dict(per_point)))


def _compact(array: np.ndarray) -> np.ndarray:
    """In float32 if that changes no number."""
    small = array.astype(np.float32)
    return small if np.array_equal(small, array) else array


def write_lists(
    folder: Path,
    head: Mapping[str, object],
    predictions: Sequence[Mapping[str, object]],
    skipped: Sequence[Mapping[str, str]],
    unsupported: Sequence[Path],
) -> list[Path]:
    """Write ``predictions.json``, which begins with the head, and ``predictions.csv``; return their paths."""
    lists = {
        "predictions": list(predictions),
        "skipped": list(skipped),
        "unsupported": list(map(str, unsupported)),
    }
    contents = json.dumps({**head, **lists}, indent=1, ensure_ascii=False) + "\n", _table(predictions)
    paths = [folder / name for name in LISTS]
    for path, content in zip(paths, contents):
        try:
            with atomic_write(path) as file:
                # File names may hold bytes that are no UTF-8.
                file.write(content.encode("utf-8", errors="backslashreplace"))
        except OSError as error:
            raise _not_written(path, error) from error
    return paths


def _table(predictions: Sequence[Mapping[str, object]]) -> str:
    """A row for each cloud: its values, then the values of each class or part by name."""
    predictions = [{key: _components(key, value) for key, value in each.items()} for each in predictions]
    values = [value for each in predictions for value in each.values()]
    named = dict.fromkeys(name for value in values if isinstance(value, Mapping) for name in value)
    plain = dict.fromkeys(key for each in predictions for key in each if not isinstance(each[key], Mapping))
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(map(_cell, (*plain, *named)))
    for each in predictions:
        by_name = {
            name: value for part in each.values() if isinstance(part, Mapping) for name, value in part.items()
        }
        writer.writerow(
            map(_cell, (*(each.get(key) for key in plain), *(by_name.get(name) for name in named)))
        )
    return lines.getvalue()


def _components(name: str, value: object) -> object:
    """The components of a vector by name, such as ``up_x``; other values as they are."""
    if isinstance(value, list) and len(value) == 3 and all(isinstance(each, float) for each in value):
        return {f"{name}_{axis}": each for axis, each in zip("xyz", value)}
    return value


def _cell(content: object) -> object:
    """A string that neither a terminal nor a spreadsheet takes for a command; numbers as they are."""
    content = "; ".join(content) if isinstance(content, (list, tuple)) else content
    if not isinstance(content, str):
        return content
    return printable(f"'{content}" if content.startswith(_FORMULA) else content)


def _not_written(path: Path, error: OSError) -> DGLError:
    return DGLError(f"Cannot write {path}: {reason(error)}; name a folder with space to write in.")
