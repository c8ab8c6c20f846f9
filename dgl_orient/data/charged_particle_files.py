"""Charged particles from the files that the generators of others write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np
from dgl import DGLError, DGLGraph

from .._validation import as_integer
from .dataset import PointCloudDataset, PointClouds
from .splits import check_split

__all__ = ["ChargedParticleFiles"]

_SPLITS = {"train": "train", "val": "valid", "test": "test"}


class ChargedParticleFiles(PointCloudDataset):
    """The N-body sets of the EGNN paper, the SE(3)-Transformer's and their like, from ``.npy`` files.

    A folder holds, for each split and a suffix such as ``charged5_initvel1small``,

    - ``loc_train_charged5_initvel1small.npy`` and ``vel_…``: positions and velocities, ``(B, T, 3, n)`` or
      ``(B, T, n, 3)`` for B systems of n particles at T times; of three particles the first is taken,
    - ``charges_…``: 1 or -1, ``(B, n, 1)`` or ``(B, n)``,
    - ``edges_…``: their products, ``(B, n, n)``. Where there are no charges these tell them but for a sign of
      the whole system, which changes no motion; its first particle then counts as positive.

    ``dataset[i]`` is a graph with ``pos``, ``vel``, ``charge``, ``target_pos`` and ``target_vel``, as in
    :class:`dgl_orient.data.charged_particles.ChargedParticles`. The physics of these files are
    ``Physics(cap="component", staggered=True)``, in a box of 5 or none.

    Parameters
    ----------
    raw_dir : str or Path
        The folder of the files.
    split : str
        ``"train"``, ``"val"`` (files named ``valid``) or ``"test"``.
    suffix : str, optional
        The end of the files' names; may be left out where there is only one.
    frames : tuple of int
        Which of the T times is shown and which is the target. The EGNN paper takes (30, 40) of the small set
        and (6, 8) of the large one: 1,000 steps in both.
    size : int, optional
        How many systems, from the first on: all if not given. The EGNN paper trains on 3,000.
    save_dir, transform, seed, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from dgl_orient.data.charged_particle_files import ChargedParticleFiles
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, shape in {"loc": (2, 49, 3, 5), "vel": (2, 49, 3, 5), "charges": (2, 5, 1)}.items():
    ...         np.save(f"{folder}/{name}_test_charged5.npy", np.ones(shape))
    ...     dataset = ChargedParticleFiles(folder, "test", frames=(0, 48))
    >>> len(dataset), dataset[0].ndata["target_pos"].shape
    (2, torch.Size([5, 3]))
    """

    gravity = None  #: nothing stands upright here

    def __init__(
        self,
        raw_dir: str | Path,
        split: str = "train",
        suffix: str | None = None,
        frames: tuple[int, int] = (30, 40),
        size: int | None = None,
        save_dir: str | Path | None = None,
        transform: Callable[[DGLGraph], DGLGraph] | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split, self.size = check_split(split, tuple(_SPLITS)), size
        self.frames = _checked_frames(frames)
        if size is not None and (as_integer(size) or 0) < 1:
            raise DGLError(f"Expected size to be an integer of at least 1, got {size!r}.")
        self._files = _find(Path(raw_dir), _SPLITS[split], suffix)
        super().__init__(
            "charged-files",
            raw_dir=raw_dir,
            save_dir=save_dir,
            hash_key=(split, str(self._files["loc"]), *self.frames, size),
            sources=self._files.values(),
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )

    def process(self) -> None:
        opened = {name: _open(path) for name, path in self._files.items()}
        loc, vel = (self._taken(name, opened[name]) for name in ("loc", "vel"))  # (size, 2, n, 3) each
        if loc.shape != vel.shape:
            _refuse(self._files["vel"], f"does not fit {self._files['loc'].name}", "copy both from one set")
        charge = self._charges(opened, loc.shape[2])
        states = {"pos": loc[:, 0], "vel": vel[:, 0], "target_pos": loc[:, 1], "target_vel": vel[:, 1]}
        node = {name: array.reshape(-1, 3) for name, array in states.items()}
        node["charge"] = charge[: len(loc)].reshape(-1, 1)
        self.clouds = PointClouds(np.full(len(loc), loc.shape[2]), node)

    def _taken(self, name: str, array: np.ndarray) -> np.ndarray:
        """The two times of the systems asked for, ``(size, 2, n, 3)``, read from the file only now."""
        path = self._files[name]
        if array.ndim != 4 or 3 not in array.shape[2:] or 0 in array.shape:
            _refuse(
                path,
                f"holds an array of shape {array.shape} instead of (B, T, 3, n) or (B, T, n, 3)",
                "name a set of three-dimensional trajectories",
            )
        if self.frames[1] >= array.shape[1]:
            _refuse(
                path,
                f"holds {array.shape[1]} times, numbered from 0, so not frames={self.frames}",
                "name two that it has, for the large EGNN set frames=(6, 8)",
            )
        if self.size is not None and self.size > len(array):
            _refuse(path, f"holds {len(array)} systems, not size={self.size}", "ask for fewer")
        taken = _finite(path, array[: self.size, list(self.frames)])
        return taken.swapaxes(2, 3) if array.shape[2] == 3 else taken

    def _charges(self, opened: dict[str, np.ndarray], n: int) -> np.ndarray:
        """Charges of all systems, ``(B, n)``, from their file or from their products."""
        systems = len(opened["loc"])
        arrays = {}
        for name, shapes in {"charges": [(n, 1), (n,)], "edges": [(n, n)]}.items():
            if name in opened:
                if opened[name].shape not in [(systems, *shape) for shape in shapes]:
                    _refuse(
                        self._files[name],
                        f"holds an array of shape {opened[name].shape}, which does not fit the {systems} "
                        f"systems of {n} particles of {self._files['loc'].name}",
                        "copy both from one set",
                    )
                arrays[name] = _finite(self._files[name], opened[name])
        if "charges" not in arrays:
            return self._charges_of_products(arrays["edges"])
        charge = arrays["charges"].reshape(systems, n)
        if "edges" in arrays and not _are_products(arrays["edges"], charge):
            _refuse(
                self._files["edges"],
                f"does not hold the products of {self._files['charges'].name}",
                "copy both from one set",
            )
        return charge

    def _charges_of_products(self, products: np.ndarray) -> np.ndarray:
        charge = products[:, 0].copy()
        charge[:, 0] = 1  # the diagonal may be anything
        if not ((np.abs(charge) == 1).all() and _are_products(products, charge)):
            _refuse(
                self._files["edges"],
                "does not hold products of charges of 1 and -1",
                "name a set of charged particles, or add its file of charges",
            )
        return charge


def _checked_frames(frames: tuple[int, int]) -> tuple[int, int]:
    numbers = [as_integer(frame) for frame in frames] if isinstance(frames, (tuple, list)) else []
    if len(numbers) != 2 or None in numbers or not 0 <= numbers[0] < numbers[1]:
        raise DGLError(f"Expected frames to be two rising integers of at least 0, got {frames!r}.")
    return numbers[0], numbers[1]


def _find(folder: Path, split: str, suffix: str | None) -> dict[str, Path]:
    """The files of a split: loc, vel, and charges or edges or both."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DGLError(
            f"Cannot look for files of charged particles in {folder}: {reason}; name their folder in raw_dir."
        ) from error
    start = f"loc_{split}"
    ends = [
        name[len(start) : -len(".npy")] for name in names if name.startswith(start) and name.endswith(".npy")
    ]
    if suffix is not None:
        ends = [end for end in ends if end.removeprefix("_") == suffix]
    if len(ends) != 1:
        raise DGLError(_not_found(folder, f"{start}_{suffix or '*'}.npy", names, ends))
    files = {name: folder / f"{name}_{split}{ends[0]}.npy" for name in ("loc", "vel", "charges", "edges")}
    found = {name: path for name, path in files.items() if path.name in names}
    missing = "vel" if "vel" not in found else "charges" if not {"charges", "edges"} & set(found) else None
    if missing:
        _refuse(files["loc"], f"stands there without {files[missing].name}", "copy both from one set")
    return found


