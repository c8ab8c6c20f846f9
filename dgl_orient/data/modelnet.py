"""ModelNet40 and ModelNet10: CAD models of furniture, vehicles and more as point clouds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np
from dgl import DGLError

from .._validation import Fraction, PositiveInt, check_choice, check_fraction, check_integer
from .choices import Axis, OfficialSplit, SamplingMethod, Transform
from .coordinates import to_float32
from .dataset import PointCloudDataset, PointClouds
from .downloads import check_files, find_layout
from .io.hdf5 import read_hdf5
from .io.tables import read_lines, read_table
from .progress import progress_bar
from .sampling import check_num_points
from .splits import check_classes, check_labels, fixed_split

__all__ = ["ModelNet10", "ModelNet40"]


class ModelNet40(PointCloudDataset):
    """ModelNet40, from `3D ShapeNets: A Deep Representation for Volumetric Shapes
    <https://arxiv.org/abs/1406.5670>`__: 9,843 + 2,468 shapes of 40 classes, upright along y.

    It reads both downloads in circulation, whichever the folder is or contains (the first, if both):

    - ``modelnet40_normal_resampled``: a text file for each shape, 10,000 rows ``x,y,z,nx,ny,nz``;
    - ``modelnet40_ply_hdf5_2048``: HDF5 files of 2,048 points each, with or without normals.

    Classes are in the order of the download's list of names, which is the same in both.

    The points of a file are in farthest-point order, so its first ``num_points``, which are read, cover
    the whole shape. Positions and normals are those of the files, neither centered nor scaled. The
    normals of a shape do not all point to the same side.

    The official training shapes are cached in one file and the test shapes in another, which are written
    again if one of the source files changes.

    Parameters
    ----------
    raw_dir : str or Path
        The folder of the download, or the one that contains it.
    split : str
        ``"test"``, the official test shapes; ``"trainval"``, the official training shapes; ``"val"``, a
        stratified subset of these; or ``"train"``, the others of them.
    num_points : int, optional
        Number of points of a cloud; None for all in the file.
    normals : bool
        Whether to read the normals, into ``ndata["normal"]``.
    val_fraction : float
        The fraction of the official training shapes that is ``"val"``.
    split_seed : int
        Seed of their selection.
    save_dir : str or Path, optional
        Folder of the cache. Default: raw_dir
    transform, seed, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`.

    Attributes
    ----------
    num_classes : int
        Number of classes.
    class_names : list of str
        Their names, in the order of the labels.
    gravity : str
        The upright axis of the shapes.
    sampling : str
        How the points were selected, as in :func:`dgl_orient.data.read_cloud`.

    Examples
    --------
    >>> from dgl_orient.data.modelnet import ModelNet40
    >>> train = ModelNet40("data", split="train", num_points=1024)  # doctest: +SKIP
    >>> graph, label = train[0]  # doctest: +SKIP
    >>> graph.ndata["pos"].shape, train.class_names[label]  # doctest: +SKIP
    (torch.Size([1024, 3]), 'airplane')
    """

    gravity: Axis = "y"
    sampling: SamplingMethod = "farthest"
    _set_name = "modelnet40"
    _subset: tuple[str, ...] | None = None

    def __init__(
        self,
        raw_dir: str | Path,
        split: OfficialSplit = "train",
        num_points: PositiveInt | None = 1024,
        normals: bool = False,
        val_fraction: Fraction = 0.1,
        split_seed: int = 0,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_choice("split", split, OfficialSplit)
        self.num_points, self.normals = check_num_points(num_points), bool(normals)
        self.val_fraction = check_fraction("val_fraction", val_fraction)
        self.split_seed = check_integer("split_seed", split_seed)
        layout, root = find_layout(raw_dir, type(self).__name__, (_Resampled, _Hdf5))
        self._layout = layout(root, "test" if split == "test" else "train", self._set_name, self._subset)
        self.class_names = list(self._layout.class_names)
        super().__init__(
            self._set_name,
            raw_dir=raw_dir,
            save_dir=raw_dir if save_dir is None else save_dir,
            hash_key=(layout.__name__, self._layout.part, self.num_points, self.normals),
            sources=self._layout.sources,
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def process(self) -> None:
        self.clouds = self._layout.read(self.num_points, self.normals)

    def split_rows(self, cloud: Mapping[str, np.ndarray]) -> np.ndarray | None:
        if self.split not in ("train", "val"):
            return None
        return fixed_split(cloud["label"], self.val_fraction, self.split_seed)[self.split == "val"]


class ModelNet10(ModelNet40):
    """The 3,991 + 908 shapes of ModelNet40 that are of ten classes of furniture and the like.

    It reads the same folders as :class:`ModelNet40`, with the same arguments. The text download lists
    these shapes; where the list is absent, and in the HDF5 download, they are selected by their class, which
    gives the same shapes.
    """

    _set_name = "modelnet10"
    _subset = (
        "bathtub",
        "bed",
        "chair",
        "desk",
        "dresser",
        "monitor",
        "night_stand",
        "sofa",
        "table",
        "toilet",
    )


class _Resampled:
    """A text file for each shape, and lists of the shapes."""

    folders = ("modelnet40_normal_resampled",)
    marks = ("modelnet[14]0_train.txt",)

    def __init__(self, root: Path, part: str, set_name: str, subset: tuple[str, ...] | None) -> None:
        self.root, self.part = root, part
        own = (root / f"{set_name}_{part}.txt").is_file()
        self.listing = root / f"{set_name if own or subset is None else 'modelnet40'}_{part}.txt"
        names = root / "modelnet40_shape_names.txt"
        self.class_names = subset or read_lines(names)
        numbers = {name: number for number, name in enumerate(self.class_names)}
        self.labels, self.files = [], []
        for shape in read_lines(self.listing):
            class_name = shape.rpartition("_")[0]
            if class_name in numbers:
                self.labels.append(numbers[class_name])
                self.files.append(root / class_name / f"{PurePosixPath(shape).name}.txt")
            elif subset is None or own:
                raise DGLError(
                    f"{self.listing} lists {shape!r}, which is of none of the {len(numbers)} classes; unpack "
                    f"the download again."
                )
        self.sources = [self.listing, *([] if subset else [names]), *self.files]
        check_files(self.files, self.listing)
        check_classes(np.array(self.labels, np.int64), self.class_names, self.listing)

    def read(self, num_points: int | None, normals: bool) -> PointClouds:
        clouds = []
        for path in progress_bar(self.files, f"Reading {self.listing.stem}", "shapes"):
            table = read_table(path, columns=(3, 6), rows=num_points)
            if normals and table.shape[1] == 3:
                raise _no_normals(path)
            normal = {"normal": table[:, 3:].astype(np.float32)} if normals else {}
            clouds.append({"pos": to_float32(table[:, :3])} | normal)
        return PointClouds.concatenate(clouds, label=np.array(self.labels, np.int64))


class _Hdf5:
    """Files of many shapes each, and a list of the files."""

    folders = ("modelnet40_ply_hdf5_2048",)
    marks = ("train_files.txt", "shape_names.txt")

    def __init__(self, root: Path, part: str, set_name: str, subset: tuple[str, ...] | None) -> None:
        self.part = part
        self.listing = root / f"{part}_files.txt"
        # The lists name files relative to some other folder.
        self.files = [root / PurePosixPath(line).name for line in read_lines(self.listing)]
        names = root / "shape_names.txt"
        self.all_names = read_lines(names)
        self.class_names = subset or self.all_names
        self.sources = [self.listing, names, *self.files]
        check_files(self.files, self.listing)

    def read(self, num_points: int | None, normals: bool) -> PointClouds:
        positions = {name: position for position, name in enumerate(self.class_names)}
        numbers = np.array([positions.get(name, -1) for name in self.all_names])
        clouds, labels = [], []
        for path in progress_bar(self.files, f"Reading {self.listing.stem}", "files"):
            label, node = self._arrays(path, num_points, normals)
            label = numbers[label]
            labels.append(label[label >= 0])
            clouds += [{name: array[i] for name, array in node.items()} for i in np.flatnonzero(label >= 0)]
        labels = np.concatenate(labels).astype(np.int64)
        check_classes(labels, self.class_names, self.listing)
        return PointClouds.concatenate(clouds, label=labels)

    def _arrays(
        self, path: Path, num_points: int | None, normals: bool
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The labels ``(B,)`` and the points' arrays ``(B, n, 3)`` of one file."""
        arrays = read_hdf5(path, {"data": 3, "normal": 3, "label": 2}, optional=["normal"])
        if normals and "normal" not in arrays:
            raise _no_normals(path)
        node = {"pos": arrays["data"]} | ({"normal": arrays["normal"]} if normals else {})
        label = arrays["label"]
        shapes = {array.shape for array in node.values()}
        if len(shapes) > 1 or arrays["data"].shape[2] != 3 or label.shape[1] != 1 or label.dtype.kind == "f":
            raise DGLError(
                f"{path} has arrays of shape {sorted(shapes)} and {label.shape}, expected points (B, N, 3) "
                f"and integer labels (B, 1); unpack the download again."
            )
        if arrays["data"].shape[1] < (num_points or 1):
            raise DGLError(
                f"{path} has only {arrays['data'].shape[1]} points a cloud, but num_points is "
                f"{num_points or 'all'}; lower num_points or unpack the download again."
            )
        label = label[:, 0].astype(np.int64)
        check_labels(label, self.all_names, path)
        node = {name: array[:, :num_points] for name, array in node.items()}
        return label, {
            name: to_float32(array) if name == "pos" else array.astype(np.float32)
            for name, array in node.items()
        }


def _no_normals(path: Path) -> DGLError:
    return DGLError(
        f"{path} has no normals; leave out normals=True or use the download modelnet40_normal_resampled."
    )
