"""Files of one's own as a data set: a folder for each class, or a CSV list."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from dgl import DGLError

from .._validation import check_integer
from .choices import Axis, FolderSplit, Split, Transform, check_choice
from .coordinates import to_float32
from .dataset import PointCloudDataset, PointClouds
from .folder_listing import list_shape_files
from .io.read import check_columns, read_cloud
from .progress import progress_bar
from .sampling import check_num_points
from .splits import check_fraction, stratified_split

__all__ = ["FolderDataset"]


class FolderDataset(PointCloudDataset):
    """Point clouds and meshes of one's own, in all formats of :func:`dgl_orient.data.read_cloud`.

    ``raw_dir`` is one of

    - a folder with a folder of files for each class, ``chair/001.ply``; the split into training, validation
      and test shapes is then random by seed, stratified by class;
    - a folder with a folder for each split, ``train/chair/001.ply`` or ``chair/train/001.ply``, the splits
      being ``train``, ``val`` and ``test``;
    - a CSV list with the columns ``path``, ``label`` and optionally ``split``, whose paths are relative to
      the list.

    Where there are training but no validation shapes, these are sampled from the training shapes by seed.
    Class folders may contain further folders. Hidden files and those of other formats are ignored.

    Classes are numbered in the order of their names. Every cloud is resampled to the same number of points.
    Its coordinates are those of the file, but where it is so far from the origin that float32 would distort
    it, it is centered first. See also :class:`dgl_orient.data.NormalizeScale`.

    Parameters
    ----------
    raw_dir : str or Path
        The folder or the CSV list.
    split : str
        ``"train"``, ``"val"``, ``"test"``, or ``"all"`` for all shapes.
    num_points : int, optional
        Number of points of a cloud; None for all, and 2,048 of a mesh.
    normals : bool
        Whether to read the normals, into ``ndata["normal"]``; all files must then have them, or faces.
    val_fraction : float
        The fraction of all shapes for validation, where the split is random.
    test_fraction : float
        The fraction for test.
    split_seed : int
        Seed of the split.
    sample_seed : int
        Seed of the points that are sampled from a file; each file is sampled independently.
    columns : sequence of int, optional
        Which columns of tables to read, counted from 0: 3, or 6 with normals.
    gravity : str, optional
        The upright axis of the shapes, ``"x"``, ``"y"`` or ``"z"``.
    save_dir : str or Path, optional
        Folder of the cache, a hidden file. Default: the folder, or the one of the list
    transform, seed, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`.

    Attributes
    ----------
    num_classes : int
        Number of classes.
    class_names : list of str
        Their names, in the order of the labels.
    files : list of Path
        The files, in the order of the clouds.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dgl_orient.data import FolderDataset, write_cloud
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("cube", "ball"):
    ...         for number in range(5):
    ...             path = Path(folder, name, f"{number}.ply")
    ...             path.parent.mkdir(exist_ok=True)
    ...             write_cloud(path, np.random.rand(50, 3))
    ...     dataset = FolderDataset(folder, split="train", num_points=32)
    >>> graph, label = dataset[0]
    >>> len(dataset), dataset.class_names[label], graph.ndata["pos"].shape
    (6, 'ball', torch.Size([32, 3]))
    """

    def __init__(
        self,
        raw_dir: str | Path,
        split: FolderSplit = "train",
        num_points: int | None = 1024,
        normals: bool = False,
        val_fraction: float = 0.1,
        test_fraction: float = 0.2,
        split_seed: int = 0,
        sample_seed: int = 0,
        columns: Sequence[int] | None = None,
        gravity: Axis | None = None,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_choice("split", split, FolderSplit)
        self.num_points, self.normals = check_num_points(num_points), bool(normals)
        self.val_fraction = check_fraction("val_fraction", val_fraction)
        self.test_fraction = check_fraction("test_fraction", test_fraction)
        self.split_seed = check_integer("split_seed", split_seed)
        self.sample_seed = check_integer("sample_seed", sample_seed)
        self.gravity = None if gravity is None else check_choice("gravity", gravity, Axis)
        self.columns = check_columns(columns)
        self.root = Path(os.path.abspath(raw_dir))
        shapes = list_shape_files(self.root)
        self._source_files, self._splits = [shape.path for shape in shapes], [shape.split for shape in shapes]
        self.class_names = _sort_names({shape.label for shape in shapes})
        self._labels = np.array([self.class_names.index(shape.label) for shape in shapes], np.int64)
        if all(each is None for each in self._splits) and self.val_fraction + self.test_fraction >= 1:
            raise DGLError(
                f"Expected val_fraction and test_fraction to add up to less than 1, got {val_fraction!r} and "
                f"{test_fraction!r}."
            )
        folder = self.root.parent if self.root.is_file() else self.root
        super().__init__(
            "folder",
            raw_dir=folder,
            save_dir=folder if save_dir is None else save_dir,
            hash_key=(str(self.root), self.num_points, self.normals, self.sample_seed, self.columns),
            sources=[*self._source_files, *([self.root] if self.root.is_file() else [])],
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )
        self.files = [self._source_files[row] for row in self.rows]
        if not self.files:
            raise DGLError(f"There are no shapes for split={split!r} in {self.root}.")

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def process(self) -> None:
        clouds = []
        for path in progress_bar(self._source_files, f"Reading {self.root.name}", "shapes"):
            # The seed depends on the name and not on the index, which changes with other files.
            name = Path(os.path.relpath(path, self.raw_dir)).as_posix()
            seed = self.sample_seed + zlib.crc32(os.fsencode(name))
            cloud = read_cloud(path, self.num_points, seed, self.columns)
            if self.normals and "normal" not in cloud:
                raise DGLError(f"There are no normals in {path}: use normals=False, or add them to the file.")
            pos = to_float32(cloud["pos"])
            if not np.isfinite(pos).all():
                raise DGLError(f"The coordinates in {path} are too large for float32: scale them down.")
            normal = {"normal": cloud["normal"].astype(np.float32)} if self.normals else {}
            clouds.append({"pos": pos} | normal)
        self.clouds = PointClouds.concatenate(clouds, label=self._labels)

    @property
    def cache_path(self) -> Path | None:
        """A hidden file, which is not mistaken for a cloud of the folder."""
        path = super().cache_path
        return None if path is None else path.with_name(f".{path.name}")

    def split_rows(self, cloud: Mapping[str, np.ndarray]) -> np.ndarray | None:
        if self.split == "all":
            return None
        given = np.array([split or "" for split in self._splits])
        rows = {name: np.flatnonzero(given == name) for name in get_args(Split)}
        if all(split is None for split in self._splits):
            rest, rows["test"] = stratified_split(self._labels, self.test_fraction, self.split_seed)
            fraction = self.val_fraction / (1 - self.test_fraction)
        else:
            rest, fraction = rows["train"], self.val_fraction
        if len(rows["val"]) == 0 and len(rest):
            train, val = stratified_split(self._labels[rest], fraction, self.split_seed)
            rows["train"], rows["val"] = rest[train], rest[val]
        return rows[self.split]


def _sort_names(names: set[str]) -> list[str]:
    """In numerical order if all are integers, otherwise as strings."""
    are_numbers = all(name.isdecimal() and len(name) < 100 for name in names)
    return sorted(sorted(names), key=int if are_numbers else str)
