"""One cloud or mesh from a file of any common format, and clouds back into files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from dgl import DGLError

from .._validation import as_integer
from ..graph import farthest_point_sampling
from .arrays import load_npy, load_npz
from .meshes import read_geometry, sample_surface
from .pcd import read_pcd
from .tables import check_num_points
from .writing import write_cloud

__all__ = ["EXTENSIONS", "MESH_POINTS", "check_columns", "read_cloud", "resampled_rows", "write_cloud"]

#: How many points are drawn from a mesh if no number is given.
MESH_POINTS = 2048
# Among how many points the farthest are looked for.
_CHOICE = 10_000

_POS = (("pos",), ("points",), ("xyz",), ("x", "y", "z"))
_NORMAL = (("normal",), ("normals",), ("nx", "ny", "nz"), ("normal_x", "normal_y", "normal_z"))


def read_cloud(
    path: str | Path,
    num_points: int | None = None,
    seed: int = 0,
    columns: Sequence[int] | None = None,
    dtype: np.dtype | type = np.float32,
    sampling: str = "random",
) -> dict[str, np.ndarray]:
    """The points of one file.

    Meshes (.off .obj .stl .glb, and .ply with faces) are sampled by area, with the normals of their faces,
    which point outwards if the corners are in counter-clockwise order. Clouds may be .ply or .pcd, tables of
    text (.xyz .txt .csv; separated by commas, blanks or tabs, with or without a header) or arrays of NumPy
    (.npy .npz). A table or .npy array has 3 columns x, y, z or 6 with normals; an .npz archive has arrays
    ``pos`` (or ``points``, ``xyz``) and perhaps ``normal`` (or ``normals``). Normals are scaled to length 1,
    zero stays zero.

    Parameters
    ----------
    path : str or Path
        The file.
    num_points : int, optional
        How many points to return: of a larger cloud a part, of a smaller one all and some of them again. Not
        given, a cloud is returned whole and 2,048 points are drawn from a mesh.
    seed : int
        Of the sampling.
    columns : sequence of int, optional
        The 3 or 6 columns of a table or .npy array to take, counted from 0; needed where there are others.
    dtype : np.dtype
        Of the floating-point arrays.
    sampling : str
        Which part of a larger cloud or of a mesh: ``"random"``, or ``"farthest"``, which covers it evenly.
        Where there are more than 10,000 points, these are the farthest among so many random ones, or among
        ten times as many as are to be returned.

    Returns
    -------
    dict
        ``pos`` (n, 3); ``normal`` (n, 3) where known; other properties of the points in .ply, .pcd and
        .npz files as they stand, under their names. In .ply and .pcd files ``name_0``, ``name_1``, … are
        one array ``name``.

    Raises
    ------
    DGLError
        If the file cannot be read, or its coordinates are not all finite.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.data.files import read_cloud
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "triangle.off")
    ...     _ = path.write_text("OFF\\n3 1 0\\n0 0 0\\n2 0 0\\n0 2 0\\n3 0 1 2\\n")
    ...     cloud = read_cloud(path, num_points=100)
    >>> cloud["pos"].shape, cloud["normal"][0]
    ((100, 3), array([0., 0., 1.], dtype=float32))
    """
    path = Path(path)
    number, columns = check_num_points(num_points), check_columns(columns)
    if sampling not in ("random", "farthest"):
        raise DGLError(f"Expected the sampling 'random' or 'farthest', got {sampling!r}.")
    # From many more the farthest would be points that stray from the surface.
    choice = number if number is None or sampling == "random" else max(_CHOICE, 10 * number)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DGLError(
            f"Cannot tell the format of {path}: expected a name that ends in {_listed(EXTENSIONS)}."
        )
    rng = np.random.Generator(np.random.Philox(_check_seed(seed)))
    with _readable(path):
        data = reader(path, columns)
        if path.suffix.lower() in _MESHES and "triangles" in data:
            data = _sampled(path, data["triangles"], choice or MESH_POINTS, rng)
        cloud = _checked(path, data, np.dtype(dtype))
        size = len(cloud["pos"])
        if number is None or number == size:
            return cloud
        rows = resampled_rows(size, number if size < number else min(choice, size), rng)
        if len(rows) > number:
            rows = rows[_farthest(cloud["pos"][rows], number)]
        return {name: array[rows] for name, array in cloud.items()}


def resampled_rows(rows: int, number: int, rng: np.random.Generator) -> np.ndarray:
    """So many row numbers, drawn at random: none twice before each is there once.

    Examples
    --------
    >>> import numpy as np
    >>> from dgl_orient.data.files import resampled_rows
    >>> np.unique(resampled_rows(3, 5, np.random.default_rng(0)), return_counts=True)[1].max()
    2
    """
    rounds = -(-number // rows)
    return np.argsort(rng.random((rounds, rows)), kind="stable").ravel()[:number]


def _farthest(pos: np.ndarray, number: int) -> np.ndarray:
    points = torch.as_tensor(pos, dtype=torch.float64)
    return farthest_point_sampling(points, torch.tensor([number]), torch.tensor([len(points)])).numpy()


def check_columns(columns: Sequence[int] | None) -> tuple[int, ...] | None:
    """The numbers of 3 or 6 columns, or None where none are chosen."""
    if columns is None:
        return None
    chosen = [as_integer(each) for each in columns] if isinstance(columns, (Sequence, np.ndarray)) else []
    if len(chosen) not in (3, 6) or any(each is None or each < 0 for each in chosen):
        raise DGLError(f"Expected columns to be 3 or 6 numbers counted from 0, got {columns!r}.")
    return tuple(chosen)


def _read_table(path: Path, columns: Sequence[int] | None) -> dict[str, np.ndarray]:
    text = path.read_text("utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]
    separator = next((mark for mark in ",;" if lines and mark in lines[0]), None)
    # A first row with a number in it is no header, but perhaps garbled.
    if lines and not any(map(_is_number, lines[0].split(separator))):
        lines = lines[1:]
    if not lines:
        raise ValueError("it has no rows")
    try:
        table = np.loadtxt(lines, delimiter=separator, ndmin=2)
    except ValueError as error:
        reason = str(error).split(";")[0].rstrip(".")
        raise ValueError(f"it is no table of numbers ({reason})") from error
    return _split_columns(path, table, columns)


def _read_npy(path: Path, columns: Sequence[int] | None) -> dict[str, np.ndarray]:
    table = load_npy(path)
    if table is None or table.ndim != 2 or table.dtype.kind not in "fiu":
        given = "an archive" if table is None else f"{table.dtype} {table.shape}"
        raise DGLError(f"Expected numbers of shape (n, 3) or (n, 6) in {path}, got {given}.")
    return _split_columns(path, table, columns)


def _read_npz(path: Path, columns: Sequence[int] | None) -> dict[str, np.ndarray]:
    arrays = load_npz(path)
    if arrays is None:
        raise DGLError(f"Expected an archive in {path}, got a single array; rename it to .npy.")
    return arrays


def _split_columns(path: Path, table: np.ndarray, columns: Sequence[int] | None) -> dict[str, np.ndarray]:
    """The points of a table, and their normals if it has them."""
    number = table.shape[1]
    chosen = list(range(number)) if columns is None else list(columns)
    if len(chosen) not in (3, 6) or not all(0 <= column < number for column in chosen):
        asked = "" if columns is None else f" for columns={columns}"
        raise DGLError(
            f"Expected 3 columns x, y, z or 6 with normals in {path}, which has {number}{asked}; choose them "
            f"with columns, counted from 0, such as columns=(0, 1, 2), or --columns 0,1,2."
        )
    data = {"pos": table[:, chosen[:3]]}
    if len(chosen) == 6:
        length = np.linalg.norm(table[:, chosen[3:]].astype(np.float64), axis=1)
        # Without a name, three columns may just as well be a colour.
        if ((np.abs(length - 1) > 0.1) & (length > 0)).any():
            raise DGLError(
                f"Expected normals of length 1 in the last 3 of 6 columns of {path}, got lengths up to "
                f"{length.max():.3g}; if they are something else, choose columns=(0, 1, 2), or "
                f"--columns 0,1,2."
            )
        data["normal"] = table[:, chosen[3:]]
    return data


_MESHES = (".ply", ".off", ".obj", ".stl", ".glb")
_READERS: dict[str, Callable[[Path, Sequence[int] | None], dict[str, np.ndarray]]] = {
    **dict.fromkeys(_MESHES, lambda path, columns: _joined_columns(read_geometry(path))),
    **dict.fromkeys([".xyz", ".txt", ".csv"], _read_table),
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".pcd": lambda path, columns: _joined_columns(read_pcd(path)),
}
#: The endings of the names of files that can be read.
EXTENSIONS = tuple(_READERS)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Any failure within it becomes one sentence that names the file."""
    try:
        yield
    except DGLError:
        raise
    except FileNotFoundError as error:
        raise DGLError(f"There is no file {path}: check the path.") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DGLError(f"Cannot read {path}: {reason}; expected a file that may be read.") from error
    # Readers of garbled files fail in whatever way their code happens to.
    except Exception as error:
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DGLError(
            f"Cannot read {path} as {path.suffix.lower()}, it may be truncated or garbled: {reason}; get or "
            f"export it anew."
        ) from error


