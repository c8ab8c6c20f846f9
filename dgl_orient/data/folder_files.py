"""Reading the files of a folder: all problems at once, and warnings where a result would mean nothing."""

from __future__ import annotations

import hashlib
import os
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dgl import DGLError

from .coordinates import to_float32
from .features import Feature, file_features
from .io.point_labels import find_labels, read_label_column
from .io.read import read_cloud

__all__ = ["FileReader", "bad_files", "digest", "num_distinct", "warn_about_copies", "warn_about_splits"]

#: How many files a message lists.
_LISTED = 20


@dataclass(frozen=True)
class FileReader:
    """What is read of each file of a folder; see :class:`dgl_orient.data.FolderDataset`."""

    folder: Path
    num_points: int | None
    normals: bool
    parts: bool
    part_name: str | int | None
    features: tuple[Feature, ...]
    sample_seed: int
    columns: tuple[int, ...] | None

    def read(self, path: Path) -> dict[str, np.ndarray]:
        """The arrays of a file's points: ``pos``, and ``normal``, ``part``, ``feat`` and ``vec`` as asked."""
        # The seed depends on the name and not on the index, which changes with other files.
        name = Path(os.path.relpath(path, self.folder)).as_posix()
        seed = self.sample_seed + zlib.crc32(os.fsencode(name))
        labels = read_label_column(path, self.part_name) if self.parts and os.path.isfile(path) else None
        beside = {} if labels is None else {"part": labels}
        cloud = read_cloud(path, self.num_points, seed, self.columns, attributes=beside)
        if labels is not None and "part" not in cloud:
            raise DGLError(f"There are {len(labels)} labels for another number of points in {path}.")
        if self.normals and "normal" not in cloud:
            raise DGLError(f"There are no normals in {path}: add them, or use a mesh.")
        pos = to_float32(cloud["pos"])
        if not np.isfinite(pos).all():
            raise DGLError(f"The coordinates in {path} are too large for float32: scale them down.")
        arrays = {"pos": pos} | file_features(path, cloud, self.features)
        arrays |= {"normal": cloud["normal"].astype(np.float32)} if self.normals else {}
        name = self.part_name if labels is None else "part"
        return arrays | ({"part": find_labels(path, cloud, name)} if self.parts else {})


def bad_files(source: Path, bad: Mapping[Path, str], total: int, skip: bool) -> None:
    """Raise an error that lists all files that cannot be read, or a warning if they are to be skipped."""
    if not bad:
        return
    more = [f"and {len(bad) - _LISTED} more."] if len(bad) > _LISTED else []
    break_ = "\n" if len(bad) > 1 else " "
    listed = break_ + break_.join([*list(bad.values())[:_LISTED], *more])
    if skip and len(bad) < total:
        warnings.warn(f"{len(bad)} of {total} files of {source} are left out:{listed}", stacklevel=2)
        return
    advice = "" if len(bad) == total else f"{break_}To train without, set skip_bad (--skip-bad)."
    raise DGLError(f"{len(bad)} of {total} files of {source} cannot be used:{listed}{advice}")


def digest(path: Path) -> int:
    """A number that files of the same content share."""
    with open(path, "rb") as file:
        content = hashlib.file_digest(file, "blake2b") if hasattr(hashlib, "file_digest") else None
        found = content or hashlib.blake2b(file.read())
    return int.from_bytes(found.digest()[:8], "little", signed=True)


def num_distinct(pos: np.ndarray) -> int:
    """How many points differ: those of a file with too few are repeated."""
    return len(np.unique(pos, axis=0))


def warn_about_copies(
    source: Path, files: Sequence[Path], digests: np.ndarray, distinct: np.ndarray, num_points: int | None
) -> None:
    """Warn of files that are copies of others, and of points that are copies of others."""
    pairs = list(_copies(files, digests))
    if pairs:
        one, other = pairs[0]
        warnings.warn(
            f"{len(pairs)} of {len(files)} files of {source} are copies of others, such as {other} of {one}; "
            f"remove them, for training and test files should differ.",
            stacklevel=2,
        )
    fewer = np.flatnonzero(distinct < (num_points or 0))
    if len(fewer):
        advice = "; lower num_points" if 2 * len(fewer) > len(files) else ""
        warnings.warn(
            f"{len(fewer)} of {len(files)} files of {source} have fewer than num_points={num_points} "
            f"different points, such as {files[fewer[0]]} with {distinct[fewer[0]]}, and points are "
            f"repeated{advice}.",
            stacklevel=2,
        )


def _copies(files: Sequence[Path], digests: np.ndarray) -> Iterator[tuple[Path, Path]]:
    first: dict[int, Path] = {}
    for path, number in zip(files, digests.tolist()):
        if number in first:
            yield first[number], path
        first.setdefault(number, path)


def warn_about_splits(
    source: Path, class_names: Sequence[str], labels: np.ndarray, rows: Mapping[str, np.ndarray]
) -> None:
    """Warn if there is only one class, or one has no shapes to select the best epoch by, or to score it."""
    if len(class_names) == 1:
        warnings.warn(
            f"All files of {source} are of one class, {class_names[0]!r}: nothing can be learned or scored; "
            f"add a folder for another class.",
            stacklevel=2,
        )
    for split, name in (("val", "validation"), ("test", "test")):
        counts = np.bincount(labels[rows[split]], minlength=len(class_names))
        without = [class_names[number] for number in np.flatnonzero(counts == 0)]
        if without and len(rows[split]):
            more = f" and {len(without) - 3} more" if len(without) > 3 else ""
            warnings.warn(
                f"There are no {name} shapes of {', '.join(without[:3])}{more} in {source}: its {name} "
                f"figures leave them out; add files.",
                stacklevel=2,
            )
