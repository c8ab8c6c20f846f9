"""A point cloud from a file of any common format."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

from ..._atomic import reason
from ..._validation import as_integer, check_integer
from ..choices import SamplingMethod, check_choice
from ..sampling import check_num_points, farthest_rows, resample_rows, sample_surface
from .attributes import check_cloud, stack_columns
from .limits import MAX_BYTES, MAX_POINTS, Limits
from .meshes import read_geometry
from .numpy_files import read_npy, read_npz
from .pcd import read_pcd
from .tables import read_cloud_table, split_columns

__all__ = ["EXTENSIONS", "MESH_POINTS", "check_columns", "read_cloud"]

#: Number of points sampled from a mesh by default.
MESH_POINTS = 2048
# Farthest points are selected among so many random ones.
_FARTHEST_CANDIDATES = 10_000


def read_cloud(
    path: str | Path,
    num_points: int | None = None,
    seed: int = 0,
    columns: Sequence[int] | None = None,
    dtype: np.dtype | type = np.float64,
    sampling: SamplingMethod = "random",
    max_points: int = MAX_POINTS,
    max_bytes: int = MAX_BYTES,
) -> dict[str, np.ndarray]:
    """The points of one file.

    Meshes (.off .obj .stl .glb, and .ply with faces) are sampled by area, with the normals of their faces,
    which point outwards if the corners are in counter-clockwise order. Clouds may be .ply or .pcd, tables
    (.xyz .txt .csv; separated by commas, spaces or tabs, with or without a header) or NumPy arrays
    (.npy .npz). A table or .npy array has 3 columns x, y, z or 6 with normals; an .npz archive has arrays
    ``pos`` (or ``points``, ``xyz``) and optionally ``normal`` (or ``normals``). Normals are scaled to length
    1, zero stays zero.

    Only regular files are read, and no other file than the named one: the materials and textures of a mesh
    are ignored, and a .glb file must contain its buffers. Nothing in a file is executed.

    Parameters
    ----------
    path : str or Path
        The file.
    num_points : int, optional
        Number of points: of a larger cloud a subset, of a smaller one all and some of them repeated. By
        default all points of a cloud, and 2,048 of a mesh.
    seed : int
        Seed of the sampling.
    columns : sequence of int, optional
        The 3 or 6 columns of a table or .npy array to read, counted from 0; required where there are others.
    dtype : np.dtype
        Type of the floating-point arrays. Center coordinates far from the origin before float32: see
        :class:`dgl_orient.data.NormalizeScale`.
    sampling : str
        How to select points of a larger cloud or of a mesh: ``"random"``, or ``"farthest"``, which covers it
        evenly: farthest-point sampling among at most 10,000 random points, or among ten times
        ``num_points``.
    max_points : int
        The largest number of points or faces of a file, by default 20 million.
    max_bytes : int
        The largest size of a file, and of the arrays that it announces, by default 1 GiB. Both limits are
        checked before memory is allocated, and reading takes a small multiple of ``max_bytes``.

    Returns
    -------
    dict
        ``pos`` (n, 3); ``normal`` (n, 3) if present; other attributes of the points in .ply, .pcd and
        .npz files under their names. In .ply and .pcd files ``name_0``, ``name_1``, … are one array
        ``name``.

    Raises
    ------
    DGLError
        If the file cannot be read, exceeds the limits, or its coordinates are not all finite.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dgl_orient.data import read_cloud
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "triangle.off")
    ...     _ = path.write_text("OFF\\n3 1 0\\n0 0 0\\n2 0 0\\n0 2 0\\n3 0 1 2\\n")
    ...     cloud = read_cloud(path, num_points=100)
    >>> cloud["pos"].shape, cloud["normal"][0]
    ((100, 3), array([0., 0., 1.]))
    """
    path = Path(path)
    number, columns = check_num_points(num_points), check_columns(columns)
    check_choice("sampling", sampling, SamplingMethod)
    seed = check_integer("seed", seed) % 2**64
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DGLError(f"Unknown format of {path}: expected a name that ends in {' '.join(EXTENSIONS)}.")
    limits = Limits(
        path, check_integer("max_points", max_points, 1), check_integer("max_bytes", max_bytes, 1)
    )
    rng = np.random.Generator(np.random.Philox(seed))
    candidates = number if number is None or sampling == "random" else max(_FARTHEST_CANDIDATES, 10 * number)
    with _reading(path):
        limits.check_file()
        data = reader(limits, columns)
        if path.suffix.lower() in _MESHES and "triangles" in data:
            data = _sample_mesh(path, data["triangles"], candidates or MESH_POINTS, rng)
        cloud = check_cloud(path, data, np.dtype(dtype))
        size = len(cloud["pos"])
        if number is None or number == size:
            return cloud
        count = number if size < number else min(candidates, size)
        rows = resample_rows(size, count, lambda *shape: rng.random(shape))
        if len(rows) > number:
            rows = rows[farthest_rows(cloud["pos"][rows], number)]
        return {name: array[rows] for name, array in cloud.items()}


def check_columns(columns: Sequence[int] | None) -> tuple[int, ...] | None:
    """The indices of 3 or 6 columns, or None where none are chosen."""
    if columns is None:
        return None
    chosen = [as_integer(each) for each in columns] if isinstance(columns, (Sequence, np.ndarray)) else []
    if len(chosen) not in (3, 6) or any(each is None or each < 0 for each in chosen):
        raise DGLError(f"Expected columns to be 3 or 6 integers counted from 0, got {columns!r}.")
    return tuple(chosen)


def _read_npy(limits: Limits, columns: Sequence[int] | None) -> dict[str, np.ndarray]:
    return split_columns(limits.path, read_npy(limits), columns)


_MESHES = (".ply", ".off", ".obj", ".stl", ".glb")
_READERS: dict[str, Callable[[Limits, Sequence[int] | None], dict[str, np.ndarray]]] = {
    **dict.fromkeys(_MESHES, lambda limits, columns: stack_columns(read_geometry(limits))),
    **dict.fromkeys([".xyz", ".txt", ".csv"], read_cloud_table),
    ".npy": _read_npy,
    ".npz": lambda limits, columns: read_npz(limits),
    ".pcd": lambda limits, columns: stack_columns(read_pcd(limits)),
}
#: The file extensions that can be read.
EXTENSIONS = tuple(_READERS)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn any failure into one sentence that names the file."""
    try:
        yield
    except DGLError:
        raise
    except FileNotFoundError as error:
        raise DGLError(f"There is no file {path}: check the path.") from error
    except OSError as error:
        raise DGLError(f"Cannot read {path}: {reason(error)}; expected a readable file.") from error
    # The readers of damaged files raise exceptions of any type.
    except Exception as error:
        fault = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise DGLError(
            f"Cannot read {path} as {path.suffix.lower()}, it may be truncated or corrupt: {fault}; copy or "
            f"export it again."
        ) from error


def _sample_mesh(
    path: Path, triangles: np.ndarray, num_points: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    if not np.isfinite(triangles).all():
        raise DGLError(f"Expected finite vertices in {path}, but some are NaN or infinite: repair the mesh.")
    sample = sample_surface(triangles, num_points, rng)
    if sample is None:
        raise DGLError(f"The {len(triangles)} faces in {path} have no area to sample: repair the mesh.")
    return sample
