"""The default data set, made on the spot: no download, no file."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError, DGLGraph
from tqdm import tqdm

from .._validation import check_integer
from . import random_stream, shape_classes, shape_parts, solids
from .dataset import PointCloudDataset, PointClouds
from .random_stream import RandomStream
from .shape_classes import SHAPE_CLASSES, sample_object
from .splits import check_split
from .tables import MOST_POINTS

__all__ = ["Shapes"]

_MAKERS = (random_stream, shape_classes, shape_parts, solids)
_MOST_SHAPES = 10_000_000
_NUM_SHAPES = {"train": 800, "val": 160, "test": 320}


class Shapes(PointCloudDataset):
    """Everyday objects put together from boxes, rods, cones and bows in random proportions.

    There are ten classes: armchair, bottle, chair, guitar, lamp, mug, pitcher, plane, rocket, table. Some
    differ by little: an armchair is a chair with one arm or two, a pitcher a mug with a spout. No class is
    the mirror image of another, since each contains the mirror image of whatever it contains.

    The points are drawn uniformly from the surface of the whole object, and their normals are those of the
    surface, outward. ``dataset[i]`` is ``(graph, label)``, and the graph's ``ndata`` holds ``pos``,
    ``normal`` and ``part``. So one data set serves classification, part segmentation and normals.

    The same arguments give the same data on every machine. A cloud depends only on ``shape_seed``, the
    split, its class and which of its class it is: more shapes leave the first ones as they are, and so do
    other classes beside it. The object does not depend on ``num_points``.

    Parameters
    ----------
    split : {"train", "val", "test"}
        Which shapes; those of one split are in no other.
    num_points : int
        Points of each cloud.
    num_shapes : int, optional
        How many clouds, of all classes in turn; by default 800, 160 and 320.
    classes : sequence of str, optional
        Only these classes; labels and parts are numbered in this order. By default all.
    shape_seed : int
        What decides the shapes and the points on them.
    normalize : bool
        Whether to put the mean of each cloud at the origin and its farthest point at distance 1. If not,
        objects keep their sizes and stand where they were built.
    save_dir : str or Path, optional
        Where to keep the clouds; not given, they are made anew each time.
    transform : callable, optional
        From graph to graph, applied at every access.
    seed : int
        Of the transform's draws.
    force_reload : bool
        Make the clouds anew even if they are kept.
    verbose : bool
        Whether to print progress information.

    Attributes
    ----------
    num_classes, num_parts : int
        Ten classes and 30 parts, or those of the chosen classes.
    class_names : list of str
        The classes, in the order of their labels.
    part_names : list of str
        The parts of all classes, as in ``"chair/leg"``, in the order of ``ndata["part"]``.
    class_parts : list of tuple of int
        The parts of each class.
    gravity : str
        ``"z"``, along which all shapes stand upright.

    Examples
    --------
    >>> from dgl_orient.data.shapes import Shapes
    >>> shapes = Shapes("test", num_points=256, num_shapes=20, classes=["chair", "mug"])
    >>> graph, label = shapes[1]
    >>> shapes.class_names[label], graph.ndata["normal"].shape
    ('mug', torch.Size([256, 3]))
    >>> shapes.class_parts
    [(0, 1, 2), (3, 4)]
    >>> shapes.part_names
    ['chair/seat', 'chair/back', 'chair/leg', 'mug/body', 'mug/handle']
    """

    gravity = "z"

    def __init__(
        self,
        split: str = "train",
        num_points: int = 1024,
        num_shapes: int | None = None,
        classes: Sequence[str] | None = None,
        shape_seed: int = 0,
        normalize: bool = True,
        save_dir: str | Path | None = None,
        transform: Callable[[DGLGraph], DGLGraph] | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_split(split, list(_NUM_SHAPES))
        self.num_points = check_integer("num_points", num_points, 1, MOST_POINTS)
        number = _NUM_SHAPES[split] if num_shapes is None else num_shapes
        self.num_shapes = check_integer("num_shapes", number, 1, _MOST_SHAPES)
        self.shape_seed = check_integer("shape_seed", shape_seed)
        self.normalize = bool(normalize)
        self.class_names = _chosen(classes)
        self.num_classes = len(self.class_names)
        self.class_parts, self.part_names = _parts(self.class_names)
        self.num_parts = len(self.part_names)
        sizes, names = (self.num_points, self.num_shapes), tuple(self.class_names)
        super().__init__(
            "shapes",
            save_dir=save_dir,
            hash_key=(split, *sizes, names, self.shape_seed, self.normalize),
            # What is kept is out of date as soon as the shapes are made in another way.
            sources=[Path(__file__), *(Path(module.__file__) for module in _MAKERS)],
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )

    def process(self) -> None:
        """Make all clouds."""
        labels = np.arange(self.num_shapes) % self.num_classes
        numbers = tqdm(range(self.num_shapes), desc="Making shapes", unit="shape", delay=3, disable=None)
        self.clouds = PointClouds.joined([self._cloud(number) for number in numbers], label=labels)

    def _cloud(self, number: int) -> dict[str, np.ndarray]:
        count, label = divmod(number, self.num_classes)
        name = self.class_names[label]
        form, points = (
            RandomStream("shapes", self.shape_seed, self.split, name, count, use)
            for use in ("form", "points")
        )
        pos, normal, part = sample_object(SHAPE_CLASSES[name], self.num_points, form, points)
        if self.normalize:
            pos = _in_unit_sphere(pos)
        return {
            "pos": pos.T.astype(np.float32),
            "normal": normal.T.astype(np.float32),
            "part": (part + self.class_parts[label][0]).astype(np.uint8),
        }


def _in_unit_sphere(points: np.ndarray) -> np.ndarray:
    """Points ``(3, n)`` about their mean, the farthest at distance 1."""
    # The order in which NumPy adds is its own affair; fsum rounds once.
    mean = np.array([math.fsum(row) / len(row) for row in points.tolist()])
    x, y, z = points = points - mean[:, None]
    radius = np.sqrt((x * x + y * y + z * z).max())
    return points / radius if radius > 0 else points


def _parts(class_names: Sequence[str]) -> tuple[list[tuple[int, ...]], list[str]]:
    """The numbers of each class's parts, and the names of all."""
    numbers, names = [], []
    for name in class_names:
        own = [f"{name}/{part}" for part in SHAPE_CLASSES[name].parts]
        numbers.append(tuple(range(len(names), len(names) + len(own))))
        names += own
    return numbers, names


def _chosen(classes: Sequence[str] | None) -> list[str]:
    if classes is None:
        return list(SHAPE_CLASSES)
    chosen = [classes] if isinstance(classes, str) else list(classes if np.iterable(classes) else ())
    known = all(name in list(SHAPE_CLASSES) for name in chosen)
    if not chosen or not known or len(set(chosen)) < len(chosen):
        raise DGLError(
            f"Expected classes to be different ones of {', '.join(SHAPE_CLASSES)}, got {classes!r}; name at "
            f"least one."
        )
    return chosen
