"""Layers of tensor field networks: features of several degrees, which rotate by Wigner matrices.

Features are a map from degree l to tensors ``(N, C, 2l + 1)``: scalars have degree 0, vectors degree 1. The
tensor algebra is that of `e3nn <https://e3nn.org>`__, whose vectors of degree 1 have the order x, y, z.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType

import torch
from dgl import DGLError
from torch import Tensor, nn

from .._extras import to_install
from ..geometry import norm
from ..nn.edge_ops import EdgeOps
from .invariants import unit

__all__ = [
    "Channels",
    "NormActivation",
    "SelfInteraction",
    "TensorFieldMessages",
    "kernel_basis",
    "tensor_algebra",
]

#: Number of channels of each degree.
Channels = Mapping[int, int]

# Sizes of the two hidden layers of a radial MLP.
_RADIAL_FEATS = 32


def kernel_basis(vec: Tensor, max_degree: int) -> dict[tuple[int, int], Tensor]:
    r"""The equivariant kernels :math:`\sum_m Q^J_m Y_{Jm}(r / \|r\|)` from degree l to degree k.

    Parameters
    ----------
    vec : Tensor
        The vectors r of the edges, ``(E, 3)``; where one is 0, only J = 0 is not 0.
    max_degree : int
        The largest degree.

    Returns
    -------
    dict
        (l, k) to ``(E, 2l + 1, F (2k + 1))``: the F = 2 min(l, k) + 1 kernels of :math:`J = |l - k|, \ldots,
        l + k` beside each other.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.models.tensor_field import kernel_basis
    >>> {key: tuple(value.shape) for key, value in kernel_basis(torch.rand(5, 3), 1).items()}
    {(0, 0): (5, 1, 1), (0, 1): (5, 1, 3), (1, 0): (5, 3, 1), (1, 1): (5, 3, 9)}
    """
    degrees = list(range(2 * max_degree + 1))
    values = tensor_algebra().spherical_harmonics(
        degrees, unit(vec), normalize=False, normalization="integral"
    )
    harmonics = values.split([2 * degree + 1 for degree in degrees], 1)
    basis = {}
    for source in range(max_degree + 1):
        for target in range(max_degree + 1):
            kernels = [
                torch.tensordot(harmonics[j], _coupling(source, target, j).to(vec), ([1], [2]))
                for j in range(abs(source - target), source + target + 1)
            ]
            basis[source, target] = torch.cat(kernels, 2)  # (E, 2l + 1, F (2k + 1))
    return basis


@cache
def _coupling(source: int, target: int, j: int) -> Tensor:
    """The 3j symbols, ``(2l + 1, 2k + 1, 2J + 1)``, of double precision."""
    return tensor_algebra().wigner_3j(source, target, j, dtype=torch.float64)


def tensor_algebra() -> ModuleType:
    """The module of e3nn, which is an extra."""
    try:
        from e3nn import o3
    except ImportError as error:
        raise DGLError(f"Tensor field networks need e3nn; {to_install('e3nn')}.") from error
    return o3


class RadialMLP(nn.Sequential):
    """Weights of kernels as a function of distances ``(E, 1)``: an MLP with layer norms.

    Parameters
    ----------
    out_feats : int
        Number of weights.
    """

    def __init__(self, out_feats: int) -> None:
        size = _RADIAL_FEATS
        super().__init__(
            *(nn.Linear(1, size), nn.LayerNorm(size), nn.ReLU()),
            *(nn.Linear(size, size), nn.LayerNorm(size), nn.ReLU()),
            nn.Linear(size, out_feats),
        )
        for layer in self:
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_uniform_(layer.weight)


class TensorFieldMessages(nn.Module):
    r"""The messages of `Tensor field networks <https://arxiv.org/abs/1802.08219>`__, one for each edge.

    .. math::
        m^k_{ij} = \sum_l \sum_J R^{lk}_J(\|x_i - x_j\|)\, Q^{lk}_J Y_J(x_i - x_j)\, h^l_j

    with weights R by :class:`RadialMLP` for every pair of channels.

    Parameters
    ----------
    in_channels, out_channels : mapping of int to int
        Number of channels of each degree.
    """

    def __init__(self, in_channels: Channels, out_channels: Channels) -> None:
        super().__init__()
        self.in_channels, self.out_channels = dict(in_channels), dict(out_channels)
        self.radial = nn.ModuleDict(
            {
                f"{source}-{target}": RadialMLP((2 * min(source, target) + 1) * num_in * num_out)
                for source, num_in in in_channels.items()
                for target, num_out in out_channels.items()
            }
        )

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"

    def forward(
        self,
        edges: EdgeOps,
        feats: Mapping[int, Tensor],
        distance: Tensor,
        basis: Mapping[tuple[int, int], Tensor],
    ) -> dict[int, Tensor]:
        """Degree to messages ``(E, C, 2k + 1)``.

        Parameters
        ----------
        edges : EdgeOps
            The edges.
        feats : mapping of int to Tensor
            Degree to features ``(N, C, 2l + 1)``.
        distance : Tensor
            Lengths of the edges, ``(E, 1)``.
        basis : mapping
            Of :func:`kernel_basis`.
        """
        near = {degree: gather(edges.gather_src, feats[degree]) for degree in self.in_channels}
        messages = {}
        for target, num_out in self.out_channels.items():
            total = 0.0
            for source in self.in_channels:
                products = near[source] @ basis[source, target]  # each channel by each kernel
                products = products.unflatten(2, (-1, 2 * target + 1)).flatten(1, 2)  # (E, C F, 2k + 1)
                weights = self.radial[f"{source}-{target}"](distance)
                total = total + weights.unflatten(1, (num_out, products.shape[1])) @ products
            messages[target] = total
        return messages


def gather(function, values: Tensor) -> Tensor:
    """Apply an operation of :class:`.edge_ops.EdgeOps` to features ``(N, C, 2l + 1)``."""
    return function(values.flatten(1)).unflatten(1, values.shape[1:])


class SelfInteraction(nn.Module):
    """A linear map over the channels of each degree that is on both sides.

    Parameters
    ----------
    in_channels, out_channels : mapping of int to int
        Number of channels of each degree.
    """

    def __init__(self, in_channels: Channels, out_channels: Channels) -> None:
        super().__init__()
        self.weights = nn.ParameterDict(
            {
                str(degree): nn.Parameter(
                    torch.randn(number, in_channels[degree]) / in_channels[degree] ** 0.5
                )
                for degree, number in out_channels.items()
                if degree in in_channels
            }
        )

    def forward(self, feats: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Degree to features ``(N, C, 2l + 1)``."""
        return {int(degree): weight @ feats[int(degree)] for degree, weight in self.weights.items()}


class NormActivation(nn.Module):
    r"""The lengths of features by a layer norm over channels and ReLU, the directions as they were:
    :math:`h'_c = \mathrm{ReLU}(\mathrm{LN}(\|h\|))_c \, h_c / \|h_c\|`.

    Parameters
    ----------
    channels : mapping of int to int
        Number of channels of each degree.
    linear : bool
        Whether a linear map of the lengths follows.
    """

    def __init__(self, channels: Channels, linear: bool) -> None:
        super().__init__()
        self.lengths = nn.ModuleDict()
        for degree, number in channels.items():
            layers = [nn.LayerNorm(number), nn.ReLU()]
            if linear:
                layers.append(nn.Linear(number, number))
                nn.init.kaiming_uniform_(layers[-1].weight)
            self.lengths[str(degree)] = nn.Sequential(*layers)

    def forward(self, feats: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Degree to features ``(N, C, 2l + 1)``."""
        results = {}
        for degree, layers in self.lengths.items():
            values = feats[int(degree)]
            lengths = layers(norm(values)).unsqueeze(2)
            results[int(degree)] = lengths * unit(values)
        return results
