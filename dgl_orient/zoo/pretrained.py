"""Pretrained models by name, and trained ones by file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dgl import DGLError
from dgl.transforms import Compose
from torch import nn

from .._messages import nearest
from .catalog import pretrained_models
from .trained_model import load_trained_model

__all__ = ["Meta", "pretrained"]


class Meta(NamedTuple):
    """Metadata of a trained network."""

    name: str
    class_names: list[str]  #: in the order of its outputs
    num_points: int | None  #: how many points its clouds had; None if any number
    transform: Compose  #: from any clouds to such as it was trained on: number of points, position and scale
    #: Of the test split: protocol → metric → value; of a training of your own by the names of its test sets.
    scores: Mapping[str, Mapping[str, float]]
    recipe: Mapping[str, object]  #: from which it was trained
    data: Mapping[str, str]  #: the data set's name and, of a pretrained model, citation and licence


def pretrained(name: str | Path, model: nn.Module | None = None) -> nn.Module:
    """A trained network, in evaluation mode and on the CPU.

    Its attribute ``meta``, a :class:`Meta`, says what its outputs mean. ``meta.transform`` gives clouds the
    number of points, the position and the scale of those that it was trained on; without it predictions are
    wrong.

    Parameters
    ----------
    name : str or Path
        Of a pretrained model, ``"oriented-dgcnn-modelnet40"``: the class of a shape, one of 40, in any pose;
        or the file ``run_0.pth`` of a training of your own, by the command line,
        :func:`dgl_orient.train.fit` or an exported script. Nothing in a file is executed.
    model : nn.Module, optional
        The network that gets the weights, for one of your own that is not registered: see
        :func:`dgl_orient.config.registry.register_model`.

    Raises
    ------
    DGLError
        If there is no such model, or the file has none.

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
        raise DGLError(f"There is no pretrained model {name!r}; {nearest(name, pretrained_models())}")
    trained = load_trained_model(name, model=model)
    trained.model.meta = Meta(
        str(name),
        list(trained.metadata.get("class_names", ())),
        trained.num_points,
        trained.transform,
        trained.scores,
        trained.recipe,
        trained.release.get("data", _data_name(trained.recipe)),
    )
    return trained.model


def _data_name(recipe: Mapping[str, object]) -> dict[str, str]:
    return {"name": recipe["data"]["name"]} if "data" in recipe else {}
