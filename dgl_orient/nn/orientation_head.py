"""From the vectors of a node to its orientations."""

from __future__ import annotations

from collections.abc import Callable

import torch
from dgl import DGLError
from torch import Tensor, nn

from .._gram_schmidt import GramSchmidt, degenerate_pairs

__all__ = ["OrientationHead"]

# Added to the normalised covariance of the vectors in every direction before dividing by it.
_RIDGE = 0.1
# In units of the machine epsilon: rounding errors of the layers, and after the division by the covariance.
_CANCELLED = 1e2
_NOISE = 1e4


class OrientationHead(nn.Module):
    r"""Orientations from the C vectors of a node, well conditioned (Eqs. 4 to 7).

    .. math::
        (v_1, v_2) = \Bigl(\frac{V V^\top}{t} + \lambda I\Bigr)^{-1} \frac{V}{\sqrt t} (w_1, w_2), \qquad
        t = \mathrm{tr}(V V^\top)

    followed by Gram-Schmidt, for each orientation. The vectors of a node are nearly parallel when they come
    from the same neighbours, and so would be any two combinations of them; rounding would then determine the
    second axis. Dividing by their covariance gives the directions in which they differ as much weight as the
    common one. The ridge :math:`\lambda` bounds the amplification of noise.

    Parameters
    ----------
    in_vectors : int
        Number C of vectors of a node.
    num_orientations : int
        Number F of orientations of a node.
    """

    def __init__(self, in_vectors: int, num_orientations: int) -> None:
        super().__init__()
        if in_vectors < 2:
            raise DGLError(
                f"An orientation needs at least 2 vectors, got {in_vectors}; raise hidden_vectors to 2 or "
                f"more."
            )
        self.num_orientations = num_orientations
        self.vectors = nn.Linear(in_vectors, 2 * num_orientations, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        nn.init.orthogonal_(self.vectors.weight)

    def extra_repr(self) -> str:
        return f"num_orientations={self.num_orientations}"

    def pairs(self, vec: Tensor, size: Tensor | float = 0.0) -> Tensor:
        """The two vectors of each orientation, ``(N, F, 2, 3)``.

        Parameters
        ----------
        vec : Tensor
            The nodes' vectors, ``(N, C, 3)``.
        size : Tensor or float
            The length of vectors where nothing cancels. Vectors that are shorter by as much as rounding count
            as zero.
        """
        # Autocast would round vectors to a few digits, and every axis differently.
        with torch.autocast(vec.device.type, enabled=False):
            return _DivideByCovariance.apply(vec, self.vectors.weight, size)

    def forward(self, vec: Tensor, size: Tensor | float = 0.0) -> Tensor:
        """Orientations of shape ``(N, F, 3, 3)``; arguments as in :meth:`pairs`."""
        return self._apply_to_pairs(GramSchmidt.apply, vec, size)

    def degenerate(self, vec: Tensor, size: Tensor | float = 0.0) -> Tensor:
        """Booleans of shape ``(N, F)``: which orientations are degenerate."""
        return self._apply_to_pairs(degenerate_pairs, vec, size)

    def _apply_to_pairs(self, function: Callable[..., Tensor], vec: Tensor, size: Tensor | float) -> Tensor:
        pairs, noise = self.pairs(vec, size), _NOISE * torch.finfo(vec.dtype).eps
        return function(*pairs.unbind(2), noise, noise)


class _DivideByCovariance(torch.autograd.Function):
    r"""Combinations of the nodes' vectors, divided by the covariance of these.

    With :math:`X = V / \|V\|` and :math:`A = X X^\top + \lambda I` it is :math:`P = A^{-1} X W`. A gradient G
    of the result, divided as well to :math:`Z = A^{-1} G`, gives

    .. math::
        \frac{1}{\|V\|} \bigl(Z W^\top - (Z P^\top + P Z^\top + c I) X\bigr), \qquad
        c = 2 \lambda \langle Z, P \rangle - \langle G, P \rangle

    for V, where c removes the part that only changes the length of V; and :math:`X^\top Z` for W.
    """

    @staticmethod
    def forward(ctx, vec: Tensor, weight: Tensor, size: Tensor | float) -> Tensor:
        rows, slope, inverse = _inverse_covariance(vec, size)
        mapped = (weight @ rows.flatten(1)).view(len(weight), *rows.shape[1:]) * slope  # (2F, 3, N)
        pairs = _times(inverse, mapped).movedim(-1, 0).unflatten(1, (-1, 2))
        ctx.size = size
        ctx.save_for_backward(vec, weight, pairs, rows, slope, inverse)
        return pairs

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        vec, weight, pairs, *saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives these are functions of the vectors
            saved = _inverse_covariance(vec, ctx.size)
        # Autocast may be enabled where the backward pass is called.
        with torch.autocast(gradient.device.type, enabled=False):
            return *_gradients(gradient, weight, pairs, *saved), None


def _gradients(
    gradient: Tensor, weight: Tensor, pairs: Tensor, rows: Tensor, slope: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of :class:`_DivideByCovariance` for the vectors and for the weight."""
    gradient, pairs = (x.flatten(1, 2).movedim(0, -1).contiguous() for x in (gradient, pairs))
    divided = _times(inverse, gradient)  # (2F, 3, N)
    products = (divided.unsqueeze(2) * pairs.unsqueeze(1)).sum(0)  # (3, 3, N)
    symmetric = products + products.transpose(0, 1)
    radial = _RIDGE * symmetric.diagonal().sum(-1) - (gradient * pairs).sum((0, 1))
    symmetric.diagonal().add_(radial.unsqueeze(-1))
    # The square of a short vector's slope may overflow: one of both factors goes to the vector.
    symmetric, unit = symmetric * slope, rows * slope
    divided = (divided * slope).flatten(1)  # (2F, 3N)
    grad_rows = (weight.t() @ divided).view_as(rows)
    for column, row in zip(symmetric.unbind(1), unit.split(1, 1)):
        grad_rows.addcmul_(column, row, value=-1)
    return grad_rows.movedim(-1, 0), divided @ rows.flatten(1).t()


def _inverse_covariance(vec: Tensor, size: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
    r"""Vectors as rows ``(C, 3, N)``, their :math:`1 / \|V\|` ``(N,)`` and the inverse of A ``(3, 3, N)``.

    Vectors that count as zero are divided by infinity. The ridge keeps A far from singular, and for 3 x 3
    matrices cofactors are accurate enough and much faster than a factorisation.
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
