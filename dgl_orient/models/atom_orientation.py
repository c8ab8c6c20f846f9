"""Orientations of atoms that fade smoothly where geometry leaves an axis degenerate."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .molecules import AtomEdges
from .particles import PairLinear, linear_padded

__all__ = ["AtomOrientation", "fading_axes"]

#: Vectors of this length give axes of length 0.71; longer ones give longer axes, up to 1.
_SOFTENING = 0.1


def fading_axes(v1: Tensor, v2: Tensor, softening: float = _SOFTENING) -> Tensor:
    r"""Gram-Schmidt of vectors, with axes that become short where they are degenerate.

    .. math::
        a_1 = \frac{v_1}{\sqrt{\|v_1\|^2 + \epsilon^2}}, \qquad
        w = a_1 \times (v_2 \times a_1), \qquad
        a_2 = \frac{w}{\sqrt{\|w\|^2 + \epsilon^2}}, \qquad
        a_3 = a_1 \times a_2

    These are the axes of the orientation :math:`O = [u_1, u_2, u_3]` times lengths :math:`s_1`, :math:`s_2`
    and :math:`s_1 s_2` below 1, which are near 1 for vectors that are well apart. Where :math:`v_1` vanishes
    or both become collinear an orientation jumps from one side to the other; these axes pass through zero
    and are smooth. There is no arbitrary axis, so they are equivariant for all vectors.

    Parameters
    ----------
    v1, v2 : Tensor
        Vectors ``(..., 3)``.
    softening : float
        The length :math:`\epsilon`.

    Returns
    -------
    Tensor
        Matrices ``(..., 3, 3)``, axes in columns.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.models.atom_orientation import fading_axes
    >>> v1, v2 = torch.tensor([[3.0, 0, 0], [3.0, 0, 0]]), torch.tensor([[0, 4.0, 0], [5.0, 0, 0]])
    >>> fading_axes(v1, v2).norm(dim=1)
    tensor([[0.9994, 0.9997, 0.9991],
            [0.9994, 0.0000, 0.0000]])
    """
    first = v1 * _soft_inverse(v1, softening)
    rest = v2 * (first * first).sum(-1, keepdim=True) - first * (first * v2).sum(-1, keepdim=True)
    second = rest * _soft_inverse(rest, softening)
    return torch.stack([first, second, torch.linalg.cross(first, second, dim=-1)], -1)


def _soft_inverse(vec: Tensor, softening: float) -> Tensor:
    return ((vec * vec).sum(-1, keepdim=True) + softening**2).rsqrt()


class AtomOrientation(nn.Module):
    r"""Learned orientations of atoms from the directions of their neighbours.

    .. math::
        v_{ik} = \sum_j f(d_{ij})\, \mathrm{MLP}_k(h_i, h_j, e(d_{ij}))\, \hat r_{ij}, \qquad
        O_{if} = \mathrm{fading\_axes}(v_{i,2f}, v_{i,2f+1})

    with the features h of the elements, the radial basis functions e and the envelope f.

    Parameters
    ----------
    in_feats : int
        Number of features of an atom.
    num_radial : int
        Number of radial basis functions.
    num_orientations : int
        Number F of orientations of an atom.
    """

    def __init__(self, in_feats: int, num_radial: int, num_orientations: int) -> None:
        super().__init__()
        self.num_orientations = num_orientations
        self.pair = PairLinear(in_feats, in_feats, num_radial, in_feats)
        # Initially the vectors of atoms in molecules are about 1 long.
        self.weights = nn.Parameter(
            torch.empty(2 * num_orientations, in_feats).normal_(std=2 * in_feats**-0.5)
        )

    def forward(self, edges: AtomEdges, feat: Tensor) -> Tensor:
        """Axes ``(N, F, 3, 3)`` in columns, from features ``(N, in_feats)``."""
        # Autocast would round axes to a few digits, and every axis differently.
        with torch.autocast(feat.device.type, enabled=False):
            hidden = nn.functional.silu(self.pair(edges.ops, feat, feat, edges.radial))
            weights = linear_padded(hidden, self.weights) * edges.envelope  # (E, 2F)
            vectors = edges.ops.sum_outer(weights.unsqueeze(1), edges.unit.unsqueeze(1))  # (N, 2F, 3)
            pairs = vectors.unflatten(1, (self.num_orientations, 2))
            return fading_axes(pairs[:, :, 0], pairs[:, :, 1])
