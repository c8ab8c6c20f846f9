"""Trained models: predictions, features and orientations of clouds in any form."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from dgl import DGLError, DGLGraph
from dgl.transforms import Compose
from torch import Tensor, nn

from .._validation import check_choice
from ..config import registry
from ..config.build import argument_of, is_normalized, make_model
from ..data import FixedPoints, NormalizeScale
from ..train import checkpoint as checkpoints
from ..train.settings import Settings
from ..train.tasks import Task
from .any_clouds import AnyClouds, any_clouds
from .novelty import Novelty
from .orientations import cloud_orientations
from .predict import cloud_outputs, predict_files
from .predictions import Predictions

__all__ = ["Meta", "TrainedModel"]

Per = Literal["cloud", "point"]


class Meta(NamedTuple):
    """Metadata of a trained model."""

    name: str
    class_names: list[str]  #: in the order of its outputs
    num_points: int | None  #: how many points its clouds had; None if any number
    transform: Compose  #: from any clouds to such as it was trained on: number of points, position and scale
    #: Of the test split: protocol → metric → value; of a training of your own by the names of its test sets.
    scores: Mapping[str, Mapping[str, float]]
    recipe: Mapping[str, object]  #: from which it was trained
    data: Mapping[str, str]  #: the data set's name and, of a pretrained model, citation and licence
    #: How often clouds of known and of other classes were called unknown; None if it is not calibrated.
    novelty: Mapping[str, object] | None


@dataclass(frozen=True, repr=False)
class TrainedModel:
    """A trained network and what is needed to use it.

    :meth:`predict`, :meth:`features` and :meth:`orientations` take clouds in any form: points ``(N, 3)`` and
    clouds ``(B, N, 3)`` as arrays or tensors, graphs, files, folders, and lists of these. They are sampled,
    centered and scaled as in training, and points far from all others are removed. The bare ``network`` does
    nothing of this.
    """

    path: Path  #: of its checkpoint, or the name of a pretrained model
    #: From which it was trained; without ``data`` if it was trained in Python.
    recipe: Mapping[str, object]
    metadata: Mapping[str, object]  #: as :mod:`dgl_orient.train.checkpoint` describes it
    task: Task | None  #: None if it is none of this package
    network: nn.Module  #: in evaluation mode
    #: Of the test split, if it was scored: the test's name → metric → value.
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    #: What the checkpoint of a pretrained model says of itself; else empty.
    release: Mapping[str, object] = field(default_factory=dict)
    novelty: Novelty | None = None  #: of a classifier that can say "unknown"
    #: What else the checkpoint has.
    origin: Mapping[str, object] = field(default_factory=dict)

    def __repr__(self) -> str:
        name = self.recipe["model"]["name"] if "model" in self.recipe else type(self.network).__name__
        number = len(self.metadata.get("class_names", ()))
        outputs = f", {number} classes" if number else ""
        points = "" if self.num_points is None else f", {self.num_points:,} points"
        return f"TrainedModel({str(self.path)!r}: {self.pipeline}, {name}{outputs}{points})"

    def predict(
        self,
        data: AnyClouds,
        category: str | Sequence[str] | None = None,
        votes: int = 1,
        batch_size: int = 32,
        seed: int = 0,
        remove_outliers: bool = True,
        columns: Sequence[int] | Sequence[str] | None = None,
    ) -> Predictions:
        """Predict classes of clouds, which way is up, properties of molecules, or parts, normals or positions
        of points.

        Parameters
        ----------
        data : str, Path, np.ndarray, Tensor, DGLGraph, mapping or sequence of such
            Clouds in any form: see :func:`dgl_orient.zoo.any_clouds.any_clouds`.
        category : str or sequence of str, optional
            For parts: that of all clouds, or of each. By default the name of a file's folder.
        votes : int
            Over how many samples of its points the logits of a cloud's classes are averaged.
        batch_size : int
            How many clouds are predicted at once.
        seed : int
            Of the points that are sampled.
        remove_outliers : bool
            Whether to remove points far from all others; where every point has a prediction, such a point has
            that of the nearest other point.
        columns : sequence of int or str, optional
            Which columns of tables hold the coordinates; by default as in training.

        Returns
        -------
        Predictions
            A list of :class:`~dgl_orient.zoo.predictions.Prediction`, which prints as a table.

        Examples
        --------
        >>> import dgl_orient
        >>> from dgl_orient.data import Shapes
        >>> model = dgl_orient.pretrained("oriented-dgcnn-modelnet40")
        >>> chair, _ = Shapes("test", num_points=2000, num_shapes=1, classes=["chair"])[0]
        >>> model.predict(chair)[0]["nearest_class"]
        'chair'
        """
        clouds = any_clouds(self, data, category, columns, seed, remove_outliers)
        return Predictions(each for _, each in predict_files(self, clouds, batch_size, seed, votes))

    def features(
        self,
        data: AnyClouds,
        per: Per = "cloud",
        category: str | Sequence[str] | None = None,
        votes: int = 1,
        batch_size: int = 32,
        seed: int = 0,
        remove_outliers: bool = True,
        columns: Sequence[int] | Sequence[str] | None = None,
    ) -> Tensor | list[Tensor]:
        """The features that the network computes: of each cloud, or of each point.

        Those of a cloud are what the last linear map of a classifier is given; of a network for points they
        are the mean over these. The features of points are what the last linear map on points is given.
        They are invariant to rotations, if the network is.

        Parameters
        ----------
        data, category, votes, batch_size, seed, remove_outliers, columns
            As in :meth:`predict`.
        per : {"cloud", "point"}
            Of which.

        Returns
        -------
        Tensor or list of Tensor
            ``(B, C)``, or ``(N, C)`` for each cloud, with a row for each of its points: that of the nearest
            point that the network was given.
        """
        check_choice("per", per, Per)
        if self.pipeline == "upright":
            raise DGLError("A network for upward directions has features of directions, not of clouds.")
        clouds = any_clouds(self, data, category, columns, seed, remove_outliers)
        outputs = cloud_outputs(self, clouds, batch_size, seed, votes, with_points=True)
        found = [each.features if per == "cloud" else each.point_features for _, each in outputs]
        if found[0] is None:
            raise DGLError(f"{type(self.network).__name__} has no linear map of {per}s that gives features.")
        return torch.stack(found) if per == "cloud" else found

    def orientations(
        self,
        data: AnyClouds,
        per: Per = "cloud",
        category: str | Sequence[str] | None = None,
        seed: int = 0,
        remove_outliers: bool = True,
        columns: Sequence[int] | Sequence[str] | None = None,
    ) -> Tensor | list[Tensor]:
        """The orientations that the network computes: rotation matrices that rotate with the clouds.

        Those of atoms have axes that are shorter than 1 where geometry hardly determines them: see
        :func:`~dgl_orient.models.atom_orientation.fading_axes`.

        Parameters
        ----------
        data, category, seed, remove_outliers, columns
            As in :meth:`predict`.
        per : {"cloud", "point"}
            Of which.

        Returns
        -------
        Tensor or list of Tensor
            ``(B, F, 3, 3)``, or ``(N, F, 3, 3)`` for each cloud, with a row for each of its points: that of
            the nearest point that the network was given. Columns are the axes.
        """
        check_choice("per", per, Per)
        clouds = any_clouds(self, data, category, columns, seed, remove_outliers)
        found = [cloud_orientations(self, cloud, per, seed) for cloud in clouds]
        return torch.stack(found) if per == "cloud" else found

    def finetune(
        self,
        data: AnyClouds,
        labels: Sequence[object],
        num_epochs: int = 50,
        freeze: bool | list[str] = True,
        lr: float = 1e-2,
        batch_size: int = 8,
        seed: int = 0,
        remove_outliers: bool = True,
        folder: str | Path | None = None,
        progress: bool = True,
    ) -> TrainedModel:
        """A classifier for other classes, trained on a few clouds from the weights of this one.

        Parameters
        ----------
        data : str, Path, np.ndarray, Tensor, DGLGraph, mapping or sequence of such
            Clouds in any form: see :func:`dgl_orient.zoo.any_clouds.any_clouds`. A fifth of each class
            chooses the best epoch.
        labels : sequence
            The class of each cloud.
        num_epochs, lr, batch_size, seed
            Of the training.
        freeze : bool or list of str
            Whether to train the new output layer alone, or the modules that are not trained.
        remove_outliers : bool
            Whether to remove points far from all others.
        folder : str or Path, optional
            Where to keep checkpoints and logs; by default nowhere.
        progress : bool
            Whether to report progress on stderr.
        """
        from .fitting import fit_clouds

        if self.pipeline != "pointcls" or "model" not in self.recipe:
            raise DGLError("Expected a classifier whose network is registered; use dgl_orient.train.fit.")

        def network(number: int) -> nn.Module:
            return make_model(self.recipe, {**self.metadata, "num_classes": number})

        with tempfile.TemporaryDirectory() as temporary:
            self.save(Path(temporary, "initial.pth"))
            settings = Settings(
                num_epochs=num_epochs,
                optimizer={"name": "adam", "lr": lr},
                train_batch_size=batch_size,
                seed=seed,
                protocol=None,
                init_from=str(Path(temporary, "initial.pth")),
                freeze=freeze,
            )
            options = dict(remove_outliers=remove_outliers, folder=folder, progress=progress)
            return fit_clouds(network, data, labels, self.num_points or 1024, settings, **options)

    def save(self, path: str | Path) -> None:
        """Write the model to a file for :func:`dgl_orient.pretrained` and ``dgl-orient apply``."""
        content = {**self.origin, "weights": checkpoints.weights_of(self.network)}
        content |= {} if self.novelty is None else {"novelty": self.novelty.state()}
        checkpoints.save(path, content)

    @property
    def meta(self) -> Meta:
        """What there is to know about it."""
        data = {"name": self.recipe["data"]["name"]} if "data" in self.recipe else {}
        return Meta(
            str(self.path),
            list(self.metadata.get("class_names", ())),
            self.num_points,
            self.transform,
            self.scores,
            self.recipe,
            self.release.get("data", data),
            None if self.novelty is None else self.novelty.rates,
        )

    @property
    def pipeline(self) -> str:
        """The name of its task, such as ``"pointcls"``."""
        return self.recipe["pipeline_name"]

    @property
    def is_molecular(self) -> bool:
        """Whether it predicts molecules."""
        return self.pipeline in registry.MOLECULES

    @property
    def is_category_conditioned(self) -> bool:
        """Whether it segments a cloud given the cloud's category."""
        return self.pipeline == "partseg" and "num_classes" in self.metadata

    @property
    def num_points(self) -> int | None:
        """How many points the clouds had that it was scored on; None if any number."""
        return self._preprocessing("num_points")

    @property
    def num_training_points(self) -> int | None:
        """How many points clouds had in training, of which augmentation may take fewer; None if any."""
        sampled = (self.recipe.get("general_pipeline", {}).get("augmentation") or {}).get("num_points")
        return min(self.num_points, sampled) if self.num_points and sampled else self.num_points

    @property
    def is_sampled(self) -> bool:
        """Whether it is given a sample of a cloud's points, :attr:`num_points` of them."""
        return self.pipeline in registry.PER_CLOUD and self.num_points is not None

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return next(self.network.parameters()).device

    @property
    def columns(self) -> tuple[int, ...] | None:
        """The columns of tables in which its clouds' coordinates were."""
        return self._preprocessing("columns")

    @property
    def input_features(self) -> tuple[str, ...]:
        """The attributes of the points that it takes as features, such as ``"color"``."""
        names = self._preprocessing("features")
        return tuple(names) if isinstance(names, (list, tuple)) else ()

    @property
    def sampling(self) -> str:
        """How its clouds' points were sampled from the shapes: see :func:`dgl_orient.data.read_cloud`."""
        if "data" in self.recipe:
            return getattr(registry.data_class(self.recipe["data"]["name"]), "sampling", "random")
        return self._preprocessing("sampling") or "random"

    @property
    def is_normalized(self) -> bool:
        """Whether its clouds were centered and scaled."""
        if "data" in self.recipe:
            return is_normalized(self.recipe)
        return self.pipeline not in registry.PHYSICAL and self._preprocessing("normalize") is not False

    @property
    def transform(self) -> Compose:
        """From any clouds to such as it was trained on: number of points, position and scale."""
        return self._transform(self.sampling)

    @property
    def resampling(self) -> Compose:
        """The same with other points of a cloud each time."""
        return self._transform("random" if self.sampling == "random" else "random_farthest")

    def _transform(self, sampling: str) -> Compose:
        steps = [FixedPoints(self.num_points, sampling)] if self.is_sampled else []
        return Compose(steps + ([NormalizeScale()] if self.is_normalized else []))

    def prepare(self, graph: DGLGraph) -> DGLGraph:
        """A cloud of the right number of points, centered and scaled unless it is of particles."""
        return NormalizeScale()(graph) if self.is_normalized else graph

    def _preprocessing(self, name: str) -> object:
        if "data" in self.recipe:
            return argument_of(self.recipe, name)
        return self.metadata.get("preprocessing", {}).get(name)
