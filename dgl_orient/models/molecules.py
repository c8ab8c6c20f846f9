"""Building blocks of the networks for molecules: inputs, edges within a cutoff, radial basis functions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._molecules import MAX_ELEMENT, OutputKind, Pool
from .._validation import (
    as_integer,
    check_coordinates,
    check_dtype,
    check_finite,
    check_integers,
    check_shape,
)
from ..geometry import norm
from ..graph import radius_graph
from ..nn.edge_ops import EdgeOps, edge_ops
from .blocks import point_features
from .molecule_readout import MoleculeReadout

__all__ = ["AtomEdges", "MoleculeNetwork", "Molecules", "RadialBasis"]

#: Sums over the neighbours of an atom are divided by the square root of about so many.
NUM_NEIGHBOURS = 16.0


class Molecules(NamedTuple):
    """A batch of molecules."""

    pos: Tensor  #: (N, 3) in Å
    element: Tensor  #: (N,) atomic numbers
    feat: Tensor | None  #: (N, in_feats) further features; None where in_feats is 0
    batch_num_nodes: Tensor  #: (B,) number of atoms of each molecule


class AtomEdges(NamedTuple):
    """The pairs of atoms within the cutoff."""

    ops: EdgeOps
    unit: Tensor  #: (E, 3) from the destination to the source, of length 1
    distance: Tensor  #: (E, 1) in Å
    radial: Tensor  #: (E, R) radial basis functions
    envelope: Tensor  #: (E, 1) from 1 at distance 0 to 0 at the cutoff


class RadialBasis(nn.Module):
    r"""Sine functions of the distance, and an envelope that ends smoothly at the cutoff.

    .. math::
        e_n(d) = \sqrt{2 / c}\; \frac{\sin(n \pi d / c)}{d}\, f(d / c), \qquad
        f(x) = 1 - 10 x^3 + 15 x^4 - 6 x^5

    The envelope has two continuous derivatives, so forces have no jumps where atoms come near or part.

    Parameters
    ----------
    num_radial : int
        Number of functions.
    cutoff : float
        The cutoff c in Å.
    """

    def __init__(self, num_radial: int, cutoff: float) -> None:
        super().__init__()
        check_integers(num_radial=num_radial)
        if not isinstance(cutoff, (int, float)) or not 0 < cutoff <= 1e3:
            raise DGLError(f"Expected a cutoff above 0 and at most 1,000 Å, got {cutoff!r}.")
        self.num_radial, self.cutoff = num_radial, float(cutoff)

    def extra_repr(self) -> str:
        return f"{self.num_radial}, cutoff={self.cutoff}"

    def forward(self, distance: Tensor) -> tuple[Tensor, Tensor]:
        """The functions ``(E, R)`` and the envelope ``(E, 1)`` of distances ``(E, 1)``."""
        x = (distance / self.cutoff).clamp_max(1.0)
        envelope = 1 + x**3 * (-10 + x * (15 - 6 * x))
        number = torch.arange(1, self.num_radial + 1, dtype=distance.dtype, device=distance.device)
        waves = torch.sin(number * (math.pi * x)) / distance
        return waves * envelope * math.sqrt(2 / self.cutoff), envelope


class MoleculeNetwork(nn.Module, ABC):
    """What all networks for molecules have in common: inputs, an embedding of elements, and readouts.

    Parameters
    ----------
    hidden_feats : int
        Number of features of an atom.
    cutoff : float
        The distance in Å up to which atoms send messages.
    num_radial : int
        Number of radial basis functions.
    num_vectors : int
        Number of equivariant vectors of an atom that a readout of vectors or tensors uses.
    num_outputs, out, pools, elements, references, scales
        As in :class:`~dgl_orient.models.molecule_readout.MoleculeReadout`.
    in_feats : int
        Number of further invariant features of the atoms, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    """

    def __init__(
        self,
        hidden_feats: int,
        cutoff: float,
        num_radial: int,
        num_vectors: int,
        num_outputs: int,
        out: OutputKind,
        pools: Sequence[Pool] | None,
        elements: Sequence[int] | None,
        references: Sequence[Sequence[float]] | None,
        scales: Sequence[float] | None,
        in_feats: int,
    ) -> None:
        super().__init__()
        check_integers(hidden_feats=hidden_feats)
        check_integers(0, in_feats=in_feats)
        if out != "scalars" and num_vectors == 0:
            raise DGLError(f"{type(self).__name__} has no vectors of atoms for out={out!r}; choose another.")
        self.elements = _check_elements(elements)
        self.embed = nn.Embedding(MAX_ELEMENT + 1, hidden_feats)
        self.in_feats = in_feats
        self.embed_feats = nn.Linear(in_feats, hidden_feats, bias=False) if in_feats else None
        self.radial = RadialBasis(num_radial, cutoff)
        self.readout = MoleculeReadout(
            hidden_feats, num_vectors, num_outputs, out, pools, self.elements, references, scales
        )

    @abstractmethod
    def encode(self, molecules: Molecules, edges: AtomEdges) -> tuple[Tensor, Tensor | None]:
        """Invariant features ``(N, hidden_feats)`` and vectors ``(N, num_vectors, 3)``, if any."""

    def forward(self, graph: DGLGraph) -> Tensor:
        """Predict properties of molecules.

        Parameters
        ----------
        graph : DGLGraph
            Molecules: ``ndata`` holds ``pos`` ``(N, 3)`` in Å and ``element`` ``(N,)``, atomic numbers; edges
            are ignored.

        Returns
        -------
        Tensor
            Numbers ``(B, num_outputs)``, vectors ``(B, 3)`` or tensors ``(B, 3, 3)``.
        """
        molecules = self._inputs(graph)
        feat, vectors = self.encode(molecules, self._edges(molecules))
        return self.readout(molecules, feat, vectors)

    def _embed(self, molecules: Molecules) -> Tensor:
        """Initial features ``(N, hidden_feats)`` of the atoms."""
        feat = self.embed(molecules.element)
        return feat if self.embed_feats is None else feat + self.embed_feats(molecules.feat)

    def _inputs(self, graph: DGLGraph) -> Molecules:
        """Read and check the molecules of a graph."""
        missing = [
            name for name in ("pos", "element") if not isinstance(graph, DGLGraph) or name not in graph.ndata
        ]
        if missing:
            raise DGLError(
                f"Expected a graph with pos and element of the atoms in its ndata, but {', '.join(missing)} "
                f"is missing; the items of dgl_orient.data.QM9 have both."
            )
        pos, element = graph.ndata["pos"], graph.ndata["element"]
        check_coordinates(graph, pos)
        features = point_features(graph, self.in_feats, 0)
        check_dtype(self, pos, *features.values())
        check_finite(pos, **features)
        check_shape('ndata["element"]', element, (graph.num_nodes(),))
        if element.is_floating_point():
            raise DGLError(f"Expected atomic numbers as integers in ndata['element'], got {element.dtype}.")
        unknown = set(element.unique().tolist()) - set(self.elements or range(1, MAX_ELEMENT + 1))
        if unknown:
            raise DGLError(
                f"Expected atoms of the elements that the network was trained on, "
                f"{', '.join(map(str, self.elements or ['1 to 118']))}, got the atomic number {min(unknown)}."
            )
        return Molecules(pos, element.long(), features.get("feat"), graph.batch_num_nodes())

    def _edges(self, molecules: Molecules) -> AtomEdges:
        graph = radius_graph(molecules.pos, self.radial.cutoff, molecules.batch_num_nodes)
        ops = edge_ops(graph)
        vec = ops.add_src_dst(molecules.pos, -molecules.pos)
        distance = norm(vec, keepdim=True)
        return AtomEdges(ops, vec / distance, distance, *self.radial(distance))


def _check_elements(elements: Sequence[int] | None) -> list[int] | None:
    if elements is None:
        return None
    numbers = [as_integer(each) for each in elements]
    if any(each is None or not 1 <= each <= MAX_ELEMENT for each in numbers) or not numbers:
        raise DGLError(f"Expected atomic numbers from 1 to {MAX_ELEMENT} as elements, got {elements!r}.")
    return sorted(set(numbers))
