"""The files that are to be predicted: found, read once to see that they can be, and made ready."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np
import torch
from dgl import DGLError, DGLGraph
from torch import Tensor
from torch.utils.data import Dataset
from tqdm import tqdm

from ..data.io import EXTENSIONS
from ..graph import point_cloud

__all__ = ["Cloud", "CloudFiles", "Piece", "Source", "check_range", "dealt", "find_files", "readable_files"]


class Source(NamedTuple):
    """A file that is to be predicted."""

    path: Path  #: where it is
    name: PurePosixPath  #: its path below the folder that was given


class Cloud(NamedTuple):
    """What is read from it."""

    points: dict[str, np.ndarray]  #: ``pos`` and whatever else is known of the points
    label: int | None = None  #: the cloud's category, if the network is told it


class Piece(NamedTuple):
    """A part of a file's points that the network sees as a cloud."""

    number: int  #: which of the files
    rows: np.ndarray  #: the points that the network sees
    own: int  #: how many of them, from the first on, its answers are for


def find_files(inputs: Sequence[str | Path], output: str | Path | None = None) -> list[Source]:
    """All files of the formats that can be read, in the order of the inputs and of their names.

    A folder stands for all such files in it and in its folders; those whose names begin with a dot are left
    out, and so is what lies in the folder of the output. A file that is named itself may be of any kind:
    whether it can be read is seen later.

    Parameters
    ----------
    inputs : sequence of str or Path
        Files and folders.
    output : str or Path, optional
        The folder into which predictions go, perhaps for a second time.

    Raises
    ------
    DGLError
        If an input is not there, or a folder holds no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.go.inputs import find_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "mugs").mkdir()
    ...     for name in ("b.ply", "a.off", "mugs/c.npz", "notes.md"):
    ...         Path(folder, name).touch()
    ...     [str(source.name) for source in find_files([folder])]
    ['a.off', 'b.ply', 'mugs/c.npz']
    """
    if not inputs:
        raise DGLError("Expected files or folders to predict, got none.")
    folders = [Path(each) for each in inputs if Path(each).is_dir()]
    for each in map(Path, inputs):
        if each.exists() and not each.is_dir() and not each.is_file():
            raise DGLError(f"{each} is a pipe or a device, which cannot be read twice; write it to a file.")
    # Several folders may hold files of the same names.
    own_name = len(folders) > 1
    found: dict[Path, Source] = {}
    for each in map(Path, inputs):
        for path in _in_folder(each, output) if each.is_dir() else [each]:
            # Of a folder such as `..` only the whole path tells the name.
            start = Path(os.path.abspath(each)).parent if path == each or own_name else each
            name = PurePosixPath(Path(os.path.relpath(path, start)).as_posix())
            found.setdefault(Path(os.path.abspath(path)), Source(path, name))
    return list(found.values())


def _in_folder(folder: Path, output: str | Path | None) -> list[Path]:
    try:
        paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS)
    except OSError as error:
        raise DGLError(f"Cannot look into {folder}: {(error.strerror or str(error)).lower()}.") from error
    hidden = [any(part.startswith(".") for part in path.relative_to(folder).parts) for path in paths]
    paths = [path for path, out in zip(paths, hidden) if not out and path.is_file()]
    if output is not None and not _is_below(folder, output):
        paths = [path for path in paths if not _is_below(path, output)]
    if not paths:
        raise DGLError(f"There is no file in {folder} whose name ends in {' '.join(EXTENSIONS)}.")
    return paths


def _is_below(path: Path, folder: str | Path) -> bool:
    # Not Path.resolve, which fails where links lead in a circle.
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def check_range(path: Path, pos: np.ndarray, dtype: type[np.floating]) -> None:
    """Raise if distances between a file's points cannot be computed in this type."""
    limit = float(np.finfo(dtype).max) ** 0.5 / 16
    if np.abs(pos).max() > limit:
        raise DGLError(f"Expected coordinates of at most {limit:.1g} in {path}; scale the cloud down.")