def _not_found(folder: Path, pattern: str, names: list[str], ends: list[str]) -> str:
    if ends:
        suffixes = ", ".join(repr(end.removeprefix("_")) for end in ends)
        return f"{folder} holds more than one set of charged particles; say in suffix which: {suffixes}."
    pickles = [name for name in names if name.endswith(".pkl")]
    if pickles:
        return (
            f"{folder / pickles[0]} is a pickle, which may run code when it is read; if you trust it, save "
            f"its arrays points, vel and charges with numpy.save as {pattern}, vel_… and charges_…."
        )
    return f"Expected a file {pattern} in {folder}, found none; name the folder of the .npy files in raw_dir."


def _open(path: Path) -> np.ndarray:
    """The array of a file, left on the disk until it is read."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except PermissionError as error:
        raise DGLError(f"Cannot read {path}: permission denied; allow it or copy the file.") from error
    except Exception as error:  # NumPy meets a garbled header with exceptions of many kinds
        raise DGLError(f"{path} is not a whole .npy file of numbers; copy or generate it again.") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        _refuse(path, "does not hold an array of numbers", "copy or generate it again")
    return array


def _finite(path: Path, array: np.ndarray) -> np.ndarray:
    """The numbers in float32, the type in which they are kept."""
    with np.errstate(over="ignore"):
        array = np.asarray(array, dtype=np.float32)
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).reshape(len(array), -1).all(1))[0])
        _refuse(path, f"has NaN or infinity in system {row}", "generate it again")
    return array


def _are_products(products: np.ndarray, charge: np.ndarray) -> bool:
    """Whether they are those of the charges, but for the diagonal."""
    apart = ~np.eye(charge.shape[1], dtype=bool)
    return np.array_equal(products[:, apart], (charge[:, :, None] * charge[:, None])[:, apart])


def _refuse(path: Path, fault: str, remedy: str) -> NoReturn:
    raise DGLError(f"{path} {fault}; {remedy}.")
