"""Rotation-invariant numbers of vectors, safe where vectors are 0."""

from __future__ import annotations

import torch
from torch import Tensor

from ..geometry import norm

__all__ = ["cosine", "signed_angle", "unit"]


def unit(vec: Tensor) -> Tensor:
    """Vectors ``(..., D)`` of length 1; 0 where they are 0.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.models.invariants import unit
    >>> unit(torch.tensor([[0.0, 3.0, 4.0], [0.0, 0.0, 0.0]]))
    tensor([[0.0000, 0.6000, 0.8000],
            [0.0000, 0.0000, 0.0000]])
    """
    length = norm(vec, keepdim=True)
    positive = length > 2 * torch.finfo(vec.dtype).tiny ** 0.5
    return torch.where(positive, vec / torch.where(positive, length, 1.0), 0.0)


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """The cosines ``(E, 1)`` between vectors ``(E, 3)``; 0 where one of them is 0."""
    return (unit(a) * unit(b)).sum(1, keepdim=True)


def signed_angle(a: Tensor, b: Tensor, axis: Tensor) -> Tensor:
    """The angles ``(E, 1)`` by which vectors a have to be rotated about axes of length 1 to the half-plane of
    b, all ``(E, 3)``, from -pi to pi; 0 where one of them lies on the axis.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.models.invariants import signed_angle
    >>> x, y, z = torch.eye(3).unsqueeze(1)
    >>> signed_angle(x, y + 5 * z, z), signed_angle(y, x, z)
    (tensor([[1.5708]]), tensor([[-1.5708]]))
    """
    a, b = (vec - (vec * axis).sum(1, keepdim=True) * axis for vec in (a, b))
    sine = (torch.linalg.cross(a, b) * axis).sum(1, keepdim=True)
    return torch.atan2(sine, (a * b).sum(1, keepdim=True))
