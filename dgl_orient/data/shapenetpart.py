"""ShapeNet-Part: shapes of 16 categories whose points are labelled with 50 parts."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple

import numpy as np
from dgl import DGLError

from .._validation import PositiveInt, check_choice, check_integer
from .choices import Axis, OfficialSplit, Transform
from .coordinates import to_float32
from .dataset import PointCloudDataset, PointClouds
from .downloads import check_files, find_layout
from .io.hdf5 import read_hdf5
from .io.tables import read_lines, read_table, read_text
from .progress import progress_bar
from .random_stream import RandomStream
from .sampling import check_num_points, resample_rows
from .splits import check_classes, check_labels

__all__ = ["ShapeNetPart"]

#: The categories in the order of their labels: name, synset (the folder's name), parts. The download numbers
#: the parts; their names here are ours.
_CATEGORIES = (
    ("Airplane", "02691156", "body wing tail engine"),
    ("Bag", "02773838", "handle body"),
    ("Cap", "02954340", "crown peak"),
    ("Car", "02958343", "roof hood wheel body"),
    ("Chair", "03001627", "back seat leg arm"),
    ("Earphone", "03261776", "earcup headband wire"),
    ("Guitar", "03467517", "head neck body"),
    ("Knife", "03624134", "blade handle"),
    ("Lamp", "03636649", "base shade canopy pole"),
    ("Laptop", "03642806", "keyboard screen"),
    ("Motorbike", "03790512", "tank seat wheel handlebar light frame"),
    ("Mug", "03797390", "handle body"),
    ("Pistol", "03948459", "barrel grip trigger"),
    ("Rocket", "04099429", "body fin nose"),
    ("Skateboard", "04225987", "wheel deck truck"),
    ("Table", "04379243", "top leg drawer"),
)
_NAMES, _SYNSETS, _PARTS = zip(*_CATEGORIES)
_NUM_PARTS = [len(names.split()) for names in _PARTS]
#: The first part of each category, and after the last one the number of all parts.
_STARTS = tuple(accumulate(_NUM_PARTS, initial=0))

Category = Literal[_NAMES]


class ShapeNetPart(PointCloudDataset):
    """ShapeNet-Part, from `A Scalable Active Framework for Region Annotation in 3D Shape Collections
    <https://dl.acm.org/doi/10.1145/2980179.2980238>`__: 16,881 shapes of 16 categories, upright along y.

    It reads the three downloads in circulation, whichever the folder is or contains (the first, if several):

    - ``shapenetcore_partanno_segmentation_benchmark_v0_normal``: a text file for each shape, rows
      ``x y z nx ny nz part``;
    - ``shapenetcore_partanno_segmentation_benchmark_v0``: ``points/*.pts`` and ``points_label/*.seg``, where
      a category's parts are numbered from 1;
    - ``hdf5_data``: HDF5 files of 2,048 points each.

    Items are ``(graph, category)``; ``graph.ndata["part"]`` has the part labels from 0 to 49.

    The official lists name a few shapes twice. Here a shape of the test list is in no other split, and one
    of the validation list not in the training split, even if they list it under another category;
    ``verbose=True`` prints how many there are. The HDF5 files do not name their shapes, so there duplicates
    remain.

    Training and validation shapes are cached in one file and the test shapes in another, which are written
    again if one of the source files changes.

    Parameters
    ----------
    raw_dir : str or Path
        The folder of the download, or the one that contains it.
    split : str
        ``"train"``, ``"val"``, ``"test"``, or ``"trainval"`` for both the first.
    num_points : int, optional
        Number of points of a cloud; None for all in the file. A larger cloud is sampled at random; the
        points of a smaller one are repeated, each k or k + 1 times.
    normals : bool
        Whether to read the normals, into ``ndata["normal"]``. Only the first of the downloads has them.
    category : str, optional
        Take the shapes of this category alone, by its name in ``class_names``. Labels and parts keep their
        numbers, so that a network of all categories can be fine-tuned for one.
    sample_seed : int
        Seed of the sampling.
    save_dir : str or Path, optional
        Folder of the cache. Default: raw_dir
    transform, seed, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`.

    Attributes
    ----------
    num_classes, num_parts : int
        16 categories, 50 parts.
    class_names : list of str
        The categories' names, in the order of the labels.
    part_names : list of str
        The parts' names, such as ``"Chair/back"``.
    class_parts : list of tuple of int
        The parts of each category.
    gravity : str
        The upright axis of the shapes.

    Examples
    --------
    >>> from dgl_orient.data.shapenetpart import ShapeNetPart
    >>> ShapeNetPart.class_names[4], ShapeNetPart.class_parts[4]
    ('Chair', (12, 13, 14, 15))
    >>> ShapeNetPart.part_names[12:16]
    ['Chair/back', 'Chair/seat', 'Chair/leg', 'Chair/arm']
    >>> test = ShapeNetPart("data", split="test")  # doctest: +SKIP
    >>> graph, category = test[0]  # doctest: +SKIP
    """

    gravity: Axis = "y"
    num_classes = len(_NAMES)
    num_parts = _STARTS[-1]
    class_names = list(_NAMES)
    part_names = [f"{name}/{part}" for name, _, parts in _CATEGORIES for part in parts.split()]
    class_parts = [tuple(range(start, stop)) for start, stop in zip(_STARTS, _STARTS[1:])]

    def __init__(
        self,
        raw_dir: str | Path,
        split: OfficialSplit = "train",
        num_points: PositiveInt | None = 2048,
        normals: bool = False,
        category: Category | None = None,
        sample_seed: int = 0,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_choice("split", split, OfficialSplit)
        self.num_points, self.normals = check_num_points(num_points), bool(normals)
        self.category = None if category is None else check_choice("category", category, Category)
        self.sample_seed = check_integer("sample_seed", sample_seed)
        layout, root = find_layout(raw_dir, "ShapeNet-Part", (_TextWithNormals, _PointsAndLabels, _Hdf5))
        if normals and not layout.has_normals:
            raise DGLError(
                f"{root} has no normals; leave out normals=True or use the download "
                f"{_TextWithNormals.folders[0]}."
            )
        self._layout = layout(root, ["test"] if split == "test" else ["train", "val"], verbose)
        super().__init__(
            "shapenetpart",
            raw_dir=raw_dir,
            save_dir=raw_dir if save_dir is None else save_dir,
            hash_key=(layout.__name__, split == "test", self.num_points, self.normals, self.sample_seed),
            sources=self._layout.sources,
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )

    def process(self) -> None:
        clouds, labels, val = [], [], []
        shapes = self._layout.read(self.normals)
        for cloud in progress_bar(shapes, "Reading ShapeNet-Part", "shapes", self._layout.total):
            stream = RandomStream("sample", self.sample_seed, len(clouds))
            size = len(cloud.node["pos"])
            rows = slice(None)
            if self.num_points not in (None, size):
                rows = resample_rows(size, self.num_points, stream.random)
            node = {name: array[rows] for name, array in cloud.node.items()}
            node["pos"] = to_float32(node["pos"])
            clouds.append(node)
            labels.append(cloud.label)
            val.append(cloud.is_val)
        self.clouds = PointClouds.concatenate(clouds, label=np.array(labels, np.int64), val=np.array(val))

    def split_rows(self, cloud: Mapping[str, np.ndarray]) -> np.ndarray | None:
        chosen = np.ones(len(cloud["label"]), bool)
        if self.split in ("train", "val"):
            chosen &= cloud["val"] == (self.split == "val")
        if self.category is not None:
            chosen &= cloud["label"] == self.class_names.index(self.category)
        return np.flatnonzero(chosen)


class _Cloud(NamedTuple):
    node: dict[str, np.ndarray]
    label: int
    is_val: bool


def _parts(path: Path, label: int, parts: np.ndarray, first: int) -> np.ndarray:
    """Part labels from 0 to 49, if they are of the category; those of the file begin with ``first``."""
    numbers = parts.astype(np.int64)
    given = numbers - first + _STARTS[label]
    if (numbers != parts).any() or given.min() < _STARTS[label] or given.max() >= _STARTS[label + 1]:
        raise DGLError(
            f"{path} has parts from {parts.min():g} to {parts.max():g}, but those of the category "
            f"{_NAMES[label]} are the integers from {first} to {first + _NUM_PARTS[label] - 1}; unpack the "
            f"download again."
        )
    return given.astype(np.uint8)


class _ListedShapes(ABC):
    """A folder for each category with a file for each shape, and lists of the shapes."""

    def __init__(self, root: Path, splits: list[str], verbose: bool) -> None:
        self.root = root
        lists = {split: self._listing(split) for split in ("test", "val", "train")}
        shapes = {split: _listed(path) for split, path in lists.items()}
        listed_before, overlap = set(), 0
        for split, listed in shapes.items():
            unique = [shape for shape in listed if shape[1] not in listed_before]
            overlap += len(listed) - len(unique)
            listed_before.update(name for _, name in unique)
            shapes[split] = unique
        if verbose and overlap:
            print(
                f"Left out {overlap} of the shapes in {lists['train'].parent}: the lists overlap, test has "
                f"precedence over val and val over train."
            )
        self.shapes = [(*shape, split == "val") for split in splits for shape in shapes[split]]
        self.total = len(self.shapes)
        self.sources = list(lists.values())
        check_classes(np.array([shape[0] for shape in self.shapes], np.int64), _NAMES, lists[splits[0]])
        for split in splits:
            files = [path for shape in shapes[split] for path in self.files(*shape)]
            check_files(files, lists[split])
            self.sources += files

    def read(self, normals: bool) -> Iterator[_Cloud]:
        for label, name, is_val in self.shapes:
            yield _Cloud(self.points(label, name, normals), label, is_val)

    @abstractmethod
    def files(self, label: int, name: str) -> list[Path]:
        """The files of one shape."""

    @abstractmethod
    def points(self, label: int, name: str, normals: bool) -> dict[str, np.ndarray]:
        """Their content."""

    def _listing(self, split: str) -> Path:
        return self.root / "train_test_split" / f"shuffled_{split}_file_list.json"


def _listed(path: Path) -> list[tuple[int, str]]:
    """Category and name of each shape in a list of ``"shape_data/<synset>/<name>"``, none twice."""
    try:
        entries = json.loads(read_text(path))
        pairs = [PurePosixPath(entry).parts[-2:] for entry in entries]
        return list(dict.fromkeys((_SYNSETS.index(synset), name) for synset, name in pairs))
    except (ValueError, TypeError) as error:
        raise DGLError(
            f"{path} is not a list of shapes of ShapeNet-Part, such as 'shape_data/02691156/1021a0914a72'; "
            f"unpack the download again."
        ) from error


class _TextWithNormals(_ListedShapes):
    folders = ("shapenetcore_partanno_segmentation_benchmark_v0_normal",)
    marks = ("train_test_split/shuffled_train_file_list.json", "0*/*.txt")
    has_normals = True

    def files(self, label: int, name: str) -> list[Path]:
        return [self.root / _SYNSETS[label] / f"{name}.txt"]

    def points(self, label: int, name: str, normals: bool) -> dict[str, np.ndarray]:
        (path,) = self.files(label, name)
        table = read_table(path, columns=[7])
        node = {"pos": table[:, :3], "part": _parts(path, label, table[:, 6], _STARTS[label])}
        return node | ({"normal": table[:, 3:6].astype(np.float32)} if normals else {})


