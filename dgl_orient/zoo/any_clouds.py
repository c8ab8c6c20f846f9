"""Point clouds in whatever form they come: arrays, tensors, graphs, files, folders, and lists of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dgl
import numpy as np
from dgl import DGLError, DGLGraph
from torch import Tensor

from ..data.io.attributes import check_cloud
from .clouds import PointCloudFile, cloud_of, read_clouds
from .input_files import find_files
from .molecules import file_extensions, molecule_of, molecules_of_file

if TYPE_CHECKING:
    from .trained_model import TrainedModel

__all__ = ["AnyClouds", "any_clouds"]

AnyClouds = (
    str | Path | np.ndarray | Tensor | DGLGraph | Mapping[str, np.ndarray | Tensor] | Sequence["AnyClouds"]
)


def any_clouds(
    trained: TrainedModel,
    data: AnyClouds,
    category: str | Sequence[str] | None = None,
    columns: Sequence[int] | Sequence[str] | None = None,
    seed: int = 0,
    remove_outliers: bool = True,
) -> Iterator[PointCloudFile]:
    """All clouds of some data, for a trained network; files are read one after the other.

    Parameters
    ----------
    trained : TrainedModel
        The network.
    data : str, Path, np.ndarray, Tensor, DGLGraph, mapping or sequence of such
        A file or a folder of files; points ``(N, 3)`` or clouds ``(B, N, 3)``; a graph with ``ndata["pos"]``,
        perhaps batched; a mapping with ``pos`` and further arrays, such as ``vel`` and ``charge``, or
        ``element`` of molecules.
    category : str or sequence of str, optional
        For a network that is conditioned on one: that of all clouds, or of each. By default the name of a
        file's folder.
    columns, seed, remove_outliers
        As in :meth:`dgl_orient.zoo.trained_model.TrainedModel.predict`.

    Raises
    ------
    DGLError
        If it is nothing of this, or lacks what the network needs.
    """
    number = 0
    for number, each in enumerate(_one_by_one(data, file_extensions(trained)), start=1):
        named = category if category is None or isinstance(category, str) else _item(category, number - 1)
        if isinstance(each, Path) and trained.is_molecular:
            yield from molecules_of_file(trained, each)
        elif isinstance(each, Path):
            options = dict(category=named, columns=columns, seed=seed, remove_outliers=remove_outliers)
            yield from read_clouds(trained, each, **options)
        else:
            name = Path(f"cloud {number - 1}")
            arrays = check_cloud(name, each, np.dtype(np.float64))
            if trained.is_molecular:
                yield molecule_of(trained, Path(f"molecule {number - 1}"), arrays)
                continue
            yield cloud_of(trained, name, arrays, named, seed, remove_outliers)
    if number == 0:
        raise DGLError("Expected point clouds, got an empty list.")


def _one_by_one(data: AnyClouds, extensions: Sequence[str]) -> Iterator[Path | dict[str, np.ndarray]]:
    """Files of these extensions, and the arrays of clouds."""
    if isinstance(data, (str, Path)):
        yield from (file.path for file in find_files([data], extensions=extensions))
    elif isinstance(data, DGLGraph):
        for graph in dgl.unbatch(data) if data.batch_size > 1 else [data]:
            yield {name: values.detach().cpu().numpy() for name, values in graph.ndata.items()}
    elif isinstance(data, Mapping):
        yield {name: np.asarray(_on_cpu(values)) for name, values in data.items()}
    elif _is_array(data):
        array = np.asarray(_on_cpu(data))
        if array.ndim not in (2, 3) or array.shape[-1] != 3:
            raise DGLError(
                f"Expected points of shape (N, 3) or clouds of shape (B, N, 3), got {tuple(array.shape)}."
            )
        for pos in array if array.ndim == 3 else [array]:
            yield {"pos": pos}
    elif isinstance(data, Iterable):
        for each in data:
            yield from _one_by_one(each, extensions)
    else:
        raise DGLError(
            f"Expected point clouds as arrays, tensors, graphs or files, got {type(data).__name__}."
        )


def _is_array(data: object) -> bool:
    """Whether these are numbers, also if they are in lists of lists; arrays of objects are lists."""
    if isinstance(data, (Tensor, np.ndarray)):
        return isinstance(data, Tensor) or data.dtype.kind not in "OSU"
    first = data
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return isinstance(first, (int, float, np.number))


def _on_cpu(values: object) -> object:
    return values.detach().cpu() if isinstance(values, Tensor) else values


def _item(categories: Sequence[str], number: int) -> str:
    if number >= len(categories):
        raise DGLError(f"Expected a category for each cloud, got only {len(categories)}.")
    return categories[number]
