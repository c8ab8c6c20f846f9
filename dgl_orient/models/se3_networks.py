"""TFN and the SE(3)-Transformer, equivariant baselines for N-body prediction on e3nn's tensor algebra."""

from __future__ import annotations

import math
from collections.abc import Mapping

import dgl
import torch
from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import NonNegativeInt, PositiveInt, check_integers, check_k
from ..geometry import norm
from ..nn.edge_ops import EdgeOps, edge_ops
from .particles import Particles, particle_graph, particle_inputs
from .tensor_field import (
    Channels,
    NormActivation,
    SelfInteraction,
    TensorFieldMessages,
    gather,
    kernel_basis,
    tensor_algebra,
)

__all__ = ["TFN", "SE3Transformer"]

#: The output: one vector.
_VECTOR = {1: 1}


class _Edges:
    """The edges of systems of particles: operations on them, lengths, and a basis of kernels."""

    def __init__(self, particles: Particles, k: int | None, max_degree: int) -> None:
        self.graph = particle_graph(particles, k)
        self.ops: EdgeOps = edge_ops(self.graph)
        vec = self.ops.add_src_dst(-particles.pos, particles.pos)
        self.distance, self.basis = norm(vec, keepdim=True), kernel_basis(vec, max_degree)

    def messages(self, layer: TensorFieldMessages, feats: Mapping[int, Tensor]) -> dict[int, Tensor]:
        return layer(self.ops, feats, self.distance, self.basis)


