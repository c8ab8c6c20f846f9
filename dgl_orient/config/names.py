"""The names a recipe may use, as plain data: reading this table imports no torch.

A class is written as ``"module:Class"`` and imported by :mod:`dgl_orient.config.registry` when it is needed.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NamedTuple

__all__ = [
    "DATA",
    "DGLGO_APPLY",
    "DGLGO_PIPELINES",
    "MODELS",
    "PIPELINES",
    "DataName",
    "ModelName",
    "nearest",
]

#: Our pipelines and what they are for.
PIPELINES = {
    "pointcls": "Classification of point clouds",
    "partseg": "Segmentation of point clouds into parts",
    "normals": "Estimation of the points' normals",
    "nbody": "Prediction of charged particles' positions",
}

#: dglgo's own pipelines, known without importing it.
DGLGO_PIPELINES = {
    "nodepred": "Node classification pipeline",
    "nodepred-ns": "Node classification neighbor sampling pipeline",
    "linkpred": "Link prediction pipeline",
    "graphpred": "Graph property prediction pipeline on binary classification",
}

#: Those of dglgo's pipelines that have an inference pipeline.
DGLGO_APPLY = ("nodepred", "nodepred-ns", "graphpred")

#: Settings of ``general_pipeline`` that mean nothing to a pipeline.
UNUSED_SETTINGS = {
    "pointcls": ("signed",),
    "partseg": ("signed",),
    "normals": ("label_smoothing",),
    "nbody": ("protocol", "label_smoothing", "signed", "augment"),
}

#: Arguments of data sets that the pipeline gives: a recipe cannot.
GIVEN_TO_DATA = ("split", "transform", "seed", "force_reload", "verbose", "normals")

#: Arguments of networks that follow from the data set.
GIVEN_TO_MODELS = ("num_classes", "num_outputs", "num_categories", "out")


#: What networks give to the part of them that learns orientations.
GIVEN_TO_ORIENTATION = ("num_orientations", "level_sizes", "k", "in_feats", "in_vectors")


class DataName(NamedTuple):
    """A data set by name."""

    where: str | type  #: ``"module:Class"``, or the class
    pipelines: tuple[str, ...]  #: for which it serves
    per_split: tuple[str, ...] = ()  #: arguments that may be a map from split to value


class ModelName(NamedTuple):
    """A network by name."""

    where: dict[str, str | type]  #: pipeline → ``"module:Class"``, or the class

    @property
    def pipelines(self) -> tuple[str, ...]:
        """For which it serves."""
        return tuple(self.where)


_POINTS = ("pointcls", "partseg", "normals")

DATA = {
    "shapes": DataName("dgl_orient.data:Shapes", _POINTS, ("num_shapes",)),
    "modelnet40": DataName("dgl_orient.data:ModelNet40", ("pointcls", "normals"), ("num_points",)),
    "modelnet10": DataName("dgl_orient.data:ModelNet10", ("pointcls", "normals"), ("num_points",)),
    "shapenetpart": DataName("dgl_orient.data:ShapeNetPart", _POINTS),
    "charged": DataName("dgl_orient.data:ChargedParticles", ("nbody",), ("size",)),
    "folder": DataName("dgl_orient.data:FolderDataset", ("pointcls", "normals")),
}

MODELS = {
    "oriented-dgcnn": ModelName(
        {
            "pointcls": "dgl_orient.models:OrientedDGCNN",
            "partseg": "dgl_orient.models:OrientedDGCNNSeg",
            "normals": "dgl_orient.models:OrientedDGCNNSeg",
        }
    ),
    "oriented-rscnn": ModelName({"pointcls": "dgl_orient.models:OrientedRSCNN"}),
    "dgcnn": ModelName(
        {
            "pointcls": "dgl_orient.models:DGCNN",
            "partseg": "dgl_orient.models:DGCNNSeg",
            "normals": "dgl_orient.models:DGCNNSeg",
        }
    ),
    "rscnn": ModelName({"pointcls": "dgl_orient.models:RSCNN"}),
    "oriented-nbody": ModelName({"nbody": "dgl_orient.models:OrientedNBody"}),
    "egnn": ModelName({"nbody": "dgl_orient.models:EGNN"}),
    "gnn": ModelName({"nbody": "dgl_orient.models:GNN"}),
    "linear": ModelName({"nbody": "dgl_orient.models:LinearVelocity"}),
}


def nearest(word: object, known: Iterable[str]) -> str:
    """The end of a sentence about a word that is not known: the nearest known one, or all.

    Examples
    --------
    >>> from dgl_orient.config.names import nearest
    >>> nearest("oriented_dgcnn", ["oriented-dgcnn", "dgcnn"])
    "did you mean 'oriented-dgcnn'?"
    >>> nearest("x", ["cpu", "cuda"])
    'expected one of cpu, cuda.'
    """
    known = list(known)
    lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(word)[:100].lower(), lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    return f"expected one of {', '.join(known)}." if known else "expected nothing there."