def _checked(path: Path, data: Mapping[str, np.ndarray], dtype: np.dtype) -> dict[str, np.ndarray]:
    """The arrays under our names and of our types, all with a row for each point."""
    data = dict(data)
    pos, normal = _taken(data, _POS), _taken(data, _NORMAL)
    if pos is None:
        raise DGLError(
            f"Expected coordinates x, y, z (in an .npz: an array pos, points or xyz) in {path}, found only "
            f"{_listed(data) or 'nothing'}."
        )
    main = {"pos": pos} | ({} if normal is None else {"normal": normal})
    for name, array in main.items():
        if array.ndim != 2 or array.shape[1] != 3 or len(array) != len(pos) or array.dtype.kind not in "fiu":
            raise DGLError(
                f"Expected numbers of shape (n, 3) as {name} in {path}, got {array.dtype} {array.shape}."
            )
        main[name] = array.astype(np.float64)
    if len(pos) == 0:
        raise DGLError(f"There are no points in {path}: it may be truncated, or leave it out.")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if normal is not None:
            length = np.linalg.norm(main["normal"], axis=1, keepdims=True)
            main["normal"] = np.where(length == 0, 0, main["normal"] / length)
        main = {name: array.astype(dtype) for name, array in main.items()}
    bad = ~np.isfinite(np.concatenate(list(main.values()), 1)).all(1)
    if bad.any():
        raise DGLError(
            f"Expected finite numbers in {path}, but {bad.sum()} of its {len(pos)} points have NaN or "
            f"infinite ones, the first is number {bad.argmax() + 1}; remove them."
        )
    return main | _others(data, len(pos), dtype)


