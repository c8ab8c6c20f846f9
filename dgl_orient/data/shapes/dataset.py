"""The default data set, generated on the fly: no download, no file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

from ..._validation import PositiveInt, check_choice, check_integer
from ..choices import Axis, Split, Transform
from ..dataset import PointCloudDataset, PointClouds
from ..progress import progress_bar
from ..random_stream import RandomStream
from ..sampling import MAX_NUM_POINTS
from .classes import SHAPE_CLASSES, sample_object

__all__ = ["Shapes"]

_MAX_NUM_SHAPES = 10_000_000
_NUM_SHAPES = {"train": 800, "val": 160, "test": 320}

#: Increase it when the same arguments give other clouds, so that caches of older versions are not used.
_GENERATOR_VERSION = 1


class Shapes(PointCloudDataset):
    """Everyday objects, composed of boxes, rods, cones and arcs in random proportions.

    There are ten classes: armchair, bottle, chair, guitar, lamp, mug, pitcher, plane, rocket, table. Some
    differ by little: an armchair is a chair with one arm or two, a pitcher a mug with a spout. No class is
    the mirror image of another, since each contains the mirror image of whatever it contains.

    The points are sampled uniformly from the surface of the whole object, with the outward normals of the
    surface. ``dataset[i]`` is ``(graph, label)``, and the graph's ``ndata`` holds ``pos``, ``normal`` and
    ``part``. So one data set serves classification, part segmentation and normal estimation.

    The same arguments give the same data on every machine. A cloud depends only on ``shape_seed``, the
    split, its class and its index within the class: more shapes, or other classes, leave it unchanged.
    The object does not depend on ``num_points``.

    Parameters
    ----------
    split : {"train", "val", "test"}
        Which shapes; the splits are disjoint.
    num_points : int
        Points of each cloud.
    num_shapes : int, optional
        Number of clouds, the classes alternating; by default 800, 160 and 320.
    classes : sequence of str, optional
        Only these classes; labels and parts are numbered in this order. By default all.
    shape_seed : int
        Seed of the shapes and of the points on them.
    normalize : bool
        Whether to center each cloud and scale it to radius 1. Otherwise objects keep their sizes and
        positions, near the origin.
    save_dir : str or Path, optional
        Folder of the cache; by default the shapes are generated each time.
    transform, seed, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`.

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
        ``"z"``, the upright axis of all shapes.

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

    gravity: Axis = "z"

    def __init__(
        self,
        split: Split = "train",
        num_points: PositiveInt = 1024,
        num_shapes: PositiveInt | None = None,
        classes: Sequence[str] | None = None,
        shape_seed: int = 0,
        normalize: bool = True,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_choice("split", split, Split)
        self.num_points = check_integer("num_points", num_points, 1, MAX_NUM_POINTS)
        number = _NUM_SHAPES[split] if num_shapes is None else num_shapes
        self.num_shapes = check_integer("num_shapes", number, 1, _MAX_NUM_SHAPES)
        self.shape_seed = check_integer("shape_seed", shape_seed)
        self.normalize = bool(normalize)
        self.class_names = _check_classes(classes)
        self.num_classes = len(self.class_names)
        self.class_parts, self.part_names = _parts(self.class_names)
        self.num_parts = len(self.part_names)
        super().__init__(
            "shapes",
            save_dir=save_dir,
            hash_key=(
                _GENERATOR_VERSION,
                split,
                self.num_points,
                self.num_shapes,
                tuple(self.class_names),
                self.shape_seed,
                self.normalize,
            ),
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )

    def process(self) -> None:
        """Generate all clouds."""
        labels = np.arange(self.num_shapes) % self.num_classes
        indices = progress_bar(range(self.num_shapes), "Generating shapes", "shapes")
        self.clouds = PointClouds.concatenate([self._cloud(index) for index in indices], label=labels)

    def _cloud(self, index: int) -> dict[str, np.ndarray]:
        count, label = divmod(index, self.num_classes)
        name = self.class_names[label]
        form, points = (
            RandomStream("shapes", self.shape_seed, self.split, name, count, use)
            for use in ("form", "points")
        )
        pos, normal, part = sample_object(SHAPE_CLASSES[name], self.num_points, form, points)
        if self.normalize:
            pos = _normalize(pos)
        return {
            "pos": pos.T.astype(np.float32),
            "normal": normal.T.astype(np.float32),
            "part": (part + self.class_parts[label][0]).astype(np.uint8),
        }


def _normalize(points: np.ndarray) -> np.ndarray:
    """Points ``(3, n)``, centered and scaled to radius 1."""
    # NumPy does not fix the order in which it adds; fsum rounds once.
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


def _check_classes(classes: Sequence[str] | None) -> list[str]:
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
