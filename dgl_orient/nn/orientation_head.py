"""From a node's vectors to frames."""

from __future__ import annotations

from collections.abc import Callable

import torch
from dgl import DGLError
from torch import Tensor, nn

from ..geometry import degenerate, frames_from_vectors

__all__ = ["OrientationHead"]

# How much of the vectors' spread is added in every direction before dividing by it.
_RIDGE = 0.1
# In units of the type's rounding: what the layers, and then the division by the spread, make of it.
_CANCELLED = 1e2
_NOISE = 1e4


class OrientationHead(nn.Module):
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
        if in_vectors < 2:
            raise DGLError(
                f"A frame is made of at least 2 vectors, got {in_vectors}; raise hidden_vectors to 2 or more."
            )
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
            return _Divided.apply(vec, self.vectors.weight, size)

    def forward(self, vec: Tensor, size: Tensor | float = 0.0) -> Tensor:
        """Frames of shape ``(N, F, 3, 3)``; arguments as in :meth:`pairs`."""
        return self._frames(frames_from_vectors, vec, size)

    def degenerate(self, vec: Tensor, size: Tensor | float = 0.0) -> Tensor:
        """Booleans of shape ``(N, F)``: which frames have axes that the vectors do not determine."""
        return self._frames(degenerate, vec, size)

    def _frames(self, function: Callable, vec: Tensor, size: Tensor | float) -> Tensor:
        pairs, noise = self.pairs(vec, size), _NOISE * torch.finfo(vec.dtype).eps
        return function(*pairs.unbind(2), atol=noise, rtol=noise)


class _Divided(torch.autograd.Function):
    r"""Combinations of the nodes' vectors, divided by the spread of these.

    With :math:`X = V / \|V\|` and :math:`A = X X^\top + \lambda I` it is :math:`P = A^{-1} X W`. A gradient G
    of the result, divided as well to :math:`Z = A^{-1} G`, gives

    .. math::
        \frac{1}{\|V\|} \bigl(Z W^\top - (Z P^\top + P Z^\top + c I) X\bigr), \qquad
        c = 2 \lambda \langle Z, P \rangle - \langle G, P \rangle

    for V, where c takes out what would only change the length of V; and :math:`X^\top Z` for W.
    """

    @staticmethod
    def forward(ctx, vec: Tensor, weight: Tensor, size: Tensor | float) -> Tensor:
        rows, slope, inverse = _inverse_spread(vec, size)
        mapped = (weight @ rows.flatten(1)).view(len(weight), *rows.shape[1:]) * slope  # (2F, 3, N)
        pairs = _times(inverse, mapped).movedim(-1, 0).unflatten(1, (-1, 2))
        ctx.size = size
        ctx.save_for_backward(vec, weight, pairs, rows, slope, inverse)
        return pairs

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        vec, weight, pairs, *found = ctx.saved_tensors
        if torch.is_grad_enabled():  # second derivatives see what was found as functions of the vectors
            found = _inverse_spread(vec, ctx.size)
        # Autocast is that of where the gradient is asked for, which the forward pass cannot keep away.
        with torch.autocast(gradient.device.type, enabled=False):
            return *_divided_gradients(gradient, weight, pairs, *found), None


def _divided_gradients(
    gradient: Tensor, weight: Tensor, pairs: Tensor, rows: Tensor, slope: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of :class:`_Divided` for the vectors and for the weight."""
    gradient, pairs = (x.flatten(1, 2).movedim(0, -1).contiguous() for x in (gradient, pairs))
    divided = _times(inverse, gradient)  # (2F, 3, N)
    products = (divided.unsqueeze(2) * pairs.unsqueeze(1)).sum(0)  # (3, 3, N)
    turn = products + products.transpose(0, 1)
    radial = _RIDGE * turn.diagonal().sum(-1) - (gradient * pairs).sum((0, 1))
    turn.diagonal().add_(radial.unsqueeze(-1))
    # The square of a short vector's slope may overflow: one of both goes to the vector.
    turn, unit = turn * slope, rows * slope
    divided = (divided * slope).flatten(1)  # (2F, 3N)
    grad_rows = (weight.t() @ divided).view_as(rows)
    for column, row in zip(turn.unbind(1), unit.split(1, 1)):
        grad_rows.addcmul_(column, row, value=-1)
    return grad_rows.movedim(-1, 0), divided @ rows.flatten(1).t()


def _inverse_spread(vec: Tensor, size: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
    r"""Vectors as rows ``(C, 3, N)``, their :math:`1 / \|V\|` ``(N,)`` and the inverse of A ``(3, 3, N)``.

    Vectors that count as zero are divided by infinity. The ridge keeps A far from singular, and for so small
    matrices cofactors are both exact enough and much faster than a factorisation of each.
    """
    # Long rows are several times faster than many short vectors.
    rows = vec.movedim(0, -1).contiguous()
    squares = (rows * rows).sum(0)  # (3, N): xx, yy, zz
    mixed = (rows * rows.roll(-1, 1)).sum(0)  # (3, N): xy, yz, zx
    total, info = squares.sum(0), torch.finfo(vec.dtype)
    present = total > (_CANCELLED * info.eps * size) ** 2 + info.tiny
    total = torch.where(present, total, torch.inf)
    xx, yy, zz = (squares / total + _RIDGE).unbind()
    xy, yz, zx = (mixed / total).unbind()
    # The rows of A and the first two again: each row's cofactors are the product of the two that follow it.
    cyclic = torch.stack([xx, xy, zx, xy, yy, yz, zx, yz, zz, xx, xy, zx, xy, yy, yz]).unflatten(0, (5, 3))
    cofactors = torch.linalg.cross(cyclic[1:4], cyclic[2:], dim=1)
    determinant = (cyclic[0] * cofactors[0]).sum(0)
    return rows, total.rsqrt(), cofactors / determinant


def _times(matrix: Tensor, vec: Tensor) -> Tensor:
    """The products of matrices ``(3, 3, N)`` and vectors ``(M, 3, N)``."""
    return (matrix * vec.unsqueeze(1)).sum(2)