class _PointsAndLabels(_ListedShapes):
    folders = ("shapenetcore_partanno_segmentation_benchmark_v0",)
    marks = ("train_test_split/shuffled_train_file_list.json", "0*/points/*.pts")
    has_normals = False

    def files(self, label: int, name: str) -> list[Path]:
        folder = self.root / _SYNSETS[label]
        return [folder / "points" / f"{name}.pts", folder / "points_label" / f"{name}.seg"]

    def points(self, label: int, name: str, normals: bool) -> dict[str, np.ndarray]:
        points, labels = self.files(label, name)
        pos, part = read_table(points, columns=[3]), read_table(labels, columns=[1])
        if len(pos) != len(part):
            raise DGLError(
                f"{labels} has {len(part)} labels for the {len(pos)} points of {points}; unpack the download "
                f"again."
            )
        return {"pos": pos, "part": _parts(labels, label, part[:, 0], 1)}


class _Hdf5:
    """Files of many shapes each, and a list of the files for each split."""

    folders = ("hdf5_data", "shapenet_part_seg_hdf5_data")
    marks = ("train_hdf5_file_list.txt",)
    has_normals = False
    total = None

    def __init__(self, root: Path, splits: list[str], verbose: bool) -> None:
        lists = {split: root / f"{split}_hdf5_file_list.txt" for split in splits}
        self.files = {
            split: [root / PurePosixPath(line).name for line in read_lines(path)]
            for split, path in lists.items()
        }
        self.listing = lists[splits[0]]
        for split, path in lists.items():
            check_files(self.files[split], path)
        self.sources = [*lists.values(), *(path for files in self.files.values() for path in files)]

    def read(self, normals: bool) -> Iterator[_Cloud]:
        all_labels = [np.zeros(0, np.int64)]
        for split, files in self.files.items():
            for path in files:
                pos, parts, labels = _shapes_of_file(path)
                all_labels.append(labels)
                for label, points, part in zip(labels.tolist(), pos, parts):
                    part = _parts(path, label, part, _STARTS[label])
                    yield _Cloud({"pos": points, "part": part}, label, split == "val")
        check_classes(np.concatenate(all_labels), _NAMES, self.listing)


def _shapes_of_file(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points ``(B, N, 3)``, their parts ``(B, N)`` and the shapes' categories ``(B,)``."""
    arrays = read_hdf5(path, {"data": 3, "pid": 2, "label": 2})
    pos, parts, labels = arrays["data"], arrays["pid"], arrays["label"]
    wrong = pos.shape != (*parts.shape, 3) or labels.shape[1] != 1
    if wrong or labels.dtype.kind == "f" or parts.shape[1] == 0:
        raise DGLError(
            f"{path} has points, parts and labels of shape {pos.shape}, {parts.shape} and {labels.shape}, "
            f"expected (B, N, 3), (B, N) and integers (B, 1); unpack the download again."
        )
    labels = labels[:, 0].astype(np.int64)
    check_labels(labels, _NAMES, path)
    return pos, parts, labels
