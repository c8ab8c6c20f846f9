r"""Rotations, orientations and centroids: pure tensor functions, without graphs and parameters.

An orientation is a rotation matrix whose *columns* are the axes, in a tensor of shape ``(..., 3, 3)``.
Vectors are rows, in a tensor of shape ``(..., 3)``.

All products with orientations are written as multiply-and-sum and not as matrix products, so that neither
autocast nor a reduced matmul precision (TF32) can round them.
"""

from __future__ import annotations

import math

import torch
from dgl import DGLError
from torch import Tensor

from ._gram_schmidt import GramSchmidt, degenerate_pairs, minimum_sine
from ._segment import segment_mean
from ._validation import check_integer

__all__ = [
    "degenerate",
    "frames_from_vectors",
    "norm",
    "random_rotation",
    "subtract_centroid",
    "to_global",
    "to_local",
]


def frames_from_vectors(v1: Tensor, v2: Tensor, atol: float = 0.0, rtol: float | None = None) -> Tensor:
    r"""Rotation matrices from pairs of vectors by Gram-Schmidt, Eqs. 4 to 7 of the paper.

    .. math::
        u_1 = \frac{v_1}{\|v_1\|}, \quad
        u_2' = v_2 - \langle v_2, u_1 \rangle u_1, \quad
        u_2 = \frac{u_2'}{\|u_2'\|}, \quad
        O = [u_1, u_2, u_1 \times u_2]

    The result is a proper rotation for *every* finite input. Where the vectors are degenerate (see
    :func:`degenerate`) fixed axes replace the missing ones: the x axis replaces a zero first vector, the
    coordinate axis least aligned with the first replaces a zero or collinear second vector. Such a frame is
    deterministic but not equivariant; nothing could be. No gradient flows into replaced vectors, and
    gradients are finite everywhere.

    Parameters
    ----------
    v1, v2 : Tensor
        The vectors, of shape ``(..., 3)``.
    atol : float
        Vectors no longer than this count as zero.
    rtol : float, optional
        Vectors count as collinear if the sine of the angle between them is no larger than this. The default
        and minimum is 32 times the machine epsilon of the dtype.

    Returns
    -------
    Tensor
        The frames, of shape ``(..., 3, 3)``, axes in columns.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.geometry import frames_from_vectors
    >>> frames_from_vectors(torch.tensor([0.0, 2.0, 0.0]), torch.tensor([3.0, 1.0, 0.0]))
    tensor([[ 0.,  1.,  0.],
            [ 1.,  0.,  0.],
            [ 0.,  0., -1.]])
    """
    v1, v2 = _vector_pair(v1, v2)
    return GramSchmidt.apply(v1, v2, atol, minimum_sine(v1.dtype, rtol))


def degenerate(v1: Tensor, v2: Tensor, atol: float = 0.0, rtol: float | None = None) -> Tensor:
    """Which pairs of vectors do not determine all axes of a frame.

    True where a vector is zero, or both are collinear up to rounding: there :func:`frames_from_vectors` uses
    fixed axes. ``degenerate(v1, v2).sum()`` counts them.

    Parameters
    ----------
    v1, v2 : Tensor
        The vectors, of shape ``(..., 3)``.
    atol : float
        Vectors no longer than this count as zero.
    rtol : float, optional
        Vectors count as collinear if the sine of the angle between them is no larger than this. The default
        and minimum is 32 times the machine epsilon of the dtype.

    Returns
    -------
    Tensor
        Booleans of shape ``(...)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.geometry import degenerate
    >>> v1 = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> v2 = torch.tensor([[1.0, 1.0, 0.0], [-3.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> degenerate(v1, v2)
    tensor([False,  True,  True])
    """
    v1, v2 = _vector_pair(v1, v2)
    return degenerate_pairs(v1, v2, atol, minimum_sine(v1.dtype, rtol))


