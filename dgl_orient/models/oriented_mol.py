"""Properties of molecules with orientations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from .._molecules import OutputKind, Pool
from .._validation import NonNegativeInt, PositiveFloat, PositiveInt, check_choice, check_integers
from .atom_orientation import AtomOrientation
from .molecules import AtomEdges, MoleculeNetwork, Molecules

__all__ = ["OrientedMol"]

MoleculeOrientations = Literal["learned", "fixed", "none"]


class OrientedMol(MoleculeNetwork):
    r"""Properties of molecules, with the orientations of `Equivariant Point Cloud Analysis via Learning
    Orientations for Message Passing <https://arxiv.org/abs/2203.14486>`__.

    Every atom has orientations :math:`O_i` from the directions of its neighbours,
    :class:`~dgl_orient.models.atom_orientation.AtomOrientation`. Then in each layer

    .. math::
        m_{ij} &= W h_j \odot \mathrm{MLP}(e(d_{ij}), \; O_i^\top \hat r_{ij}, \; O_i^\top O_j) \\
        h'_i &= h_i + \mathrm{MLP}\Bigl(h_i, \; \sum_j f(d_{ij})\, m_{ij}\Bigr)

    with the direction :math:`\hat r_{ij}` to atom j, radial basis functions e and an envelope f that ends at
    the cutoff. Readouts are in :class:`~dgl_orient.models.molecule_readout.MoleculeReadout`.

    Scalars are invariant to rotation and translation, vectors and tensors equivariant; mirror images of a
    molecule may differ. All are smooth functions of the positions: where atoms are planar or linear, or their
    neighbours cancel, axes fade instead of jumping, see
    :func:`~dgl_orient.models.atom_orientation.fading_axes`. So energies have forces:
    :func:`~dgl_orient.models.forces.energy_and_forces`.

    Parameters
    ----------
    num_outputs : int
        Number of scalars.
    hidden_feats : int
        Number of features of an atom.
    num_layers : int
        Number of layers.
    cutoff : float
        The distance in Å up to which atoms send messages.
    num_radial : int
        Number of radial basis functions.
    num_orientations : int
        Number of orientations of an atom.
    orientations : {"learned", "fixed", "none"}
        Learned orientations; the axes of the coordinates, which are not equivariant and need random rotations
        in training; or none, so that messages have distances alone.
    neighbour_orientation : bool
        Whether messages have :math:`O_i^\top O_j`.
    out : {"scalars", "vectors", "tensors"}
        What is predicted of a molecule.
    pools, elements, references, scales
        As in :class:`~dgl_orient.models.molecule_readout.MoleculeReadout`.
    in_feats : int
        Number of further invariant features of the atoms, ``ndata["feat"]`` of shape ``(N, in_feats)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedMol
    >>> water = dgl_orient.point_cloud(torch.tensor([[0.0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]]))
    >>> water.ndata["element"] = torch.tensor([8, 1, 1])
    >>> OrientedMol(2)(water).shape, OrientedMol(out="tensors")(water).shape
    (torch.Size([1, 2]), torch.Size([1, 3, 3]))
    """

    def __init__(
        self,
        num_outputs: PositiveInt = 1,
        hidden_feats: PositiveInt = 128,
        num_layers: PositiveInt = 4,
        cutoff: PositiveFloat = 5.0,
        num_radial: PositiveInt = 20,
        num_orientations: PositiveInt = 2,
        orientations: MoleculeOrientations = "learned",
        neighbour_orientation: bool = True,
        out: OutputKind = "scalars",
        pools: Sequence[Pool] | None = None,
        elements: Sequence[int] | None = None,
        references: Sequence[Sequence[float]] | None = None,
        scales: Sequence[float] | None = None,
        in_feats: NonNegativeInt = 0,
    ) -> None:
        check_integers(num_layers=num_layers, num_orientations=num_orientations)
        check_choice("orientations", orientations, MoleculeOrientations)
        number = {"learned": num_orientations, "fixed": 1, "none": 0}[orientations]
        super().__init__(
            hidden_feats,
            cutoff,
            num_radial,
            3 * number,
            num_outputs,
            out,
            pools,
            elements,
            references,
            scales,
            in_feats,
        )
        self.orientation_encoder = None
        if orientations == "learned":
            self.orientation_encoder = AtomOrientation(hidden_feats, num_radial, number)
        self.orientations = orientations
        self.neighbour_orientation = neighbour_orientation and orientations == "learned"
        edge_feats = num_radial + 3 * number + (9 * number**2 if self.neighbour_orientation else 0)
        self.layers = nn.ModuleList(OrientedMolLayer(hidden_feats, edge_feats) for _ in range(num_layers))

    def encode(self, molecules: Molecules, edges: AtomEdges) -> tuple[Tensor, Tensor | None]:
        feat = self._embed(molecules)
        axes = self._axes(molecules, edges, feat)  # (N, 3F, 3)
        edge_feat = edges.radial if axes is None else self._edge_feats(edges, axes)
        for layer in self.layers:
            feat = layer(edges, feat, edge_feat)
        return feat, axes

    def _axes(self, molecules: Molecules, edges: AtomEdges, feat: Tensor) -> Tensor | None:
        """The axes of all orientations in rows."""
        if self.orientations == "none":
            return None
        if self.orientations == "fixed":
            return torch.eye(3, dtype=feat.dtype, device=feat.device).expand(len(feat), 3, 3)
        return self.orientation_encoder(edges, feat).transpose(2, 3).flatten(1, 2)

    def _edge_feats(self, edges: AtomEdges, axes: Tensor) -> Tensor:
        """The invariant features of edges, which no layer changes."""
        columns = axes.transpose(1, 2)
        values = [edges.radial, edges.ops.matmul_dst(edges.unit, columns)]
        if self.neighbour_orientation:
            src_axes = edges.ops.gather_src(axes.flatten(1)).unflatten(1, (-1, 3))
            values.append(edges.ops.matmul_dst(src_axes, columns).flatten(1))
        return torch.cat(values, 1)


class OrientedMolLayer(nn.Module):
    """One layer of :class:`OrientedMol`.

    Parameters
    ----------
    hidden_feats : int
        Number of features of an atom.
    edge_feats : int
        Number of features of an edge.
    """

    def __init__(self, hidden_feats: int, edge_feats: int) -> None:
        super().__init__()
        size = hidden_feats
        self.filter = nn.Sequential(nn.Linear(edge_feats, size), nn.SiLU(), nn.Linear(size, size))
        self.send = nn.Linear(size, size)
        self.update = nn.Sequential(nn.Linear(2 * size, size), nn.SiLU(), nn.Linear(size, size))

    def forward(self, edges: AtomEdges, feat: Tensor, edge_feat: Tensor) -> Tensor:
        """New features ``(N, hidden_feats)``."""
        weights = self.filter(edge_feat) * edges.envelope
        total = edges.ops.sum(edges.ops.gather_src(self.send(feat)) * weights)
        return feat + self.update(torch.cat([feat, total], 1))
