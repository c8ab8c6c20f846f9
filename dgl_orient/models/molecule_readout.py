"""Readouts of molecules: numbers, vectors such as dipole moments, and tensors such as polarizabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from dgl import DGLError
from torch import Tensor, nn

from .._molecules import MAX_ELEMENT, OutputKind, Pool
from .._segment import segment_mean, segment_sum
from .._validation import check_choice, check_integers
from ..geometry import subtract_centroid

if TYPE_CHECKING:
    from .molecules import Molecules

__all__ = ["MoleculeReadout"]


class MoleculeReadout(nn.Module):
    r"""Properties of molecules from invariant features :math:`h_i` and equivariant vectors of atoms.

    With the vectors of an atom as the columns of :math:`O_i`, which for networks with orientations are their
    axes, and the position :math:`x_i` relative to the mean of the molecule,

    .. math::
        y &= \underset{i}{\mathrm{Pool}}\ r_{z_i} + s\, p_i \\
        \mu &= s \sum_i O_i\, p_i + (q_i - \bar q)\, x_i \\
        \alpha &= \sum_i r_{z_i} I + s \bigl(p_i I + O_i M_i O_i^\top\bigr)

    where :math:`p_i`, :math:`q_i` and the symmetric :math:`M_i` are MLPs of :math:`h_i`. The reference
    :math:`r` of an element and the scale s follow from the training data.

    Parameters
    ----------
    in_feats : int
        Number of features of an atom.
    num_vectors : int
        Number of vectors of an atom.
    num_outputs : int
        Number of scalars.
    out : {"scalars", "vectors", "tensors"}
        What is predicted of a molecule.
    pools : sequence of {"sum", "mean"}, optional
        How the contributions of atoms give each scalar; by default sums.
    elements : sequence of int, optional
        The atomic numbers that molecules may have, in ascending order.
    references : sequence of sequences of float, optional
        The contributions of each of these elements to each scalar, or to the diagonal of a tensor.
    scales : sequence of float, optional
        The scale of each scalar, of vectors or of tensors; 1 by default.
    """

    def __init__(
        self,
        in_feats: int,
        num_vectors: int,
        num_outputs: int,
        out: OutputKind,
        pools: Sequence[Pool] | None,
        elements: Sequence[int] | None,
        references: Sequence[Sequence[float]] | None,
        scales: Sequence[float] | None,
    ) -> None:
        super().__init__()
        check_choice("out", out, OutputKind)
        check_integers(num_outputs=num_outputs)
        if out != "scalars" and num_outputs != 1:
            raise DGLError(f"Expected num_outputs=1 for out={out!r}, got {num_outputs}.")
        self.out, self.num_vectors = out, num_vectors
        self.is_mean = torch.tensor([each == "mean" for each in _check_pools(pools, num_outputs)])
        widths = {"scalars": num_outputs, "vectors": num_vectors + 1, "tensors": num_vectors**2 + 1}
        self.mlp = nn.Sequential(nn.Linear(in_feats, in_feats), nn.SiLU(), nn.Linear(in_feats, widths[out]))
        # Initially predictions are near the references, so that what is learned is small.
        nn.init.normal_(self.mlp[-1].weight, std=0.1 / in_feats**0.5)
        nn.init.zeros_(self.mlp[-1].bias)
        table = torch.zeros(MAX_ELEMENT + 1, num_outputs)
        if references is not None:
            table[list(elements or ())] = _floats(
                "references", references, (len(elements or ()), num_outputs)
            )
        scale = torch.ones(num_outputs) if scales is None else _floats("scales", scales, (num_outputs,))
        self.register_buffer("references", table)
        self.register_buffer("scale", scale)

    def extra_repr(self) -> str:
        return f"{self.out}, num_vectors={self.num_vectors}"

    def forward(self, molecules: Molecules, feat: Tensor, vectors: Tensor | None) -> Tensor:
        """Compute the properties.

        Parameters
        ----------
        molecules : Molecules
            The atoms.
        feat : Tensor
            Features ``(N, in_feats)``.
        vectors : Tensor, optional
            Vectors ``(N, num_vectors, 3)``.

        Returns
        -------
        Tensor
            Numbers ``(B, num_outputs)``, vectors ``(B, 3)`` or tensors ``(B, 3, 3)``.
        """
        # Autocast would round energies to a few digits.
        with torch.autocast(feat.device.type, enabled=False):
            local, num_atoms = self.mlp(feat.to(self.scale.dtype)), molecules.batch_num_nodes
            if self.out == "vectors":
                return segment_sum(num_atoms, self._dipoles(molecules, local, vectors))
            if self.out == "tensors":
                return segment_sum(num_atoms, self._tensors(molecules, local, vectors)).unflatten(1, (3, 3))
            contributions = self.references[molecules.element] + self.scale * local
            is_mean = self.is_mean.to(feat.device)
            if is_mean.all():
                return segment_mean(num_atoms, contributions)
            sums = segment_sum(num_atoms, contributions)
            return torch.where(is_mean, sums / num_atoms.clamp_min(1).unsqueeze(1), sums)

    def _dipoles(self, molecules: Molecules, local: Tensor, vectors: Tensor) -> Tensor:
        """The contributions of atoms, ``(N, 3)``."""
        num_atoms = molecules.batch_num_nodes
        charge = local[:, :1]
        charge = charge - segment_mean(num_atoms, charge).repeat_interleave(num_atoms, 0)
        place = subtract_centroid(molecules.pos, num_atoms.cpu())
        return self.scale * ((local[:, 1:, None] * vectors).sum(1) + charge * place)

    def _tensors(self, molecules: Molecules, local: Tensor, vectors: Tensor) -> Tensor:
        """The contributions of atoms, ``(N, 9)``."""
        matrix = local[:, 1:].unflatten(1, (self.num_vectors, self.num_vectors))
        matrix = (matrix + matrix.transpose(1, 2)) / 2
        oriented = vectors.transpose(1, 2) @ matrix @ vectors  # (N, 3, 3)
        diagonal = self.references[molecules.element] + self.scale * local[:, :1]  # (N, 1)
        identity = torch.eye(3, dtype=oriented.dtype, device=oriented.device)
        return (diagonal.unsqueeze(2) * identity + self.scale * oriented).flatten(1)


def _check_pools(pools: Sequence[Pool] | None, number: int) -> list[Pool]:
    pools = ["sum"] * number if pools is None else list(pools)
    if len(pools) != number:
        raise DGLError(f"Expected {number} pools, one for each output, got {len(pools)}.")
    for each in pools:
        check_choice("pools", each, Pool)
    return pools


def _floats(name: str, values: Sequence, shape: tuple[int, ...]) -> Tensor:
    try:
        # On the CPU and in float64: a network may be made without memory, and energies have many digits.
        tensor = torch.tensor(values, dtype=torch.float64, device="cpu")
    except (TypeError, ValueError) as error:
        raise DGLError(f"Expected numbers as {name}, got {values!r}.") from error
    if tensor.shape != shape or not torch.isfinite(tensor).all():
        raise DGLError(f"Expected finite {name} of shape {shape}, got the shape {tuple(tensor.shape)}.")
    return tensor.to(torch.get_default_dtype())
