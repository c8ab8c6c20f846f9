"""A data set of molecules in files of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

from .._atomic import reason
from .._molecules import OutputKind, Pool
from .._validation import check_choice, check_fraction, check_integer
from .choices import Split, Transform
from .dataset import PointClouds
from .io.limits import extension_of
from .molecule_files import MOLECULE_EXTENSIONS, Molecule, read_molecules
from .molecules import MoleculeDataset
from .random_stream import RandomStream

__all__ = ["MoleculeFiles"]

_SHAPES: dict[OutputKind, tuple[int, ...]] = {"scalars": (), "vectors": (3,), "tensors": (3, 3)}


class MoleculeFiles(MoleculeDataset):
    """Molecules of files, with targets from the second lines of extended .xyz frames.

    Such a line names the targets, for example ``energy=-76.4 dipole="0 0 1.85"``: a number is a scalar, three
    are a vector, nine a symmetric tensor. The molecules are split at random, by seed.

    Parameters
    ----------
    raw_dir : str or Path
        A file, or a folder of files; those of its subfolders count too.
    split : str
        ``"train"``, ``"val"`` or ``"test"``.
    targets : sequence of str
        Names of the targets: several numbers, or one vector or tensor.
    pool : {"sum", "mean"}
        Whether targets are sums over atoms, as energies are, or do not grow with the molecule.
    size : int, optional
        Number of molecules; by default all of the split. A larger set begins with the smaller one.
    val_fraction, test_fraction : float
        Fractions of all molecules in the validation and in the test set.
    split_seed : int
        Seed of the splits.
    rotate : bool
        Whether molecules are randomly rotated in each epoch, and vectors and tensors with them.
    save_dir, transform, seed, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.data import MoleculeFiles
    >>> frame = "2\\nenergy={} pbc=\\"F F F\\"\\nH 0 0 0\\nH 0 0 {}\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = "".join(frame.format(-d, d) for d in (0.5, 0.6, 0.7, 0.8, 0.9))
    ...     _ = Path(folder, "hydrogen.xyz").write_text(text)
    ...     train = MoleculeFiles(folder, targets=["energy"], val_fraction=0.2, test_fraction=0.2)
    >>> len(train), train[0][1].shape
    (3, torch.Size([1]))
    """

    def __init__(
        self,
        raw_dir: str | Path,
        split: Split = "train",
        targets: Sequence[str] = ("energy",),
        pool: Pool = "sum",
        size: int | None = None,
        val_fraction: float = 0.1,
        test_fraction: float = 0.1,
        split_seed: int = 0,
        rotate: bool = False,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_choice("split", split, Split)
        self.targets = [targets] if isinstance(targets, str) else list(targets)
        if not self.targets or not all(isinstance(name, str) for name in self.targets):
            raise DGLError(f"Expected names of targets, got {targets!r}.")
        self.units = [""] * len(self.targets)
        self.pools = [check_choice("pool", pool, Pool)] * len(self.targets)
        self.size = None if size is None else check_integer("size", size, 1)
        self.split_seed = check_integer("split_seed", split_seed)
        fractions = [check_fraction("val_fraction", val_fraction)]
        fractions.append(check_fraction("test_fraction", test_fraction))
        if sum(fractions) >= 1:
            raise DGLError(f"Expected val_fraction and test_fraction to leave molecules, got {fractions}.")
        self.fractions, self.rotate = fractions, rotate
        self._files = _find(Path(raw_dir))
        super().__init__(
            "molecules",
            raw_dir=raw_dir,
            save_dir=save_dir,
            hash_key=(str(Path(raw_dir).resolve()), *self.targets),
            sources=self._files,
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )
        ends = self.labels.shape[1:]
        self.kind = next((kind for kind, shape in _SHAPES.items() if ends == shape), "scalars")

    def process(self) -> None:
        molecules, targets = [], []
        for path in self._files:
            for number, molecule in enumerate(read_molecules(path)):
                targets.append(self._target(f"molecule {number} of {path}", molecule))
                molecules.append(molecule)
        if len({each.shape for each in targets}) > 1:
            raise DGLError(f"The targets of molecules in {self.raw_dir} differ in shape; name others.")
        node = {
            "pos": np.concatenate([each.pos for each in molecules]).astype(np.float32),
            "element": np.concatenate([each.element for each in molecules]).astype(np.uint8),
        }
        num_atoms = np.array([len(each.element) for each in molecules])
        cloud = {"target": np.stack(targets).astype(np.float32), "index": np.arange(len(molecules))}
        self.clouds = PointClouds(num_atoms, node, cloud)

    def split_rows(self, cloud: Mapping[str, np.ndarray]) -> np.ndarray:
        number = len(cloud["index"])
        order = np.argsort(RandomStream("molecules", self.split_seed).random(number), kind="stable")
        val, test = (max(1, round(number * each)) for each in self.fractions)
        parts = dict(zip(("val", "test", "train"), np.split(order, [val, val + test])))
        rows = parts[self.split]
        if len(rows) == 0 or (self.size or 0) > len(rows):
            raise DGLError(
                f"The split {self.split!r} of {self.raw_dir} has {len(rows):,} molecules, not "
                f"{self.size or 'any'}; add molecules or ask for fewer."
            )
        return np.sort(rows[: self.size])

    def _target(self, where: str, molecule: Molecule) -> np.ndarray:
        missing = [name for name in self.targets if name not in molecule.values]
        if missing:
            known = ", ".join(molecule.values) or "none"
            raise DGLError(
                f"There is no number {missing[0]!r} in {where}, only {known}; write it into the second line "
                f"of each frame of an extended .xyz file, as {missing[0]}=1.5."
            )
        given = [molecule.values[name] for name in self.targets]
        if len(given) == 1 and given[0].size in (3, 9):
            target = given[0].reshape((3,) if given[0].size == 3 else (3, 3))
            if target.ndim == 2 and not np.allclose(target, target.T, atol=1e-3 * np.abs(target).max()):
                raise DGLError(f"The tensor {self.targets[0]!r} of {where} is not symmetric.")
        elif all(each.size == 1 for each in given):
            target = np.array([each.item() for each in given])
        else:
            raise DGLError(
                f"Expected targets to be numbers, or one vector of 3 or tensor of 9 numbers, got "
                f"{', '.join(str(each.size) for each in given)} in {where}; name fewer targets."
            )
        if not np.isfinite(target).all():
            raise DGLError(f"The targets of {where} are not finite; repair the file.")
        return target


def _find(source: Path) -> list[Path]:
    """The file, or the files of a folder and its subfolders, in order."""
    try:
        paths = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    except OSError as error:
        raise DGLError(f"Cannot list molecules in {source}: {reason(error)}.") from error
    found = [path for path in paths if extension_of(path) in MOLECULE_EXTENSIONS]
    if not found:
        raise DGLError(
            f"There is no file in {source} whose name ends in {' '.join(MOLECULE_EXTENSIONS)}; name another "
            f"in raw_dir."
        )
    return found