def to_local(orient: Tensor, vec: Tensor) -> Tensor:
    r"""Vectors in the coordinates of orientations, :math:`O^\top v`. Invariant if both are rotated.

    Parameters
    ----------
    orient : Tensor
        Orientations of shape ``(..., 3, 3)``.
    vec : Tensor
        Vectors of shape ``(..., 3)``; the leading dimensions broadcast. For F orientations and one vector per
        point that is ``(N, F, 3, 3)`` and ``(N, 1, 3)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.geometry import frames_from_vectors, to_local
    >>> orient = frames_from_vectors(torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 0.0, 1.0]))
    >>> to_local(orient, torch.tensor([5.0, 6.0, 7.0]))
    tensor([6., 7., 5.])
    """
    _check_orientations(orient, vec)
    return (orient * vec.unsqueeze(-1)).sum(-2)


def to_global(orient: Tensor, vec: Tensor) -> Tensor:
    r"""Vectors from the coordinates of orientations back to space, :math:`O v` (Eq. 17): the inverse of
    :func:`to_local`.

    Parameters
    ----------
    orient : Tensor
        Orientations of shape ``(..., 3, 3)``.
    vec : Tensor
        Vectors of shape ``(..., 3)``; the leading dimensions broadcast. For F orientations and one vector per
        point that is ``(N, F, 3, 3)`` and ``(N, 1, 3)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.geometry import frames_from_vectors, to_global
    >>> orient = frames_from_vectors(torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 0.0, 1.0]))
    >>> to_global(orient, torch.tensor([6.0, 7.0, 5.0]))
    tensor([5., 6., 7.])
    """
    _check_orientations(orient, vec)
    return (orient * vec.unsqueeze(-2)).sum(-1)


