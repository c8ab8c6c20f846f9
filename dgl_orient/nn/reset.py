"""Reinitialising the modules of a layer."""

from __future__ import annotations

from torch import nn

__all__ = ["reset_children"]


def reset_children(module: nn.Module) -> None:
    """Reinitialise the children that have ``reset_parameters``, and the children of the others.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.reset import reset_children
    >>> mlp = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU())
    >>> before = mlp[0].weight.clone()
    >>> reset_children(mlp)
    >>> torch.equal(mlp[0].weight, before)
    False
    """
    for child in module.children():
        if hasattr(child, "reset_parameters"):
            child.reset_parameters()
        else:
            reset_children(child)
