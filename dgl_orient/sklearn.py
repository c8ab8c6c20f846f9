"""Estimators with scikit-learn's interface, for clouds as arrays, lists of arrays or files.

They work in :class:`~sklearn.pipeline.Pipeline`, :func:`~sklearn.model_selection.cross_val_score`,
:class:`~sklearn.model_selection.GridSearchCV` and with joblib. ``X`` is an array ``(B, N, 3)``, or a list of
arrays ``(N, 3)``, tensors, graphs or files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted
from torch import nn

from .models import OrientedDGCNN, OrientedDGCNNSeg
from .train.settings import Settings
from .weights import DEFAULT
from .zoo.any_clouds import AnyClouds, any_clouds
from .zoo.fitting import fit_clouds
from .zoo.predict import cloud_outputs
from .zoo.pretrained import pretrained
from .zoo.trained_model import TrainedModel

__all__ = ["PartSegmenter", "PointCloudClassifier", "PointCloudFeatures"]


class PointCloudFeatures(TransformerMixin, BaseEstimator):
    """The features of clouds that a pretrained model computes, for scikit-learn's estimators.

    Parameters
    ----------
    model : str or Path
        The name of a pretrained model, or the checkpoint of a training.
    votes : int
        Over how many samples of a cloud's points the features are averaged.
    batch_size : int
        How many clouds are computed at once.
    remove_outliers : bool
        Whether to remove points far from all others.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from dgl_orient.data import Shapes
    >>> from dgl_orient.sklearn import PointCloudFeatures
    >>> shapes = Shapes("train", 400, 12, classes=["mug", "chair"])
    >>> X, y = shapes.clouds.node["pos"].reshape(12, 400, 3), shapes.labels
    >>> model = make_pipeline(PointCloudFeatures(), LogisticRegression()).fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    def __init__(
        self,
        model: str | Path = DEFAULT,
        votes: int = 1,
        batch_size: int = 32,
        remove_outliers: bool = True,
    ) -> None:
        self.model = model
        self.votes = votes
        self.batch_size = batch_size
        self.remove_outliers = remove_outliers

    def fit(self, X: AnyClouds, y: object = None) -> PointCloudFeatures:
        """Load the model; nothing is learned."""
        self.model_ = pretrained(self.model)
        return self

    def transform(self, X: AnyClouds) -> np.ndarray:
        """Features ``(B, C)`` of clouds."""
        check_is_fitted(self)
        options = dict(votes=self.votes, batch_size=self.batch_size, remove_outliers=self.remove_outliers)
        return self.model_.features(X, **options).numpy()


