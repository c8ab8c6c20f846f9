"""Pretrained models by name, and trained ones by file."""

from __future__ import annotations

from pathlib import Path

from dgl import DGLError
from torch import nn

from .._messages import nearest
from ..weights import pretrained_models
from .loading import load_trained_model
from .trained_model import TrainedModel

__all__ = ["pretrained"]


def pretrained(name: str | Path, network: nn.Module | None = None) -> TrainedModel:
    """A trained model on the CPU, with predictions, features and orientations of clouds in any form.

    Its ``meta``, a :class:`~dgl_orient.zoo.trained_model.Meta`, says what its outputs mean.

    Parameters
    ----------
    name : str or Path
        Of a pretrained model, ``"oriented-dgcnn-modelnet40"``: the class of a shape, one of 40, in any pose;
        ``"oriented-pointnet2-modelnet40"``: the same by a larger network;
        ``"oriented-pointnet2-shapenetpart"``: the parts of shapes of 16 categories;
        ``"oriented-dgcnn-normals"``: the normals of a cloud of any density;
        or the file ``run_0.pth`` of a training of your own, by the command line,
        :func:`dgl_orient.train.fit` or an exported script. Nothing in a file is executed.
    network : nn.Module, optional
        The network that gets the weights, for one of your own that is not registered: see
        :func:`dgl_orient.config.registry.register_model`.

    Raises
    ------
    DGLError
        If there is no such model, or the file has none.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> model = dgl_orient.pretrained("oriented-dgcnn-modelnet40")
    >>> model.meta.class_names[:3]
    ['airplane', 'bathtub', 'bed']
    >>> clouds = [1000 * torch.rand(2000, 3), torch.rand(3000, 3)]
    >>> len(model.predict(clouds)), model.features(clouds).shape
    (2, torch.Size([2, 128]))
    """
    if not isinstance(name, (str, Path)):
        raise DGLError(f"There is no pretrained model {name!r}; {nearest(name, pretrained_models())}")
    return load_trained_model(name, network=network)
