"""What data sets of molecules have in common: atoms, and targets of whole molecules."""

from __future__ import annotations

import numpy as np
import torch
from dgl import DGLGraph
from torch import Tensor

from .._molecules import OutputKind, Pool
from ..geometry import random_rotation, to_global
from .dataset import PointCloudDataset
from .seeding import seed_of

__all__ = ["MoleculeDataset"]

_RANK = {"scalars": 0, "vectors": 1, "tensors": 2}


class MoleculeDataset(PointCloudDataset):
    """A data set of molecules with targets.

    ``dataset[i]`` is a pair of a graph, whose ``ndata`` holds ``pos`` in Å and ``element``, the atomic
    numbers, and the targets: ``(T,)``, a vector ``(3,)`` or a tensor ``(3, 3)``.

    A subclass sets the attributes before it calls this constructor, whose arguments are those of
    :class:`dgl_orient.data.PointCloudDataset`, and has a method ``process`` that puts ``element`` into the
    nodes' arrays and the targets into the clouds'.

    Attributes
    ----------
    targets : list of str
        Names of the targets; one of vectors or tensors.
    units : list of str
        Their units.
    kind : {"scalars", "vectors", "tensors"}
        What they are.
    pools : list of {"sum", "mean"}
        Whether each is a sum or a mean over atoms.
    rotate : bool
        Whether molecules are randomly rotated in each epoch, together with their vectors or tensors.
    """

    gravity = None  #: there is no upright axis
    normalize = False  #: distances have a meaning
    per_split_args = ("size", "rotate")

    targets: list[str]
    units: list[str]
    kind: OutputKind
    pools: list[Pool]
    rotate: bool = False

    @property
    def rank(self) -> int:
        """0 for scalars, 1 for vectors, 2 for tensors."""
        return _RANK[self.kind]

    @property
    def labels(self) -> np.ndarray:
        """The targets, ``(B, T)``, ``(B, 3)`` or ``(B, 3, 3)``, before any rotation."""
        return self.clouds.cloud["target"]

    def __getitem__(self, idx: int) -> tuple[DGLGraph, Tensor]:
        graph, target = super().__getitem__(idx)
        if not self.rotate:
            return graph, target
        generator = torch.Generator().manual_seed(seed_of(self.seed, int(self._epoch), int(idx) % len(self)))
        rotation = random_rotation(dtype=torch.float64, generator=generator).to(graph.ndata["pos"])
        graph.ndata["pos"] = to_global(rotation, graph.ndata["pos"])
        for _ in range(self.rank):  # one dimension after another
            target = to_global(rotation, target).T if target.ndim == 2 else to_global(rotation, target)
        return graph, target

    @property
    def outputs(self) -> dict[str, object]:
        """The arguments of a network that follow from the targets of this split, in plain values.

        ``references`` are contributions of the ``elements`` that fit the targets best, by least squares;
        ``scales`` is how far targets are from them.
        """
        target, elements = self.labels.astype(float), np.unique(self.clouds.node["element"])
        if self.kind == "vectors":
            # No vector belongs to an element.
            references, residual = np.zeros((len(elements), 1)), np.linalg.norm(target, axis=1)[:, None]
        elif self.kind == "tensors":
            trace = np.trace(target, axis1=1, axis2=2)[:, None] / 3
            references, rest = self._references(trace)
            residual = np.linalg.norm(target - (trace - rest)[..., None] * np.eye(3), axis=(1, 2))[:, None]
        else:
            references, residual = self._references(target)
        scales = np.sqrt((residual**2).mean(0))
        return {
            "num_outputs": 1 if self.kind != "scalars" else len(self.targets),
            "out": self.kind,
            "pools": list(self.pools),
            "elements": elements.tolist(),
            "references": references.round(6).tolist(),
            "scales": np.where(scales > 1e-12, scales, 1.0).round(9).tolist(),
        }

    def _references(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Contributions of the elements ``(Z, T)`` and what they leave of the targets ``(B, T)``."""
        number_of_atoms = self.clouds.num_points
        molecule = np.repeat(np.arange(len(self)), number_of_atoms)
        elements, column = np.unique(self.clouds.node["element"], return_inverse=True)
        counts = np.bincount(molecule * len(elements) + column, minlength=len(self) * len(elements))
        counts = counts.reshape(len(self), -1).astype(float)
        fractions = counts / number_of_atoms[:, None]
        references, residual = np.zeros((len(elements), target.shape[1])), np.empty_like(target)
        for number, pool in enumerate(self.pools):
            inputs = counts if pool == "sum" else fractions
            references[:, number] = np.linalg.lstsq(inputs, target[:, number], rcond=None)[0]
            residual[:, number] = target[:, number] - inputs @ references[:, number]
        return references, residual
