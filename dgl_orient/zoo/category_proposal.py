"""The category of a cloud, proposed by a pretrained classifier."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..weights import DEFAULT
from .clouds import cloud_of
from .loading import load_trained_model
from .predict import predict_files
from .trained_model import TrainedModel

__all__ = ["CategoryProposer"]

#: Of a larger cloud so many points are enough to classify it.
_MAX_POINTS = 10_000


class CategoryProposer:
    """Proposes one of the categories that a network for parts knows, if a classifier is of that opinion.

    The classifier is the default pretrained model, which is loaded when it is needed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dgl_orient.data import Shapes
    >>> from dgl_orient.zoo.category_proposal import CategoryProposer
    >>> cloud, _ = Shapes("test", num_points=2000, num_shapes=1, classes=["bottle"])[0]
    >>> pos, propose = cloud.ndata["pos"].double().numpy(), CategoryProposer()
    >>> propose(Path("scan.ply"), pos, ["bottle", "mug"])[0]
    'bottle'
    >>> propose(Path("scan.ply"), pos, ["rocket", "mug"]) is None
    True
    """

    @functools.cached_property
    def classifier(self) -> TrainedModel:
        """The classifier."""
        return load_trained_model(DEFAULT)

    def __call__(self, path: Path, pos: np.ndarray, categories: Sequence[str]) -> tuple[str, str] | None:
        """The category of a cloud and a remark of where it is from; None if the classifier's is another."""
        known = {name.lower(): name for name in categories}
        if known.keys().isdisjoint(name.lower() for name in self.classifier.metadata["class_names"]):
            return None
        rows = np.random.Generator(np.random.Philox(0)).permutation(len(pos))[:_MAX_POINTS]
        ((_, prediction),) = predict_files(
            self.classifier, [cloud_of(self.classifier, path, {"pos": pos[rows]})]
        )
        best = known.get(prediction.summary["class"].lower())
        if best is None:
            return None
        probability = prediction.summary["probability"]
        return (
            best,
            f"category {best} is a guess ({probability:.1%}) of {DEFAULT}; --category names another",
        )
