"""Rotation-invariant and rotation-equivariant networks on point clouds, as layers for DGL."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import config, data, geometry, graph, metrics, models, nn, plot, testing, train, zoo
    from .graph import knn_graph, point_cloud
    from .nn import (
        EquivariantReadout,
        GlobalOrientation,
        InvariantReadout,
        OrientationNet,
        OrientedConv,
        OrientedEdgeConv,
        OrientedRSConv,
    )
    from .zoo.pretrained import pretrained

    __version__: str

__all__ = [
    "EquivariantReadout",
    "GlobalOrientation",
    "InvariantReadout",
    "OrientationNet",
    "OrientedConv",
    "OrientedEdgeConv",
    "OrientedRSConv",
    "__version__",
    "config",
    "data",
    "geometry",
    "graph",
    "knn_graph",
    "metrics",
    "models",
    "nn",
    "plot",
    "point_cloud",
    "pretrained",
    "testing",
    "train",
    "zoo",
]

_FUNCTIONS = {"knn_graph": ".graph", "point_cloud": ".graph", "pretrained": ".zoo.pretrained"}


def __getattr__(name: str):
    # Imported on first access, so that the command line prints its help without importing torch.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "__version__":
        value = import_module("importlib.metadata").version("dgl-orient")
    elif name in _FUNCTIONS:
        value = getattr(import_module(_FUNCTIONS[name], __name__), name)
    elif name[0].isupper():
        value = getattr(import_module(".nn", __name__), name)
    else:
        value = import_module(f".{name}", __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
