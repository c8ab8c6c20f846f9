"""Networks for molecules beside those with orientations: E(n)-GNN, SchNet and PaiNN."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from .._molecules import OutputKind, Pool
from .._validation import NonNegativeInt, PositiveFloat, PositiveInt, check_integers
from ..geometry import norm
from .molecules import NUM_NEIGHBOURS, AtomEdges, MoleculeNetwork, Molecules
from .particles import PairLinear

__all__ = ["EGNNMol", "PaiNN", "SchNet"]


class EGNNMol(MoleculeNetwork):
    r"""The form for QM9 of `E(n) Equivariant Graph Neural Networks <https://arxiv.org/abs/2102.09844>`__:
    messages have squared distances, are weighed by attention, and positions stay.

    .. math::
        m_{ij} = \phi_e(h_i, h_j, \|x_i - x_j\|^2), \qquad
        h'_i = h_i + \phi_h\Bigl(h_i, \sum_j \sigma(\phi_a(m_{ij}))\, m_{ij}\Bigr)

    Parameters
    ----------
    num_outputs : int
        Number of scalars.
    hidden_feats : int
        Number of features of an atom.
    num_layers : int
        Number of layers.
    cutoff : float
        The distance in Å up to which atoms send messages; the default reaches all atoms of QM9's molecules.
    out, pools, elements, references, scales
        As in :class:`~dgl_orient.models.molecule_readout.MoleculeReadout`; ``out`` must be ``"scalars"``.
    """

    def __init__(
        self,
        num_outputs: PositiveInt = 1,
        hidden_feats: PositiveInt = 128,
        num_layers: PositiveInt = 7,
        cutoff: PositiveFloat = 15.0,
        out: OutputKind = "scalars",
        pools: Sequence[Pool] | None = None,
        elements: Sequence[int] | None = None,
        references: Sequence[Sequence[float]] | None = None,
        scales: Sequence[float] | None = None,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        check_integers(num_layers=num_layers)
        super().__init__(
            hidden_feats, cutoff, 1, 0, num_outputs, out, pools, elements, references, scales, in_feats
        )
        self.layers = nn.ModuleList(_EGNNLayer(hidden_feats) for _ in range(num_layers))

    def encode(self, molecules: Molecules, edges: AtomEdges) -> tuple[Tensor, None]:
        feat, squared = self._embed(molecules), edges.distance.square()
        for layer in self.layers:
            feat = layer(edges, feat, squared)
        return feat, None


class _EGNNLayer(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.edge = PairLinear(size, size, 1, size)
        self.message = nn.Sequential(nn.SiLU(), nn.Linear(size, size), nn.SiLU())
        self.attention = nn.Sequential(nn.Linear(size, 1), nn.Sigmoid())
        self.update = nn.Sequential(nn.Linear(2 * size, size), nn.SiLU(), nn.Linear(size, size))

    def forward(self, edges: AtomEdges, feat: Tensor, squared: Tensor) -> Tensor:
        message = self.message(self.edge(edges.ops, feat, feat, squared))
        total = edges.ops.sum(message * self.attention(message))
        return feat + self.update(torch.cat([feat, total], 1))


class SchNet(MoleculeNetwork):
    r"""`SchNet <https://arxiv.org/abs/1706.08566>`__: continuous filters of distances.

    .. math::
        h'_i = h_i + \mathrm{MLP}\Bigl(\sum_j (W h_j) \odot \mathrm{MLP}(e(d_{ij}))\, f(d_{ij})\Bigr)

    Parameters
    ----------
    num_outputs : int
        Number of scalars.
    hidden_feats : int
        Number of features of an atom.
    num_layers : int
        Number of interactions.
    cutoff : float
        The distance in Å up to which atoms send messages.
    num_radial : int
        Number of radial basis functions.
    out, pools, elements, references, scales
        As in :class:`~dgl_orient.models.molecule_readout.MoleculeReadout`; ``out`` must be ``"scalars"``.
    """

    def __init__(
        self,
        num_outputs: PositiveInt = 1,
        hidden_feats: PositiveInt = 128,
        num_layers: PositiveInt = 6,
        cutoff: PositiveFloat = 5.0,
        num_radial: PositiveInt = 20,
        out: OutputKind = "scalars",
        pools: Sequence[Pool] | None = None,
        elements: Sequence[int] | None = None,
        references: Sequence[Sequence[float]] | None = None,
        scales: Sequence[float] | None = None,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        check_integers(num_layers=num_layers)
        super().__init__(
            hidden_feats,
            cutoff,
            num_radial,
            0,
            num_outputs,
            out,
            pools,
            elements,
            references,
            scales,
            in_feats,
        )
        self.layers = nn.ModuleList(_Interaction(hidden_feats, num_radial) for _ in range(num_layers))

    def encode(self, molecules: Molecules, edges: AtomEdges) -> tuple[Tensor, None]:
        feat = self._embed(molecules)
        for layer in self.layers:
            feat = layer(edges, feat)
        return feat, None


class _Interaction(nn.Module):
    def __init__(self, size: int, num_radial: int) -> None:
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(num_radial, size), _ShiftedSoftplus(), nn.Linear(size, size))
        self.send = nn.Linear(size, size, bias=False)
        self.update = nn.Sequential(nn.Linear(size, size), _ShiftedSoftplus(), nn.Linear(size, size))

    def forward(self, edges: AtomEdges, feat: Tensor) -> Tensor:
        weights = self.filter(edges.radial) * edges.envelope
        return feat + self.update(edges.ops.sum(edges.ops.gather_src(self.send(feat)) * weights))


class _ShiftedSoftplus(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return softplus(values) - 0.6931471805599453


class PaiNN(MoleculeNetwork):
    r"""`PaiNN <https://arxiv.org/abs/2102.03150>`__: invariant features and equivariant vectors
    :math:`V_i` of atoms, without orientations.

    .. math::
        (a, b, c)_{ij} &= \mathrm{MLP}(h_j) \odot W e(d_{ij})\, f(d_{ij}) \\
        h_i &\mathrel{+}= \sum_j a_{ij}, \qquad V_i \mathrel{+}= \sum_j b_{ij} V_j + c_{ij} \hat r_{ij}

    followed in each layer by an update of an atom from the lengths and inner products of linear maps of its
    vectors.

    Parameters
    ----------
    num_outputs : int
        Number of scalars.
    hidden_feats : int
        Number of features, and of vectors, of an atom.
    num_layers : int
        Number of layers.
    cutoff : float
        The distance in Å up to which atoms send messages.
    num_radial : int
        Number of radial basis functions.
    num_vectors : int
        Number of combinations of an atom's vectors that readouts of vectors and tensors use.
    out, pools, elements, references, scales
        As in :class:`~dgl_orient.models.molecule_readout.MoleculeReadout`.
    in_feats : int
        Number of further invariant features of the atoms, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    """

    def __init__(
        self,
        num_outputs: PositiveInt = 1,
        hidden_feats: PositiveInt = 128,
        num_layers: PositiveInt = 3,
        cutoff: PositiveFloat = 5.0,
        num_radial: PositiveInt = 20,
        num_vectors: PositiveInt = 6,
        out: OutputKind = "scalars",
        pools: Sequence[Pool] | None = None,
        elements: Sequence[int] | None = None,
        references: Sequence[Sequence[float]] | None = None,
        scales: Sequence[float] | None = None,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        check_integers(num_layers=num_layers, num_vectors=num_vectors)
        super().__init__(
            hidden_feats,
            cutoff,
            num_radial,
            num_vectors,
            num_outputs,
            out,
            pools,
            elements,
            references,
            scales,
            in_feats,
        )
        self.layers = nn.ModuleList(_PaiNNLayer(hidden_feats, num_radial) for _ in range(num_layers))
        self.combine = None if out == "scalars" else nn.Linear(hidden_feats, num_vectors, bias=False)

    def encode(self, molecules: Molecules, edges: AtomEdges) -> tuple[Tensor, Tensor | None]:
        feat = self._embed(molecules)
        vec = feat.new_zeros(len(feat), 3, feat.shape[1])  # vectors in columns
        for layer in self.layers:
            feat, vec = layer(edges, feat, vec)
        return feat, None if self.combine is None else self.combine(vec).transpose(1, 2)


class _PaiNNLayer(nn.Module):
    def __init__(self, size: int, num_radial: int) -> None:
        super().__init__()
        self.size = size
        self.send = nn.Sequential(nn.Linear(size, size), nn.SiLU(), nn.Linear(size, 3 * size))
        self.filter = nn.Linear(num_radial, 3 * size)
        self.mix = nn.Linear(size, 2 * size, bias=False)
        self.update = nn.Sequential(nn.Linear(2 * size, size), nn.SiLU(), nn.Linear(size, 3 * size))

    def forward(self, edges: AtomEdges, feat: Tensor, vec: Tensor) -> tuple[Tensor, Tensor]:
        ops = edges.ops
        weights = ops.gather_src(self.send(feat)) * self.filter(edges.radial) * edges.envelope
        own, along, new = weights.split(self.size, 1)
        sent = ops.gather_src(vec.flatten(1)).unflatten(1, (3, -1)) * along.unsqueeze(1)
        sent = sent + edges.unit.unsqueeze(2) * new.unsqueeze(1)  # (E, 3, size)
        feat = feat + ops.sum(own) / NUM_NEIGHBOURS**0.5
        vec = vec + ops.sum(sent.flatten(1)).unflatten(1, (3, -1)) / NUM_NEIGHBOURS**0.5
        left, right = self.mix(vec).split(self.size, 2)
        a, b, c = self.update(torch.cat([feat, norm(right, dim=1)], 1)).split(self.size, 1)
        return feat + a + b * (left * right).sum(1), vec + c.unsqueeze(1) * left
