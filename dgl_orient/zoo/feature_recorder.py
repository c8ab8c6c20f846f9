"""The features that a network of any kind computes: the inputs of its last linear maps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["record_features"]


@contextmanager
def record_features(network: nn.Module) -> Iterator[dict[int, Tensor]]:
    """Record the input of the last linear map for each number of rows.

    In a forward pass on B clouds of N points together, the entry of B rows is what the head of a classifier
    maps to logits, and that of N rows the features of points before the last map of these. A network that
    averages over several passes, as over the signs of a point cloud's axes, has the mean of its features.

    Parameters
    ----------
    network : nn.Module
        Any network with modules :class:`torch.nn.Linear`.

    Yields
    ------
    dict
        Number of rows → features of this shape, ``(rows, C)``, after a forward pass in the context.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from dgl_orient.zoo.feature_recorder import record_features
    >>> network = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> with record_features(network) as features:
    ...     _ = network(torch.rand(5, 3))
    >>> features[5].shape
    torch.Size([5, 8])
    """
    recorded: dict[int, Tensor] = {}
    passes: dict[tuple[nn.Module, int], list[Tensor]] = {}

    def record(module: nn.Module, inputs: tuple[object, ...]) -> None:
        # Subclasses may take other arguments.
        if inputs and isinstance(inputs[0], Tensor) and inputs[0].ndim > 1:
            features = inputs[0].detach().flatten(0, -2)
            same = passes.setdefault((module, len(features)), [])
            same.append(features)
            recorded[len(features)] = features if len(same) == 1 else torch.stack(same).mean(0)

    linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
    handles = [module.register_forward_pre_hook(record) for module in linear]
    try:
        yield recorded
    finally:
        for handle in handles:
            handle.remove()