def readable_files(
    sources: Sequence[Source],
    read: Callable[[Source], Cloud],
    skip_bad: bool = False,
    progress: bool = True,
) -> tuple[list[Source], list[int], list[dict[str, str]]]:
    """Which of the files can be read, how many points they have, and why the others cannot.

    Every file is read before any is predicted, so that a bad one costs no predictions of the others.

    Raises
    ------
    DGLError
        If a file cannot be read and bad ones are not to be skipped, or if none can.
    """
    good, sizes, bad = [], [], []
    for source in tqdm(sources, "Reading", unit="file", delay=1, disable=None if progress else True):
        try:
            sizes.append(len(read(source).points["pos"]))
            good.append(source)
        except DGLError as error:
            bad.append({"file": str(source.path), "reason": str(error)})
    if bad and not (skip_bad and good):
        others = f" (and so for {len(bad) - 1} more of {len(sources)} files)" if len(bad) > 1 else ""
        advice = "" if skip_bad else " To leave out such files, use --skip-bad."
        raise DGLError(f"{bad[0]['reason']}{others}{advice}")
    return good, sizes, bad


def dealt(size: int, most: int | None, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    """A cloud's points, dealt to clouds of at most so many.

    A cloud that is small enough stays whole. Of a larger one every point is in one hand; the last hand is
    filled up with points of the others. Each is as dense as the clouds that the network knows.

    Yields
    ------
    rows : np.ndarray
        The points of a hand.
    own : int
        How many of them, from the first on, no other hand was dealt.

    Examples
    --------
    >>> from dgl_orient.go.inputs import dealt
    >>> [(len(rows), own) for rows, own in dealt(10, most=4, seed=0)]
    [(4, 4), (4, 4), (4, 2)]
    """
    if most is None or size <= most:
        yield np.arange(size), size
        return
    order = np.random.Generator(np.random.Philox(seed % 2**64)).permutation(size)
    for start in range(0, size, most):
        own = order[start : start + most]
        # Going on at the start of the order fills it with points from elsewhere.
        yield np.concatenate([own, order[: most - len(own)]]), len(own)


class CloudFiles(Dataset):
    """Files as the clouds that a network sees: graphs, or pairs with a label.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    pieces : sequence of Piece
        The clouds to make of them.
    read : callable
        From a source to its cloud.
    prepare : callable
        From the graph of a whole file to what the network sees.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        pieces: Sequence[Piece],
        read: Callable[[Source], Cloud],
        prepare: Callable[[DGLGraph], DGLGraph],
    ) -> None:
        self.sources, self.pieces = sources, pieces
        self._read, self._prepare = read, prepare
        self._last: tuple[int, DGLGraph, int | None] | None = None

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, number: int) -> DGLGraph | tuple[DGLGraph, Tensor]:
        piece = self.pieces[number]
        # A file's pieces follow each other.
        if self._last is None or self._last[0] != piece.number:
            self._last = piece.number, *self._prepared(self.sources[piece.number])
        _, whole, label = self._last
        rows = torch.as_tensor(piece.rows)
        graph = point_cloud(whole.ndata["pos"][rows])
        for name, values in whole.ndata.items():
            graph.ndata[name] = values[rows]
        return graph if label is None else (graph, torch.tensor(label))

    def _prepared(self, source: Source) -> tuple[DGLGraph, int | None]:
        cloud = self._read(source)
        graph = point_cloud(torch.as_tensor(cloud.points["pos"]))
        for name, array in cloud.points.items():
            graph.ndata[name] = torch.as_tensor(array)
        graph = self._prepare(graph)
        for name, values in graph.ndata.items():
            # Not before, since far from the origin coordinates have no digits to lose.
            graph.ndata[name] = values.float()
        return graph, cloud.label
