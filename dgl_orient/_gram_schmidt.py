"""Gram-Schmidt of pairs of vectors, with a gradient in closed form: autograd of many small steps is slow."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["GramSchmidt", "degenerate_pairs", "minimum_sine"]


class GramSchmidt(torch.autograd.Function):
    r"""Gram-Schmidt with fixed axes for missing ones, ``(..., 3)`` and ``(..., 3)`` to ``(..., 3, 3)``.

    A change of the vectors rotates the frame. With :math:`a = \langle v_2, u_1 \rangle`,
    :math:`l = \|v_2 - a u_1\|` and the gradients :math:`g_i` of the axes, the torque about the axes is

    .. math::
        t_1 = \langle g_2, u_3 \rangle - \langle g_3, u_2 \rangle, \quad
        t_2 = \langle g_3, u_1 \rangle - \langle g_1, u_3 \rangle, \quad
        t_3 = \langle g_1, u_2 \rangle - \langle g_2, u_1 \rangle

    and the gradients of the vectors are

    .. math::
        \frac{1}{\|v_1\|} \bigl(t_3 u_2 - (t_2 + t_1 a / l) u_3\bigr), \qquad \frac{t_1}{l} u_3.
    """

    @staticmethod
    def forward(ctx, v1: Tensor, v2: Tensor, atol: float, rtol: float) -> Tensor:
        axes, *slopes = _orthonormal(v1, v2, atol, rtol)
        ctx.tolerances = atol, rtol
        ctx.save_for_backward(v1, v2, axes, *slopes)
        return axes.movedim((0, 1), (-1, -2)).contiguous()

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        v1, v2, *saved = ctx.saved_tensors
        if torch.is_grad_enabled():  # for second derivatives, axes and slopes are functions of the vectors
            saved = _orthonormal(v1, v2, *ctx.tolerances)
        u, slope1, slope2, tilt = saved
        g = gradient.movedim((-1, -2), (0, 1)).contiguous()
        products = (g.unsqueeze(1) * u).sum(2)  # (3, 3, ...)
        (_, t3, _), (_, _, t1), (t2, _, _) = products - products.transpose(0, 1)
        grad1 = torch.addcmul(u[1] * (t3 * slope1), u[2], torch.addcmul(t2, t1, tilt) * slope1, value=-1)
        grad2 = u[2] * (t1 * slope2)
        return grad1.movedim(0, -1), grad2.movedim(0, -1), None, None


def _orthonormal(v1: Tensor, v2: Tensor, atol: float, rtol: float) -> tuple[Tensor, ...]:
    r"""The axes ``(3, 3, ...)``, and :math:`1 / \|v_1\|`, :math:`1 / l` and :math:`a / l` for the gradient.

    The first two are 0 where the vectors were replaced.
    """
    (u1, second), slope, missing = _normalized(v1, v2, atol)
    along, rest, sine = _reject(second, u1)
    # On a GPU replacing nothing is cheaper than waiting to learn whether there is something to replace.
    if v1.is_cuda or (missing.any(0) | (sine <= rtol)).any():
        u1 = torch.where(missing[0], _unit_axis(u1, 0), u1)
        no_second = missing[1] | (_reject(second, u1)[2] <= rtol)
        second = torch.where(no_second, _unit_axis(u1, u1.abs().min(0).indices), second)
        along, rest, sine = _reject(second, u1)
        slope = slope.masked_fill(torch.stack([missing[0], no_second]), 0.0)
    # The rejection of a nearly parallel vector is not quite perpendicular: a second one is enough.
    _, rest, length = _reject(rest / sine, u1)
    u2 = rest / length
    axes = torch.stack([u1, u2, torch.linalg.cross(u1, u2, dim=0)])
    return axes, slope[0], slope[1] / sine, along / sine


def degenerate_pairs(v1: Tensor, v2: Tensor, atol: float, rtol: float) -> Tensor:
    """Booleans ``(...)``: where a vector counts as zero or both are collinear."""
    (first, second), _, missing = _normalized(v1.detach(), v2.detach(), atol)
    return missing.any(0) | (_reject(second, first)[2] <= rtol)


def minimum_sine(dtype: torch.dtype, rtol: float | None) -> float:
    """The sine up to which unit vectors count as collinear: at least what rounding leaves of 0."""
    return max(32 * torch.finfo(dtype).eps, rtol or 0.0)


def _normalized(v1: Tensor, v2: Tensor, atol: float) -> tuple[Tensor, Tensor, Tensor]:
    """Two vectors divided by their lengths, ``(2, 3, ...)``; 1 / length; and whether they count as zero.

    A frame does not depend on the lengths, so vectors are divided by them before any product can overflow or
    underflow. For the shortest vectors 1 / length has a finite bound.
    """
    # Long rows, one for each coordinate, are several times faster than many short vectors.
    pair = torch.stack([v1.movedim(-1, 0), v2.movedim(-1, 0)])
    # Dividing by the largest component first keeps the squares in range, down to denormal vectors.
    largest = pair.detach().abs().amax(1)
    pair = pair / (largest + (largest == 0)).unsqueeze(1)
    relative = (pair * pair).sum(1).clamp_min(1.0).sqrt()  # less than 1 only for zero vectors
    length = relative * largest
    missing = length <= max(atol, 0.0)
    info = torch.finfo(pair.dtype)
    slope = length.clamp(info.tiny * 1e18, info.max).reciprocal()
    return pair / relative.unsqueeze(1), slope, missing


def _reject(vec: Tensor, unit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The components of vectors along unit vectors, the perpendicular rest, and its length."""
    along = (vec * unit).sum(0)
    rest = torch.addcmul(vec, along, unit, value=-1)
    return along, rest, (rest * rest).sum(0).sqrt()


def _unit_axis(like: Tensor, index: Tensor | int) -> Tensor:
    """The coordinate axes of this index as vectors ``(3, ...)``."""
    numbers = torch.arange(3, device=like.device).view(3, *[1] * (like.dim() - 1))
    return (numbers == index).to(like.dtype)