class TensorFieldConv(nn.Module):
    """The mean of the messages, and a self-interaction.

    Parameters
    ----------
    in_channels, out_channels : mapping of int to int
        Number of channels of each degree.
    """

    def __init__(self, in_channels: Channels, out_channels: Channels) -> None:
        super().__init__()
        self.message = TensorFieldMessages(in_channels, out_channels)
        self.self_interaction = SelfInteraction(in_channels, out_channels)

    def forward(self, edges: _Edges, feats: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Degree to features ``(N, C, 2l + 1)``."""
        own = self.self_interaction(feats)
        means = {
            degree: gather(edges.ops.mean, messages)
            for degree, messages in edges.messages(self.message, feats).items()
        }
        return {degree: mean + own[degree] if degree in own else mean for degree, mean in means.items()}


class TensorFieldAttention(nn.Module):
    r"""The messages of the neighbours, weighted by attention.

    .. math::
        h'_i = \sum_j \alpha_{ij} v_{ij}, \qquad
        \alpha_{ij} = \mathrm{softmax}_j\Bigl(D^{-1/2} \sum_l \langle W^l h^l_i, k^l_{ij}\rangle\Bigr)

    with messages as values v and as keys k, which have D numbers.

    Parameters
    ----------
    in_channels, out_channels : mapping of int to int
        Number of channels of each degree.
    """

    def __init__(self, in_channels: Channels, out_channels: Channels) -> None:
        super().__init__()
        keys = {degree: number for degree, number in out_channels.items() if degree in in_channels}
        self.value = TensorFieldMessages(in_channels, out_channels)
        self.key = TensorFieldMessages(in_channels, keys)
        self.query = SelfInteraction(in_channels, keys)
        self.scale = math.sqrt(sum(number * (2 * degree + 1) for degree, number in keys.items()))

    def forward(self, edges: _Edges, feats: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Degree to features ``(N, C, 2l + 1)``."""
        keys, queries = edges.messages(self.key, feats), self.query(feats)
        score = sum(
            (key * gather(edges.ops.gather_dst, queries[degree])).sum((1, 2)) for degree, key in keys.items()
        )
        weight = dgl.ops.edge_softmax(edges.graph, score.unsqueeze(1) / self.scale).unsqueeze(2)
        values = edges.messages(self.value, feats)
        return {degree: gather(edges.ops.sum, weight * value) for degree, value in values.items()}


class TFN(nn.Module):
    r"""The N-body network of `Tensor field networks <https://arxiv.org/abs/1802.08219>`__ with which `E(n)
    Equivariant Graph Neural Networks <https://arxiv.org/abs/2102.09844>`__ compares, with the sizes given
    there: 127,024 parameters.

    The charge has degree 0 and the velocity degree 1. Layers are means of messages over all other particles,
    see :class:`~dgl_orient.models.tensor_field.TensorFieldMessages`, with self-interactions and norm
    nonlinearities; the last one gives a vector, the displacement. The positions are equivariant to rotation
    and translation. It needs e3nn.

    Parameters
    ----------
    channels : int
        Number of channels of each degree.
    max_degree : int
        The largest degree.
    num_layers : int
        Number of layers.
    k : int, optional
        Number of nearest particles that send messages; all others of the system by default.
    in_feats : int
        Number of further invariant features of the particles, ``ndata["feat"]`` of shape ``(N, in_feats)``.

    Examples
    --------
    >>> import dgl
    >>> from dgl_orient.data import ChargedParticles
    >>> from dgl_orient.models import TFN
    >>> dataset = ChargedParticles("test", num_particles=5, size=2, horizon=10)
    >>> TFN()(dgl.batch([dataset[0], dataset[1]])).shape
    torch.Size([10, 3])
    """

    def __init__(
        self,
        channels: PositiveInt = 16,
        max_degree: PositiveInt = 1,
        num_layers: PositiveInt = 4,
        k: PositiveInt | None = None,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        tensor_algebra()  # a missing package is reported before a training begins
        check_integers(channels=channels, max_degree=max_degree, num_layers=num_layers)
        check_integers(0, in_feats=in_feats)
        self.k = None if k is None else check_k(k)
        self.in_feats, self.max_degree = in_feats, max_degree
        hidden = dict.fromkeys(range(max_degree + 1), channels)
        sizes = [{0: 1 + in_feats, 1: 1}, *[hidden] * (num_layers - 1), _VECTOR]
        self.convs = nn.ModuleList(map(TensorFieldConv, sizes, sizes[1:]))
        self.activations = nn.ModuleList(NormActivation(each, linear=True) for each in sizes[1:-1])

    @classmethod
    def light(cls, **arguments: object) -> TFN:
        """A small network; arguments as in the constructor."""
        return cls(**(dict(channels=8, num_layers=3) | arguments))

    def forward(self, graph: DGLGraph) -> Tensor:
        """Predict the future positions.

        Parameters
        ----------
        graph : DGLGraph
            Systems of particles: ``ndata`` holds ``pos``, ``vel`` ``(N, 3)`` and ``charge`` ``(N, 1)``;
            edges are ignored.

        Returns
        -------
        Tensor
            Positions of shape ``(N, 3)``.
        """
        particles = particle_inputs(graph, self, self.in_feats)
        edges, feats = _Edges(particles, self.k, self.max_degree), _initial(particles)
        for conv, activation in zip(self.convs, [*self.activations, None]):
            feats = conv(edges, feats)
            feats = feats if activation is None else activation(feats)
        return particles.pos + feats[1].squeeze(1)


class SE3Transformer(nn.Module):
    r"""The N-body network of `SE(3)-Transformers <https://arxiv.org/abs/2006.10503>`__ with which `E(n)
    Equivariant Graph Neural Networks <https://arxiv.org/abs/2102.09844>`__ compares, with the sizes given
    there: 1,763,134 parameters.

    As :class:`TFN`, but messages are weighted by attention, there are no self-interactions but in the last
    layer, a convolution, and the displacement has a learned scale, initially 0.01. The positions are
    equivariant to rotation and translation. It needs e3nn.

    Parameters
    ----------
    channels : int
        Number of channels of each degree.
    max_degree : int
        The largest degree.
    num_layers : int
        Number of attention layers.
    k : int, optional
        Number of nearest particles that send messages; all others of the system by default.
    in_feats : int
        Number of further invariant features of the particles, ``ndata["feat"]`` of shape ``(N, in_feats)``.

    Examples
    --------
    >>> import dgl
    >>> from dgl_orient.data import ChargedParticles
    >>> from dgl_orient.models import SE3Transformer
    >>> dataset = ChargedParticles("test", num_particles=5, size=2, horizon=10)
    >>> SE3Transformer.light()(dgl.batch([dataset[0], dataset[1]])).shape
    torch.Size([10, 3])
    """

    def __init__(
        self,
        channels: PositiveInt = 21,
        max_degree: PositiveInt = 2,
        num_layers: PositiveInt = 4,
        k: PositiveInt | None = None,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        tensor_algebra()  # a missing package is reported before a training begins
        check_integers(channels=channels, max_degree=max_degree, num_layers=num_layers)
        check_integers(0, in_feats=in_feats)
        self.k = None if k is None else check_k(k)
        self.in_feats, self.max_degree = in_feats, max_degree
        hidden = dict.fromkeys(range(max_degree + 1), channels)
        sizes = [{0: 1 + in_feats, 1: 1}, *[hidden] * num_layers]
        self.attentions = nn.ModuleList(map(TensorFieldAttention, sizes, sizes[1:]))
        self.activations = nn.ModuleList(NormActivation(each, linear=False) for each in sizes[1:])
        self.decode = TensorFieldConv(hidden, _VECTOR)
        self.scale = nn.Parameter(torch.tensor(0.01))

    @classmethod
    def light(cls, **arguments: object) -> SE3Transformer:
        """A small network; arguments as in the constructor."""
        return cls(**(dict(channels=8, max_degree=1, num_layers=2) | arguments))

    def forward(self, graph: DGLGraph) -> Tensor:
        """Predict the future positions; argument and result as in :meth:`TFN.forward`."""
        particles = particle_inputs(graph, self, self.in_feats)
        edges, feats = _Edges(particles, self.k, self.max_degree), _initial(particles)
        for attention, activation in zip(self.attentions, self.activations):
            feats = activation(attention(edges, feats))
        return particles.pos + self.scale * self.decode(edges, feats)[1].squeeze(1)


def _initial(particles: Particles) -> dict[int, Tensor]:
    """Charges, further features and velocities by degree."""
    return {0: particles.with_feat(particles.charge).unsqueeze(2), 1: particles.vel.unsqueeze(1)}
