"""QM9: small organic molecules with properties from quantum chemistry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

from .._messages import nearest
from .._validation import check_choice, check_integer
from .choices import Split, Transform
from .dataset import PointClouds
from .molecules import MoleculeDataset
from .polarizability_frames import align_polarizabilities
from .qm9_tables import PROPERTIES, qm9_folder, read_tables, table_paths
from .random_stream import RandomStream

__all__ = ["POLARIZABILITY", "QM9"]

#: The target that is a tensor.
POLARIZABILITY = "polarizability"

# The usual sizes of the splits, of all molecules.
_SIZES, _ALL = {"train": 110_000, "val": 10_000}, 130_831
#: Increase it when the same tables give other arrays, so that caches of older versions are not used.
_VERSION = 1


class QM9(MoleculeDataset):
    """130,831 molecules of up to nine atoms C, N, O and F besides hydrogen, in their ground states.

    From `Quantum chemistry structures and properties of 134 kilo molecules
    <https://doi.org/10.1038/sdata.2014.22>`__, as the package qm9pack (MIT licence) has them: without the
    3,054 molecules that are known as uncharacterised. Nothing is downloaded. The first use reads the tables
    in about a minute; with ``save_dir`` the arrays are cached there.

    Targets are ``mu`` (dipole moment, D), ``alpha`` (polarizability, Bohr³), ``homo``, ``lumo``, ``gap``
    (eV), ``r2`` (electronic spatial extent, Bohr²), ``zpve`` (eV), ``u0``, ``u``, ``h``, ``g`` (energies and
    free energy of atomization, eV, that is without those of free atoms), ``cv`` (heat capacity, cal/(mol K)),
    and alone ``polarizability``, the tensor (Bohr³). There are no vectors of dipole moments in qm9pack.

    The tensors in qm9pack are in other axes than the positions, and are rotated back: see
    :mod:`dgl_orient.data.polarizability_frames`. Molecules for which the directions of the axes remain
    uncertain, such as symmetric ones, have no part in a set of tensors: a ``margin`` of 0.01 keeps 45 %.

    Parameters
    ----------
    split : str
        ``"train"`` (110,000 molecules), ``"val"`` (10,000) or ``"test"`` (10,831).
    targets : sequence of str
        Names of the targets, or ``["polarizability"]``.
    size : int, optional
        Number of molecules; by default all of the split. A larger set begins with the smaller one.
    split_seed : int
        Seed of the splits.
    margin : float
        How certain the axes of polarizabilities must be: by which fraction of the tensor the second best
        directions fit worse than the best ones.
    rotate : bool
        Whether molecules are randomly rotated in each epoch, and polarizabilities with them.
    raw_dir : str or Path, optional
        Folder of the tables; by default that of the installed package.
    save_dir, transform, seed, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`.
    """

    def __init__(
        self,
        split: Split = "train",
        targets: Sequence[str] = ("u0",),
        size: int | None = None,
        split_seed: int = 0,
        margin: float = 0.01,
        rotate: bool = False,
        raw_dir: str | Path | None = None,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_choice("split", split, Split)
        self.targets = _check_targets(targets)
        self.size = None if size is None else check_integer("size", size, 1)
        self.split_seed = check_integer("split_seed", split_seed)
        if not isinstance(margin, (int, float)) or not 0 <= margin < 1:
            raise DGLError(f"Expected margin from 0 to 1, got {margin!r}.")
        self.margin, self.rotate = margin, rotate
        self.kind = "tensors" if self.targets == [POLARIZABILITY] else "scalars"
        chosen = ["alpha"] if self.kind == "tensors" else self.targets
        self.units = [PROPERTIES[name].unit for name in chosen]
        self.pools = [PROPERTIES[name].pool for name in chosen]
        folder = qm9_folder() if raw_dir is None else Path(raw_dir)
        super().__init__(
            "qm9",
            raw_dir=folder,
            save_dir=save_dir,
            hash_key=(_VERSION, str(folder.resolve())),
            sources=table_paths(folder),
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )
        self.clouds = self._with_targets(self.clouds)

    def process(self) -> None:
        tables = read_tables(Path(self.raw_dir), self.verbose)
        tensor, margin = align_polarizabilities(
            tables.num_atoms, tables.element, tables.pos, tables.polarizability, self.verbose
        )
        node = {"pos": tables.pos.astype(np.float32), "element": tables.element}
        cloud = {"index": tables.index, "properties": tables.properties}
        cloud |= {POLARIZABILITY: tensor.astype(np.float32), "margin": margin}
        self.clouds = PointClouds(tables.num_atoms, node, cloud)

    def split_rows(self, cloud: Mapping[str, np.ndarray]) -> np.ndarray:
        number = len(cloud["index"])
        order = np.argsort(RandomStream("qm9", self.split_seed).random(number), kind="stable")
        train, val = (round(number * size / _ALL) for size in _SIZES.values())
        parts = dict(zip(("train", "val", "test"), np.split(order, [train, train + val])))
        rows = parts[self.split]
        if self.kind == "tensors":
            rows = rows[cloud["margin"][rows] >= self.margin]
        if self.size is not None and self.size > len(rows):
            raise DGLError(
                f"The split {self.split!r} of QM9 has {len(rows):,} molecules, not size={self.size:,}; ask "
                f"for fewer."
            )
        return np.sort(rows[: self.size])

    def _with_targets(self, clouds: PointClouds) -> PointClouds:
        """The clouds with the chosen targets alone, in float32."""
        if self.kind == "tensors":
            target = clouds.cloud[POLARIZABILITY]
        else:
            columns = [list(PROPERTIES).index(name) for name in self.targets]
            target = clouds.cloud["properties"][:, columns].astype(np.float32)
        return PointClouds(clouds.num_points, clouds.node, {"index": clouds.cloud["index"], "target": target})


def _check_targets(targets: Sequence[str]) -> list[str]:
    names = [targets] if isinstance(targets, str) else list(targets)
    for name in names:
        if name not in (*PROPERTIES, POLARIZABILITY):
            raise DGLError(f"QM9 has no target {name!r}; {nearest(str(name), (*PROPERTIES, POLARIZABILITY))}")
    if not names or len(set(names)) < len(names) or (POLARIZABILITY in names and len(names) > 1):
        raise DGLError(
            f"Expected targets to be different names of numbers, or polarizability alone, got {names!r}."
        )
    return names
