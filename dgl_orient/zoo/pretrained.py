"""Trained networks by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dgl import DGLError
from dgl.transforms import Compose
from torch import nn

from .._messages import nearest
from ..data import FixedPoints, NormalizeScale
from .checkpoints import released
from .trained_model import TrainedModel, load_trained_model

__all__ = ["Meta", "pretrained"]


class Meta(NamedTuple):
    """What there is to know of a trained network."""

    name: str
    class_names: list[str]  #: in the order of its outputs
    num_points: int | None  #: how many points its clouds had; None if any number
    transform: Compose  #: from any clouds to such as it was trained on: number of points, place and scale
    #: Of the test split: protocol → metric → value; of a training of your own as it named its tests.
    scores: Mapping[str, Mapping[str, float]]
    recipe: Mapping[str, object]  #: from which it was trained
    data: Mapping[str, str]  #: the data set's name and, of a network of this package, citation and licence


def pretrained(name: str | Path) -> nn.Module:
    """A trained network, in evaluation mode and on the CPU.

    Its attribute ``meta``, a :class:`Meta`, says what its answers mean. ``meta.transform`` gives clouds the
    number of points, the place and the scale of those that it was trained on; without it answers are wrong.

    Parameters
    ----------
    name : str or Path
        Of a network that comes with this package, ``"oriented-dgcnn-modelnet40"``: the class of a shape, one
        of 40, in whatever pose; or the file ``run_0.pth`` of a training of your own. Nothing in a file is
        executed.

    Raises
    ------
    DGLError
        If no network has this name, or the file holds none.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> network = dgl_orient.pretrained("oriented-dgcnn-modelnet40")
    >>> clouds = dgl_orient.point_cloud(1000 * torch.rand(5000, 3), [2000, 3000])
    >>> logits = network(network.meta.transform(clouds))
    >>> logits.shape
    torch.Size([2, 40])
    >>> network.meta.class_names[:3]
    ['airplane', 'bathtub', 'bed']
    """
    if not isinstance(name, (str, Path)):
        raise DGLError(f"There is no pretrained network {name!r}; {nearest(name, released())}")
    trained = load_trained_model(name)
    trained.model.meta = Meta(
        str(name),
        list(trained.metadata.get("class_names", ())),
        trained.num_points,
        Compose(_steps(trained)),
        trained.scores,
        trained.recipe,
        trained.release.get("data", {"name": trained.recipe["data"]["name"]}),
    )
    return trained.model


def _steps(trained: TrainedModel) -> list[FixedPoints | NormalizeScale]:
    """As files are prepared by :func:`~dgl_orient.go.apply.apply`, for networks that answer for a cloud."""
    whole = trained.pipeline == "pointcls" and trained.num_points is not None
    steps = [FixedPoints(trained.num_points, trained.sampling)] if whole else []
    return steps + ([NormalizeScale()] if trained.is_normalized else [])
