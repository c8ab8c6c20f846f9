"""What the networks for moving particles are put together from: the particles, and linear maps of pairs."""

from __future__ import annotations

from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear, pad

from ..geometry import norm
from ..nn.inputs import check_coordinates, check_shape, check_types
from .pairs import Pairs

__all__ = ["PairLinear", "Particles", "charge_products", "inverse_values", "linear_padded", "particles_of"]

_INPUTS = {"pos": 3, "vel": 3, "charge": 1}

# Added to distances before they are inverted.
_SOFTENING = 0.05

# Matrices with fewer rows or columns take the CPU several times longer to multiply than these.
_NARROW = 16


class Particles(NamedTuple):
    """Systems of charged particles."""

    pos: Tensor  #: (N, 3)
    vel: Tensor  #: (N, 3)
    charge: Tensor  #: (N, 1)
    sizes: Tensor  #: (B,) how many particles each system has

    @property
    def speed(self) -> Tensor:
        """The lengths of the velocities, ``(N, 1)``."""
        return norm(self.vel, keepdim=True)


def particles_of(graph: DGLGraph, network: nn.Module) -> Particles:
    """The particles that a graph carries for a network."""
    missing = [name for name in _INPUTS if not isinstance(graph, DGLGraph) or name not in graph.ndata]
    if missing:
        raise DGLError(
            f"Expected a graph whose ndata holds {', '.join(_INPUTS)} of the particles, but "
            f"{', '.join(missing)} is missing; the items of dgl_orient.data.ChargedParticles have them all."
        )
    values = [graph.ndata[name] for name in _INPUTS]
    check_coordinates(graph, values[0])
    for (name, size), value in zip(_INPUTS.items(), values):
        check_shape(name, value, (graph.num_nodes(), size))
        if not torch.isfinite(value).all():
            raise DGLError(f'Expected finite numbers in ndata["{name}"], but some are NaN or infinite.')
    check_types(network, *values)
    return Particles(*values, graph.batch_num_nodes())


def charge_products(pairs: Pairs, charge: Tensor) -> Tensor:
    """The pairs' :math:`q_i q_j`, ``(E, 1)``."""
    return pairs.of_senders(charge) * pairs.of_receivers(charge)


#: How many values :func:`inverse_values` gives a pair.
NUM_INVERSE = 3


def inverse_values(distance: Tensor, charges: Tensor) -> Tensor:
    r"""The pairs' :math:`s, \; q_i q_j s, \; q_i q_j s_2`, ``(E, 3)``: what forces of charges are made of.

    :math:`s = 1 / (d + 0.05)` and :math:`s_2 = 1 / (d^2 + 0.05)` stay at most 20 where particles meet: a
    network that sees larger values there than it has learned from predicts anything.
    """
    near, square = 1 / (distance + _SOFTENING), 1 / (distance.square() + _SOFTENING)
    return torch.cat([near, charges * near, charges * square], 1)


def linear_padded(values: Tensor, weight: Tensor) -> Tensor:
    """``values @ weight.T`` for few rows of weights."""
    rows = len(weight)
    return linear(values, pad(weight, (0, 0, 0, max(0, _NARROW - rows))))[:, :rows]


class PairLinear(nn.Linear):
    r"""A linear map of what is known of a pair, :math:`W [h_i, h_j, e_{ij}] + b`.

    The parts of receivers and senders are mapped once a particle and only added for pairs.

    Parameters
    ----------
    receiver_feats, sender_feats, pair_feats : int
        Sizes of the three parts.
    out_feats : int
        Size of the result.
    """

    def __init__(self, receiver_feats: int, sender_feats: int, pair_feats: int, out_feats: int) -> None:
        super().__init__(receiver_feats + sender_feats + pair_feats, out_feats)
        self.parts = (receiver_feats, sender_feats, pair_feats)

    def forward(self, pairs: Pairs, receivers: Tensor, senders: Tensor, values: Tensor) -> Tensor:
        """Compute the map.

        Parameters
        ----------
        pairs : Pairs
            The pairs.
        receivers, senders : Tensor
            The particles' features for either role, ``(N, ...)``.
        values : Tensor
            The pairs' values, ``(E, pair_feats)``.

        Returns
        -------
        Tensor
            The result of shape ``(E, out_feats)``.
        """
        receiver, sender, pair = self.weight.split(self.parts, 1)
        nodes = pairs.sums(linear(receivers, receiver, self.bias), linear(senders, sender))
        missing = (0, max(0, _NARROW - self.parts[2]))
        return torch.addmm(nodes, pad(values, missing), pad(pair, missing).T)