class PointCloudClassifier(ClassifierMixin, BaseEstimator):
    """A rotation-invariant classifier of clouds.

    Parameters
    ----------
    init_from : str or Path, optional
        The pretrained model, or checkpoint, whose weights the network begins with; None for a small
        :class:`~dgl_orient.models.OrientedDGCNN` that is randomly initialised.
    freeze : bool
        With ``init_from``: whether to train the output layer alone.
    num_points : int
        Number of points that are sampled of a cloud, without ``init_from``.
    num_epochs, lr, batch_size
        Of the training.
    votes : int
        Over how many samples of a cloud's points predictions are averaged.
    random_state : int
        Seed of the weights, the samples and the order of clouds.
    remove_outliers : bool
        Whether to remove points far from all others.
    verbose : bool
        Whether to report progress on stderr.

    Attributes
    ----------
    classes_ : np.ndarray
        The classes.
    model_ : TrainedModel
        The trained model; ``model_.save(path)`` writes it for ``dgl-orient apply``.
    """

    def __init__(
        self,
        init_from: str | Path | None = DEFAULT,
        freeze: bool = False,
        num_points: int = 256,
        num_epochs: int = 20,
        lr: float = 1e-3,
        batch_size: int = 16,
        votes: int = 1,
        random_state: int = 0,
        remove_outliers: bool = True,
        verbose: bool = False,
    ) -> None:
        self.init_from = init_from
        self.freeze = freeze
        self.num_points = num_points
        self.num_epochs = num_epochs
        self.lr = lr
        self.batch_size = batch_size
        self.votes = votes
        self.random_state = random_state
        self.remove_outliers = remove_outliers
        self.verbose = verbose

    def fit(self, X: AnyClouds, y: Sequence[object]) -> PointCloudClassifier:
        """Train; a fifth of the clouds of each class chooses the best epoch."""
        self.classes_, numbers = np.unique(np.asarray(y), return_inverse=True)
        if self.init_from is None:
            self.model_ = _trained(self, OrientedDGCNN.light, X, numbers)
            return self
        self.model_ = pretrained(self.init_from).finetune(
            X,
            numbers,
            num_epochs=self.num_epochs,
            freeze=self.freeze,
            lr=self.lr,
            batch_size=self.batch_size,
            seed=self.random_state,
            remove_outliers=self.remove_outliers,
            progress=self.verbose,
        )
        return self

    def predict_proba(self, X: AnyClouds) -> np.ndarray:
        """The probabilities of the classes, ``(B, num_classes)``."""
        check_is_fitted(self)
        options = dict(votes=self.votes, remove_outliers=self.remove_outliers)
        found = self.model_.predict(X, **options)
        return np.array([list(each["probabilities"].values()) for each in found])

    def predict(self, X: AnyClouds) -> np.ndarray:
        """The classes ``(B,)``."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]


class PartSegmenter(BaseEstimator):
    """A rotation-invariant network for the parts of clouds: a label for each point.

    Parameters
    ----------
    num_points : int
        Number of points that are sampled of a cloud in training.
    num_epochs, lr, batch_size, random_state, remove_outliers, verbose
        As in :class:`PointCloudClassifier`.

    Attributes
    ----------
    classes_ : np.ndarray
        The parts.
    model_ : TrainedModel
        The trained model.
    """

    def __init__(
        self,
        num_points: int = 512,
        num_epochs: int = 20,
        lr: float = 1e-3,
        batch_size: int = 8,
        random_state: int = 0,
        remove_outliers: bool = True,
        verbose: bool = False,
    ) -> None:
        self.num_points = num_points
        self.num_epochs = num_epochs
        self.lr = lr
        self.batch_size = batch_size
        self.random_state = random_state
        self.remove_outliers = remove_outliers
        self.verbose = verbose

    def fit(self, X: AnyClouds, y: Sequence[np.ndarray]) -> PartSegmenter:
        """Train on clouds and the parts of their points, ``(B, N)`` or an array for each cloud."""
        parts = [np.asarray(each) for each in y]
        self.classes_, numbers = np.unique(np.concatenate(parts), return_inverse=True)
        numbers = np.split(numbers, np.cumsum([len(each) for each in parts])[:-1])
        self.model_ = _trained(self, OrientedDGCNNSeg.light, X, numbers, per_point=True)
        return self

    def predict_proba(self, X: AnyClouds) -> np.ndarray | list[np.ndarray]:
        """The probabilities of the parts of each point, ``(N, num_parts)`` for each cloud."""
        check_is_fitted(self)
        clouds = any_clouds(self.model_, X, remove_outliers=self.remove_outliers)
        outputs = [output.output for _, output in cloud_outputs(self.model_, clouds)]
        return _stacked(X, [each.softmax(1).numpy() for each in outputs])

    def predict(self, X: AnyClouds) -> np.ndarray | list[np.ndarray]:
        """The part of each point, ``(N,)`` for each cloud."""
        return _stacked(X, [self.classes_[each.argmax(1)] for each in self.predict_proba(X)])

    def score(self, X: AnyClouds, y: Sequence[np.ndarray]) -> float:
        """The fraction of points whose part is right."""
        return accuracy_score(np.concatenate(list(y)), np.concatenate(list(self.predict(X))))


def _trained(
    estimator: PointCloudClassifier | PartSegmenter,
    network: Callable[[int], nn.Module],
    X: AnyClouds,
    targets: Sequence[object],
    per_point: bool = False,
) -> TrainedModel:
    """A network trained from scratch, with the settings of an estimator."""
    settings = Settings(
        num_epochs=estimator.num_epochs,
        optimizer={"name": "adam", "lr": estimator.lr},
        train_batch_size=estimator.batch_size,
        seed=estimator.random_state,
        protocol=None,  # the network is invariant
    )
    options = dict(remove_outliers=estimator.remove_outliers, progress=estimator.verbose)
    # The same weights for the same random_state.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(estimator.random_state)
        return fit_clouds(network, X, targets, estimator.num_points, settings, per_point, **options)


def _stacked(X: AnyClouds, values: list[np.ndarray]) -> np.ndarray | list[np.ndarray]:
    """One array where the clouds are one."""
    return np.stack(values) if isinstance(X, np.ndarray) and X.dtype != object else values