def _sampled(
    path: Path, triangles: np.ndarray, number: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    if not np.isfinite(triangles).all():
        raise DGLError(f"Expected finite vertices in {path}, but some are NaN or infinite: repair the mesh.")
    sample = sample_surface(triangles, number, rng)
    if sample is None:
        raise DGLError(f"The {len(triangles)} faces in {path} have no area to sample: repair the mesh.")
    return sample


def _taken(data: dict[str, np.ndarray], spellings: Sequence[Sequence[str]]) -> np.ndarray | None:
    """The first of these that is there, taken out of the data."""
    for names in spellings:
        if all(name in data for name in names):
            parts = [np.asarray(data.pop(name)) for name in names]
            return parts[0] if len(parts) == 1 else np.stack(parts, 1)
    return None


def _joined_columns(data: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns ``name_0``, ``name_1``, … as one array ``name``."""
    joined: dict[str, np.ndarray | list[np.ndarray]] = {}
    for name, column in data.items():
        stem, _, digits = name.rpartition("_")
        parts = joined.setdefault(stem.rstrip("_"), []) if digits.isdecimal() and column.ndim == 1 else None
        if isinstance(parts, list) and int(digits) == len(parts):
            parts.append(column)
        else:
            joined[name] = column
    return {
        name: np.stack(value, 1) if isinstance(value, list) else value
        for name, value in joined.items()
        if not isinstance(value, list) or value
    }


def _others(data: Mapping[str, np.ndarray], rows: int, dtype: np.dtype) -> dict[str, np.ndarray]:
    kinds = {"f": dtype, "i": np.dtype(np.int64), "u": np.dtype(np.int64), "b": np.dtype(np.int64)}
    return {
        name: array.astype(kinds[array.dtype.kind])
        for name, array in data.items()
        if array.dtype.kind in kinds and array.ndim and len(array) == rows
    }


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    return " ".join(names)


def _check_seed(seed: int) -> int:
    number = as_integer(seed)
    if number is None:
        raise DGLError(f"Expected the seed to be an integer, got {seed!r}.")
    return number % 2**64
