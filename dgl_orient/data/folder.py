"""Files of one's own as a data set: a folder for each class, or a CSV list."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from dgl import DGLError

from .._validation import Fraction, PositiveInt, check_choice, check_fraction, check_integer
from .choices import Axis, FolderSplit, Split, Transform
from .dataset import PointCloudDataset, PointClouds
from .features import Feature, check_features
from .folder_files import FileReader, bad_files, digest, num_distinct, warn_about_copies, warn_about_splits
from .folder_listing import check_splits, list_shape_files
from .io.point_labels import MAX_LABEL
from .io.read import check_columns
from .progress import progress_bar
from .sampling import check_num_points
from .splits import stratified_split

__all__ = ["FolderDataset"]

_PARTS = np.arange(MAX_LABEL + 1)


class FolderDataset(PointCloudDataset):
    """Point clouds and meshes of one's own, in all formats of :func:`dgl_orient.data.read_cloud`.

    ``raw_dir`` is one of

    - a folder with a folder of files for each class, ``chair/001.ply``; the split into training, validation
      and test shapes is then random by seed, stratified by class;
    - a folder with a folder for each split, ``train/chair/001.ply`` or ``chair/train/001.ply``, the splits
      being ``train``, ``val`` and ``test``;
    - a CSV list with the columns ``path``, ``label`` and optionally ``split``, whose paths are relative to
      the list.

    For normals and parts the files may also lie in the folder itself, or in ``train``, ``val`` and ``test``,
    and a list needs no labels: then there are no classes.

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
    columns : sequence of int or str, optional
        Which columns of tables to read, by numbers counted from 0 or by names: 3, or 6 with normals.
    gravity : str, optional
        The upright axis of the shapes, ``"x"``, ``"y"`` or ``"z"``.
    save_dir : str or Path, optional
        Folder of the cache, a hidden file. Default: the folder, or the one of the list
    transform, seed, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`.
    parts : bool
        Whether to read the part of each point, an integer from 0 to 999, into ``ndata["part"]``.
    part_name : str or int, optional
        Where the parts are: the name of a .ply property, .npz array or column of a table, or the number of
        the column. By default part, label or seg, or a .seg file beside the file with a label on each line.
    features : sequence of str
        Attributes of the points for the network: color and intensity, into ``ndata["feat"]``, and normal,
        into ``ndata["vec"]``. Colours are scaled to 1; intensities stay as they are.
    skip_bad : bool
        Whether files that cannot be read are left out, with a warning that lists them.

    Attributes
    ----------
    class_names : list of str
        The names of the classes, in the order of the labels; None if there are none.
    class_parts : list of list of int
        With ``parts``, the parts of each class.
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
        num_points: PositiveInt | None = 1024,
        normals: bool = False,
        val_fraction: Fraction = 0.1,
        test_fraction: Fraction = 0.2,
        split_seed: int = 0,
        sample_seed: int = 0,
        columns: Sequence[int] | Sequence[str] | None = None,
        gravity: Axis | None = None,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
        parts: bool = False,
        part_name: str | int | None = None,
        features: Sequence[Feature] = (),
        skip_bad: bool = False,
    ) -> None:
        self.split = check_choice("split", split, FolderSplit)
        self.num_points, self.normals, self.parts = check_num_points(num_points), bool(normals), bool(parts)
        self.val_fraction = check_fraction("val_fraction", val_fraction)
        self.test_fraction = check_fraction("test_fraction", test_fraction)
        self.split_seed = check_integer("split_seed", split_seed)
        self.sample_seed = check_integer("sample_seed", sample_seed)
        self.gravity = None if gravity is None else check_choice("gravity", gravity, Axis)
        self.columns, self.features = check_columns(columns), check_features(features)
        self.part_name, self.skip_bad = part_name, bool(skip_bad)
        self.root = Path(os.path.abspath(raw_dir))
        self._shapes = list_shape_files(self.root, not (self.normals or self.parts))
        if all(each.split is None for each in self._shapes) and self.val_fraction + self.test_fraction >= 1:
            raise DGLError(
                f"Expected val_fraction and test_fraction to add up to less than 1, got {val_fraction!r} and "
                f"{test_fraction!r}."
            )
        folder = self.root.parent if self.root.is_file() else self.root
        options = (self.num_points, self.normals, self.parts, part_name, self.features, self.sample_seed)
        self._reader = FileReader(folder, *options, self.columns)
        super().__init__(
            "folder",
            raw_dir=folder,
            save_dir=folder if save_dir is None else save_dir,
            hash_key=(str(self.root), *options, self.columns, self.skip_bad),
            sources=self._sources(),
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )
        self.files = [self._read[row].path for row in self.rows]
        if not self.files:
            raise DGLError(f"There are no shapes for split={split!r} in {self.root}.")

    @property
    def num_classes(self) -> int | None:
        """Number of classes; None if shapes have none, or parts are of a single category."""
        is_conditioned = self.class_names is not None and not (self.parts and len(self.class_names) == 1)
        return len(self.class_names) if is_conditioned else None

    @property
    def num_parts(self) -> int | None:
        """Number of parts: one more than the largest label."""
        return 1 + max(map(max, self.class_parts)) if self.parts else None

    def _sources(self) -> list[Path]:
        """The files on which the data depend, as far as they exist."""
        sources = [shape.path for shape in self._shapes]
        sources += [path.with_suffix(".seg") for path in sources] if self.parts else []
        # Where Path.is_file raises for names that are too long.
        return [path for path in [*sources, self.root] if os.path.isfile(path)]

    def process(self) -> None:
        clouds, read, bad = [], [], {}
        for number, shape in enumerate(progress_bar(self._shapes, f"Reading {self.root.name}", "shapes")):
            try:
                clouds.append(self._reader.read(shape.path))
                read.append(number)
            except DGLError as error:
                bad[shape.path] = str(error)
        bad_files(self.root, bad, len(self._shapes), self.skip_bad)
        self._set_read(np.array(read))
        cloud = {
            "file": np.array(read),
            "digest": np.array([digest(shape.path) for shape in self._read]),
            "num_distinct": np.array([num_distinct(each["pos"]) for each in clouds]),
        }
        if self.parts:
            cloud["has_part"] = np.array([np.isin(_PARTS, each["part"]) for each in clouds])
        if self.num_classes is not None:
            cloud["label"] = self._labels
        self.clouds = PointClouds.concatenate(clouds, **cloud)

    def _set_read(self, numbers: np.ndarray) -> None:
        """Take the files of these numbers, which could be read, and their classes."""
        self._read = [self._shapes[number] for number in numbers]
        check_splits(self.root, self._read)
        names = _sort_names({shape.label for shape in self._read})
        self._labels = np.array([names.index(shape.label) for shape in self._read], np.int64)
        if names == [""]:
            names = [self.root.stem] if self.parts else None
        self.class_names = names

    @property
    def cache_path(self) -> Path | None:
        """A hidden file, which is not mistaken for a cloud of the folder."""
        path = super().cache_path
        return None if path is None else path.with_name(f".{path.name}")

    def split_rows(self, cloud: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """See :class:`PointCloudDataset`; what follows from all splits is set and warned of here."""
        self._set_read(cloud["file"])
        if self.parts:
            of_class = [cloud["has_part"][self._labels == label].any(0) for label in np.unique(self._labels)]
            self.class_parts = [np.flatnonzero(has_part).tolist() for has_part in of_class]
        rows = self._rows_of_splits()
        files = [shape.path for shape in self._read]
        warn_about_copies(self.root, files, cloud["digest"], cloud["num_distinct"], self.num_points)
        if not (self.normals or self.parts):
            warn_about_splits(self.root, self.class_names, self._labels, rows)
        return None if self.split == "all" else rows[self.split]

    def _rows_of_splits(self) -> dict[str, np.ndarray]:
        given = np.array([shape.split or "" for shape in self._read])
        rows = {name: np.flatnonzero(given == name) for name in get_args(Split)}
        if all(shape.split is None for shape in self._read):
            rest, rows["test"] = stratified_split(self._labels, self.test_fraction, self.split_seed)
            fraction = self.val_fraction / (1 - self.test_fraction)
        else:
            rest, fraction = rows["train"], self.val_fraction
        if len(rows["val"]) == 0 and len(rest):
            train, val = stratified_split(self._labels[rest], fraction, self.split_seed)
            rows["train"], rows["val"] = rest[train], rest[val]
        return rows


def _sort_names(names: set[str]) -> list[str]:
    """In numerical order if all are integers, otherwise as strings."""
    are_numbers = all(name.isdecimal() and len(name) < 100 for name in names)
    return sorted(sorted(names), key=int if are_numbers else str)
