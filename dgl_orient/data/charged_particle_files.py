"""Charged particles from the .npy files of published generators."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
from dgl import DGLError

from .._atomic import reason
from .._validation import PositiveInt, as_integer, check_choice, check_integer
from .choices import Split, Transform
from .coordinates import float32_offset
from .dataset import PointCloudDataset, PointClouds
from .io.tables import in_float32_range

__all__ = ["ChargedParticleFiles"]

_FILE_SPLITS = {"train": "train", "val": "valid", "test": "test"}


class ChargedParticleFiles(PointCloudDataset):
    """The N-body sets of the EGNN paper, the SE(3)-Transformer's and their like, from ``.npy`` files.

    A folder has, for each split and a suffix such as ``charged5_initvel1small``,

    - ``loc_train_charged5_initvel1small.npy`` and ``vel_…``: positions and velocities, ``(B, T, 3, n)`` or
      ``(B, T, n, 3)`` for B systems of n particles at T times; for three particles the first is assumed,
    - ``charges_…``: 1 or -1, ``(B, n, 1)`` or ``(B, n)``,
    - ``edges_…``: their products, ``(B, n, n)``. Without charges these determine them up to a sign of the
      whole system, which changes no motion; its first particle is then positive.

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
        The end of the files' names; optional where there is only one.
    frames : tuple of int
        Indices of the input and of the target among the T times. The EGNN paper uses (30, 40) of the small
        set and (6, 8) of the large one: 1,000 steps in both.
    size : int, optional
        Number of systems, from the first on: by default all. The EGNN paper trains on 3,000.
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

    gravity = None  #: there is no upright axis

    def __init__(
        self,
        raw_dir: str | Path,
        split: Split = "train",
        suffix: str | None = None,
        frames: tuple[int, int] = (30, 40),
        size: PositiveInt | None = None,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        seed: int = 0,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_choice("split", split, Split)
        self.size = None if size is None else check_integer("size", size, 1)
        self.frames = _check_frames(frames)
        self._files = _find(Path(raw_dir), _FILE_SPLITS[split], suffix)
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
        arrays = {name: _open(path) for name, path in self._files.items()}
        loc, vel = (self._select(name, arrays[name]) for name in ("loc", "vel"))  # (size, 2, n, 3) each
        if loc.shape != vel.shape:
            _refuse(self._files["vel"], f"does not fit {self._files['loc'].name}", "copy both from one set")
        charge = self._charges(arrays, loc.shape[2])
        loc = loc - float32_offset(loc[:, :1])
        states = {"pos": loc[:, 0], "vel": vel[:, 0], "target_pos": loc[:, 1], "target_vel": vel[:, 1]}
        node = {name: array.reshape(-1, 3).astype(np.float32) for name, array in states.items()}
        node["charge"] = charge[: len(loc)].reshape(-1, 1).astype(np.float32)
        self.clouds = PointClouds(np.full(len(loc), loc.shape[2]), node)

    def _select(self, name: str, array: np.ndarray) -> np.ndarray:
        """The two times of the requested systems, ``(size, 2, n, 3)``, read from the memory-mapped file."""
        path = self._files[name]
        if array.ndim != 4 or 3 not in array.shape[2:] or 0 in array.shape:
            _refuse(
                path,
                f"has an array of shape {array.shape} instead of (B, T, 3, n) or (B, T, n, 3)",
                "name a set of three-dimensional trajectories",
            )
        if self.frames[1] >= array.shape[1]:
            _refuse(
                path,
                f"has {array.shape[1]} times, numbered from 0, so not frames={self.frames}",
                "name two that it has, for the large EGNN set frames=(6, 8)",
            )
        if self.size is not None and self.size > len(array):
            _refuse(path, f"has {len(array)} systems, not size={self.size}", "ask for fewer")
        selected = _finite(path, array[: self.size, list(self.frames)])
        return selected.swapaxes(2, 3) if array.shape[2] == 3 else selected

    def _charges(self, files: dict[str, np.ndarray], n: int) -> np.ndarray:
        """Charges of all systems, ``(B, n)``, from their file or from their products."""
        systems = len(files["loc"])
        checked = {}
        for name, shapes in {"charges": [(n, 1), (n,)], "edges": [(n, n)]}.items():
            if name in files:
                if files[name].shape not in [(systems, *shape) for shape in shapes]:
                    _refuse(
                        self._files[name],
                        f"has an array of shape {files[name].shape}, which does not fit the {systems} "
                        f"systems of {n} particles of {self._files['loc'].name}",
                        "copy both from one set",
                    )
                checked[name] = _finite(self._files[name], files[name])
        if "charges" not in checked:
            return self._charges_from_products(checked["edges"])
        charge = checked["charges"].reshape(systems, n)
        if "edges" in checked and not _are_products(checked["edges"], charge):
            _refuse(
                self._files["edges"],
                f"does not have the products of {self._files['charges'].name}",
                "copy both from one set",
            )
        return charge

    def _charges_from_products(self, products: np.ndarray) -> np.ndarray:
        charge = products[:, 0].copy()
        charge[:, 0] = 1  # the diagonal may be anything
        if not ((np.abs(charge) == 1).all() and _are_products(products, charge)):
            _refuse(
                self._files["edges"],
                "does not have products of charges of 1 and -1",
                "name a set of charged particles, or add its file of charges",
            )
        return charge


def _check_frames(frames: tuple[int, int]) -> tuple[int, int]:
    numbers = [as_integer(frame) for frame in frames] if isinstance(frames, (tuple, list)) else []
    if len(numbers) != 2 or None in numbers or not 0 <= numbers[0] < numbers[1]:
        raise DGLError(f"Expected frames to be two increasing integers of at least 0, got {frames!r}.")
    return numbers[0], numbers[1]


def _find(folder: Path, split: str, suffix: str | None) -> dict[str, Path]:
    """The files of a split: loc, vel, and charges or edges or both."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise DGLError(
            f"Cannot list charged particles in {folder}: {reason(error)}; name their folder in raw_dir."
        ) from error
    start = f"loc_{split}"
    ends = [
        name[len(start) : -len(".npy")] for name in names if name.startswith(start) and name.endswith(".npy")
    ]
    if suffix is not None:
        ends = [end for end in ends if end.removeprefix("_") == suffix]
    if len(ends) != 1:
        raise DGLError(_no_unique_set(folder, f"{start}_{suffix or '*'}.npy", names, ends))
    files = {name: folder / f"{name}_{split}{ends[0]}.npy" for name in ("loc", "vel", "charges", "edges")}
    present = {name: path for name, path in files.items() if path.name in names}
    has_charges = "charges" in present or "edges" in present
    missing = "vel" if "vel" not in present else None if has_charges else "charges"
    if missing:
        _refuse(files["loc"], f"exists without {files[missing].name}", "copy both from one set")
    return present


def _no_unique_set(folder: Path, pattern: str, names: list[str], ends: list[str]) -> str:
    if ends:
        suffixes = ", ".join(repr(end.removeprefix("_")) for end in ends)
        return f"{folder} contains more than one set of charged particles; choose one in suffix: {suffixes}."
    pickles = [name for name in names if name.endswith(".pkl")]
    if pickles:
        return (
            f"{folder / pickles[0]} is a pickle, which may run code when it is read; if you trust it, save "
            f"its arrays points, vel and charges with numpy.save as {pattern}, vel_… and charges_…."
        )
    return f"Expected a file {pattern} in {folder}, got none; name the folder of the .npy files in raw_dir."


def _open(path: Path) -> np.ndarray:
    """The memory-mapped array of a file."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except PermissionError as error:
        raise DGLError(f"Cannot read {path}: permission denied; allow it or copy the file.") from error
    except Exception as error:  # NumPy raises exceptions of many types for a corrupt header
        raise DGLError(f"{path} is not a complete .npy file; copy or generate it again.") from error
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        _refuse(path, "has no array of numbers", "copy or generate it again")
    return array


def _finite(path: Path, array: np.ndarray) -> np.ndarray:
    """The numbers in float64, if they are finite in float32."""
    array = np.asarray(array, dtype=np.float64)
    finite = in_float32_range(array).reshape(len(array), -1).all(1)
    if not finite.all():
        row = int(finite.argmin())
        _refuse(path, f"has NaN or infinity in system {row}", "generate it again")
    return array


def _are_products(products: np.ndarray, charge: np.ndarray) -> bool:
    """Whether they are those of the charges, except on the diagonal."""
    apart = ~np.eye(charge.shape[1], dtype=bool)
    return np.array_equal(products[:, apart], (charge[:, :, None] * charge[:, None])[:, apart])


def _refuse(path: Path, fault: str, remedy: str) -> NoReturn:
    raise DGLError(f"{path} {fault}; {remedy}.")
