"""From a node's vectors to frames."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..geometry import frames_from_vectors, undetermined

__all__ = ["FrameHead"]

# How much of the vectors' spread is added in every direction before dividing by it.
_RIDGE = 0.1
# In units of the type's rounding: what the layers, and then the division by the spread, make of it.
_CANCELLED = 1e2
_NOISE = 1e4


class FrameHead(nn.Module):
    r"""Frames from a node's C vectors, well conditioned.

    .. math::
        (v_1, v_2) = \Bigl(\frac{V V^\top}{t} + \lambda I\Bigr)^{-1} \frac{V}{\sqrt t} (w_1, w_2), \qquad
        t = \mathrm{tr}(V V^\top)

    followed by Gram-Schmidt, for each orientation. A node's vectors are nearly parallel when they come from
    the same neighbours, and so would be any two combinations of them, leaving the second axis to rounding.
    Dividing by their spread lets the directions in which they differ count as much as the one they
    share. The ridge :math:`\lambda` bounds how far noise is raised.

    Parameters
    ----------
    in_vectors : int
        Number C of vectors that a node has.
    num_orientations : int
        Number F of frames to make of them.
    """

    def __init__(self, in_vectors: int, num_orientations: int) -> None:
        super().__init__()
        self.num_orientations = num_orientations
        self.vectors = nn.Linear(in_vectors, 2 * num_orientations, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        nn.init.orthogonal_(self.vectors.weight)

    def pairs(self, vec: Tensor, size: Tensor | float = 0.0) -> Tensor:
        """The vectors of each frame, ``(N, F, 2, 3)``.

        Parameters
        ----------
        vec : Tensor
            The nodes' vectors, ``(N, C, 3)``.
        size : Tensor or float
            How long vectors are where nothing cancels. Those that are short against it by as much as
            rounding leaves count as zero.
        """
        # Autocast would round vectors to a few digits, and every axis differently.
        with torch.autocast(vec.device.type, enabled=False):
            spread = _gram(vec)  # (N, 3, 3)
            total = spread.diagonal(dim1=1, dim2=2).sum(1).view(-1, 1, 1)  # (N, 1, 1)
            info = torch.finfo(vec.dtype)
            present = (total > (_CANCELLED * info.eps * size) ** 2) & (total > info.tiny)
            total = torch.where(present, total, 1.0)
            spread = spread / total + _RIDGE * torch.eye(3, dtype=vec.dtype, device=vec.device)
            mapped = self.vectors((vec * (present / total.sqrt())).transpose(1, 2)).transpose(1, 2)
            return _solve(spread, mapped).unflatten(1, (self.num_orientations, 2))

    def forward(self, vec: Tensor, size: Tensor | float = 0.0) -> Tensor:
        """Frames of shape ``(N, F, 3, 3)``; arguments as in :meth:`pairs`."""
        return self._frames(frames_from_vectors, vec, size)

    def undetermined(self, vec: Tensor, size: Tensor | float = 0.0) -> Tensor:
        """Booleans of shape ``(N, F)``: which frames have axes that the vectors do not determine."""
        return self._frames(undetermined, vec, size)

    def _frames(self, function: Callable, vec: Tensor, size: Tensor | float) -> Tensor:
        pairs, noise = self.pairs(vec, size), _NOISE * torch.finfo(vec.dtype).eps
        return function(pairs[:, :, 0], pairs[:, :, 1], atol=noise, rtol=noise)


def _gram(vec: Tensor) -> Tensor:
    """The sums of the vectors' outer products, ``(N, 3, 3)``, without a matrix for every vector."""
    x, y, z = vec.unbind(-1)
    xx, xy, xz, yy, yz, zz = ((a * b).sum(1) for a, b in ((x, x), (x, y), (x, z), (y, y), (y, z), (z, z)))
    return torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], 1).unflatten(1, (3, 3))


def _solve(matrix: Tensor, vec: Tensor) -> Tensor:
    """Symmetric 3 x 3 systems with rows ``(N, M, 3)`` on the right, by cofactors.

    The ridge keeps the matrices far from singular, and for so small ones this is both exact enough and much
    faster than a factorisation of each.
    """
    a, b, c = matrix.unbind(1)
    cross = torch.linalg.cross
    cofactors = torch.stack([cross(b, c), cross(c, a), cross(a, b)], 1)  # (N, 3, 3)
    determinant = (a * cofactors[:, 0]).sum(-1).view(-1, 1, 1)
    return (cofactors.unsqueeze(1) * vec.unsqueeze(-1)).sum(-2) / determinant