def random_rotation(
    n: int | None = None,
    dtype: torch.dtype | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Rotations sampled uniformly from SO(3).

    Parameters
    ----------
    n : int, optional
        Number of rotations; None gives a single matrix.
    dtype : torch.dtype, optional
        The dtype; PyTorch's default by default.
    generator : torch.Generator, optional
        Random number generator; its device is the result's device.

    Returns
    -------
    Tensor
        Rotations of shape ``(n, 3, 3)``, or ``(3, 3)`` where n is None.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.geometry import random_rotation
    >>> rotations = random_rotation(4, torch.float64, torch.Generator().manual_seed(0))
    >>> rotations.shape, bool((torch.linalg.det(rotations) - 1 < 1e-12).all())
    (torch.Size([4, 3, 3]), True)
    """
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        raise DGLError(f"Expected a floating-point dtype for rotations, got {dtype}.")
    number = None if n is None else check_integer("the number of rotations", n, 0)
    device = None if generator is None else generator.device
    # Gram-Schmidt of two independent normal vectors has no preferred direction, hence is uniform.
    pair = torch.randn(2, number or 1, 3, dtype=torch.float64, device=device, generator=generator)
    if number == 0:
        pair = pair[:, :0]
    rotations = frames_from_vectors(*pair).to(dtype)
    return rotations[0] if n is None else rotations


def norm(vec: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """The Euclidean norm, with gradient 0 and not NaN where the vector is 0.

    It is made for speed: squares below the smallest normal number count as that number, so the norm of a zero
    vector is 1e-19 in float32 and 1e-154 in float64, and vectors longer than 1e19 or 1e154 overflow.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.geometry import norm
    >>> vec = torch.tensor([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    >>> norm(vec).sum().backward()
    >>> vec.grad
    tensor([[0.6000, 0.8000, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    if not vec.shape[dim]:
        length = vec.sum(dim)
    elif vec.requires_grad and torch.is_grad_enabled():
        length = _Norm.apply(vec, dim)
    else:  # the overhead of an autograd function is larger than the norms of a small point cloud
        length = _Norm.forward(vec, dim)
    return length.unsqueeze(dim) if keepdim else length


class _Norm(torch.autograd.Function):
    """The norm along a dimension, without a tensor of squares in the forward and backward pass."""

    generate_vmap_rule = True

    @staticmethod
    def forward(vec: Tensor, dim: int) -> Tensor:
        squares = vec.new_zeros(())
        for part in vec.unbind(dim):
            squares = torch.addcmul(squares, part, part)
        return squares.clamp_min_(torch.finfo(vec.dtype).tiny).sqrt_()

    @staticmethod
    def setup_context(ctx, inputs: tuple[Tensor, int], length: Tensor) -> None:
        vec, ctx.dim = inputs
        ctx.save_for_backward(vec, length)
        ctx.save_for_forward(vec, length)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        vec, length = ctx.saved_tensors
        slope = torch.where(_Norm._is_positive(length), gradient, 0.0) / length
        return vec * slope.unsqueeze(ctx.dim), None

    @staticmethod
    def jvp(ctx, tangent: Tensor, _: None) -> Tensor:
        vec, length = ctx.saved_tensors
        return torch.where(_Norm._is_positive(length), (vec * tangent).sum(ctx.dim), 0.0) / length

    @staticmethod
    def _is_positive(length: Tensor) -> Tensor:
        return length > 1.5 * torch.finfo(length.dtype).tiny ** 0.5


def subtract_centroid(pos: Tensor, batch_num_nodes: Tensor) -> Tensor:
    """Coordinates relative to the centroid of each point cloud, exact for point clouds far from the origin.

    Parameters
    ----------
    pos : Tensor
        Coordinates ``(N, D)``.
    batch_num_nodes : Tensor
        Number of points of each point cloud, ``(B,)``, on the CPU.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.geometry import subtract_centroid
    >>> subtract_centroid(torch.tensor([[1.0, 0, 0], [3.0, 0, 0], [7.0, 7.0, 7.0]]), torch.tensor([2, 1]))
    tensor([[-1.,  0.,  0.],
            [ 1.,  0.,  0.],
            [ 0.,  0.,  0.]])
    """
    # Relative to its first point the coordinates of a point cloud are small and differences exact; the
    # first point cancels.
    if len(batch_num_nodes) == 1 and len(pos):
        pos = pos - pos.detach()[0]
        return pos - pos.mean(0)
    first = (batch_num_nodes.cumsum(0) - batch_num_nodes).repeat_interleave(batch_num_nodes).to(pos.device)
    pos = pos - pos.detach()[first]
    batch_num_nodes = batch_num_nodes.to(pos.device)
    return pos - segment_mean(batch_num_nodes, pos).repeat_interleave(batch_num_nodes, 0)


def _check_orientations(orient: Tensor, vec: Tensor) -> None:
    """Raise unless the shapes fit in exactly one way."""
    frames, vectors = orient.shape[:-2], vec.shape[:-1]
    fit = len(frames) == len(vectors) or not frames or not vectors
    if (
        orient.shape[-2:] != (3, 3)
        or vec.shape[-1:] != (3,)
        or not fit
        or not _broadcastable(frames, vectors)
    ):
        raise DGLError(
            f"Expected orientations (..., 3, 3) and vectors (..., 3) with the same leading dimensions, got "
            f"{tuple(orient.shape)} and {tuple(vec.shape)}; for F orientations and one vector per point use "
            f"vec.unsqueeze(1)."
        )


def _vector_pair(v1: Tensor, v2: Tensor) -> tuple[Tensor, Tensor]:
    """Both vectors in one shape, checked."""
    shapes = [tuple(v.shape) if isinstance(v, Tensor) else type(v).__name__ for v in (v1, v2)]
    if not all(shape[-1:] == (3,) for shape in shapes) or not _broadcastable(*shapes):
        raise DGLError(
            f"Expected two tensors of vectors of the same shape (..., 3), got {shapes[0]} and {shapes[1]}."
        )
    if v1.dtype != v2.dtype or v1.dtype not in (torch.float32, torch.float64):
        raise DGLError(
            f"Expected two float32 or two float64 tensors of vectors, got {v1.dtype} and {v2.dtype}."
        )
    # A sum is finite only if all its terms are, unless it overflows: then the slow check decides.
    with torch.no_grad():
        if not math.isfinite(v1.sum() + v2.sum()) and not all(torch.isfinite(v).all() for v in (v1, v2)):
            raise DGLError("The vectors of frames must be finite, but some are NaN or infinite.")
    return (v1, v2) if v1.shape == v2.shape else torch.broadcast_tensors(v1, v2)


def _broadcastable(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))
