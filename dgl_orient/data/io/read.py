"""A point cloud from a file of any common format."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from dgl import DGLError

from ..._atomic import reason
from ..._validation import as_integer, check_choice, check_integer
from ..choices import SamplingMethod
from ..sampling import check_num_points, farthest_rows, resample_rows, sample_surface
from .arrays import split_array
from .attributes import check_cloud, stack_columns, warn_dropped
from .cloud_tables import read_cloud_table
from .e57 import read_e57
from .las import read_las
from .leica import read_pts, read_ptx
from .limits import MAX_BYTES, MAX_POINTS, Limits, extension_of
from .meshes import MESHES, read_geometry
from .numpy_files import read_npy, read_npz
from .pcd import read_pcd
from .torch_files import read_tensors

__all__ = ["EXTENSIONS", "MESH_POINTS", "check_columns", "has_known_extension", "read_cloud"]

#: Number of points sampled from a mesh by default.
MESH_POINTS = 2048
# Farthest points are selected among so many random ones.
_FARTHEST_CANDIDATES = 10_000


def read_cloud(
    path: str | Path,
    num_points: int | None = None,
    seed: int = 0,
    columns: Sequence[int] | Sequence[str] | None = None,
    dtype: np.dtype | type = np.float64,
    sampling: SamplingMethod = "random",
    max_points: int = MAX_POINTS,
    max_bytes: int = MAX_BYTES,
    attributes: Mapping[str, np.ndarray] | None = None,
    index: int | None = None,
) -> dict[str, np.ndarray]:
    """The points of one file.

    Meshes (.off .obj .stl .glb .gltf .3mf .dae, and .ply with faces) are sampled by area, with the normals of
    their faces, which point outwards if the corners are in counter-clockwise order, and with the colours of
    their vertices or faces. Clouds may be .ply, .pcd, scans (.las .laz .e57 .pts .ptx), tables (.xyz .txt
    .csv .asc; separated by commas, semicolons, spaces or tabs) or arrays (.npy .npz .pt). Any of them may be
    compressed by gzip, such as .ply.gz.

    A table with a header is read by its names x, y, z (with any of nx, ny, nz, red, green, blue, intensity
    and others), one without by its 3 columns, or 6 with normals or colours, or if it has 3 or 6 long rows, by
    these. An array is (n, 3), (3, n) or (n, 6), or has records with such names; (b, n, 3) are several clouds,
    of which ``index`` chooses one. An archive has arrays ``pos`` (or ``points``, ``xyz``) and optionally
    ``normal`` and others, or just one. Normals are scaled to length 1, zero stays zero.

    Points without finite coordinates, as depth images have them where there was no return, are dropped with
    a :class:`~dgl_orient.data.io.CloudWarning` that says how many.

    Only regular files are read, and no other file than the named one: the materials and textures of a mesh
    are ignored, and only .gltf files read their buffers from .bin files beside them. Nothing in a file is
    executed.

    Parameters
    ----------
    path : str or Path
        The file.
    num_points : int, optional
        Number of points: of a larger cloud a subset, of a smaller one all and some of them repeated. By
        default all points of a cloud, and 2,048 of a mesh.
    seed : int
        Seed of the sampling.
    columns : sequence of int or str, optional
        The 3 or 6 columns of a table or array to read: numbers counted from 0, or names of the header;
        required where they are not clear.
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
    attributes : mapping of str to np.ndarray, optional
        Further arrays with a row for each point of the file, which are selected with the points.
    index : int, optional
        Which cloud of an array of several, counted from 0.

    Returns
    -------
    dict
        ``pos`` (n, 3); if present ``normal`` (n, 3), ``color`` (n, 3) from 0 to 1 and ``intensity`` (n,) as
        in the file, both float32; other attributes of the points under their names. In .ply and .pcd files
        ``name_0``, ``name_1``, … are one array ``name``.

    Raises
    ------
    DGLError
        If the file cannot be read, exceeds the limits, or has too few points.

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
    index = None if index is None else check_integer("index", index, 0)
    reader = _READERS.get(extension_of(path))
    if reader is None:
        raise DGLError(
            f"Unknown format of {path}: expected a name that ends in {' '.join(EXTENSIONS)}, or such a "
            f"name and .gz."
        )
    limits = Limits(
        path, check_integer("max_points", max_points, 1), check_integer("max_bytes", max_bytes, 1)
    )
    rng = np.random.Generator(np.random.Philox(seed))
    candidates = number if number is None or sampling == "random" else max(_FARTHEST_CANDIDATES, 10 * number)
    with _reading(path):
        limits.check_file()
        data = reader(limits.unpacked(), columns, index)
        if "triangles" in data:
            data = _sample_mesh(path, data, candidates or MESH_POINTS, rng)
        data |= attributes or {}
        cloud = check_cloud(path, data, np.dtype(dtype))
        size = len(cloud["pos"])
        if number is None or number == size:
            return cloud
        count = number if size < number else min(candidates, size)
        rows = resample_rows(size, count, lambda *shape: rng.random(shape))
        if len(rows) > number:
            rows = rows[farthest_rows(cloud["pos"][rows], number)]
        return {name: array[rows] for name, array in cloud.items()}


def check_columns(columns: Sequence[int] | Sequence[str] | None) -> tuple[int, ...] | tuple[str, ...] | None:
    """The indices or the names of 3 or 6 columns, or None where none are chosen."""
    if columns is None:
        return None
    chosen = list(columns) if isinstance(columns, (Sequence, np.ndarray)) else []
    if not isinstance(columns, str) and chosen and all(isinstance(each, str) and each for each in chosen):
        names = tuple(chosen)
    else:
        names = tuple(as_integer(each) for each in chosen)
    bad = any(each is None or (isinstance(each, int) and each < 0) for each in names)
    if len(names) not in (3, 6) or bad:
        raise DGLError(
            f"Expected columns to be 3 or 6 integers counted from 0, or names of columns, got {columns!r}."
        )
    return names


def has_known_extension(path: Path) -> bool:
    """Whether a file has an extension that can be read, or such a one and .gz.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dgl_orient.data.io import has_known_extension
    >>> [has_known_extension(Path(name)) for name in ("a.PLY", "a.ply.gz", "a.tar.gz", "a.jpg")]
    [True, True, False, False]
    """
    return extension_of(path) in EXTENSIONS


def _read_npy(limits: Limits, columns: Columns, index: int | None) -> dict[str, np.ndarray]:
    return split_array(limits.path, read_npy(limits), columns, index)


def _read_npz(limits: Limits, columns: Columns, index: int | None) -> dict[str, np.ndarray]:
    return _named_arrays(limits.path, read_npz(limits), columns, index)


def _read_pt(limits: Limits, columns: Columns, index: int | None) -> dict[str, np.ndarray]:
    return _named_arrays(limits.path, read_tensors(limits), columns, index)


def _named_arrays(
    path: Path, data: dict[str, np.ndarray], columns: Columns, index: int | None
) -> dict[str, np.ndarray]:
    """The arrays of an archive; a single one, or clouds in another shape than (n, 3), as in an .npy file."""
    name = next((name for name in ("pos", "points", "xyz") if name in data), None)
    if name is None and list(data) == ["array"]:
        return split_array(path, data["array"], columns, index)
    if name is not None and data[name].shape[1:] != (3,):
        return split_array(path, data[name], columns, index)
    return data


Columns = Sequence[int] | Sequence[str] | None
_READERS: dict[str, Callable[[Limits, Columns, int | None], dict[str, np.ndarray]]] = {
    **dict.fromkeys(MESHES, lambda limits, columns, index: stack_columns(read_geometry(limits))),
    **dict.fromkeys(
        [".xyz", ".txt", ".csv", ".asc"], lambda limits, columns, index: read_cloud_table(limits, columns)
    ),
    ".pts": lambda limits, columns, index: read_pts(limits, columns),
    ".ptx": lambda limits, columns, index: read_ptx(limits),
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".pt": _read_pt,
    ".pcd": lambda limits, columns, index: stack_columns(read_pcd(limits)),
    **dict.fromkeys([".las", ".laz"], lambda limits, columns, index: read_las(limits)),
    ".e57": lambda limits, columns, index: read_e57(limits),
}
#: The file extensions that can be read; after any of them there may be .gz.
EXTENSIONS = tuple(_READERS)


#: Errors of a reader whose messages say nothing of the file, such as "list index out of range".
_WITHOUT_A_WORD = (AssertionError, AttributeError, IndexError, TypeError)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert any failure into one sentence that names the file."""
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
        fault = str(error).strip().split("\n")[0].rstrip(".")
        fault = f"it lacks {fault}" if isinstance(error, KeyError) else fault
        fault = "" if isinstance(error, _WITHOUT_A_WORD) or not fault else f": {fault}"
        raise DGLError(
            f"Cannot read {path} as {extension_of(path)}, it may be truncated or corrupt{fault}; copy or "
            f"export it again."
        ) from error


def _sample_mesh(
    path: Path, mesh: dict[str, np.ndarray], num_points: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    finite = np.isfinite(mesh["triangles"]).all((1, 2))
    if not finite.all():
        warn_dropped(path, int((~finite).sum()), len(finite), "faces")
        mesh = {name: array[finite] for name, array in mesh.items()}
    triangles = mesh["triangles"]
    corners = {name: array for name, array in mesh.items() if name != "triangles"}
    sample = sample_surface(triangles, num_points, rng, {n: _to_floats(each) for n, each in corners.items()})
    if sample is None:
        raise DGLError(f"The {len(triangles)} faces in {path} have no area to sample: repair the mesh.")
    return sample


def _to_floats(array: np.ndarray) -> np.ndarray:
    """Bytes as numbers from 0 to 1, so that they can be interpolated."""
    return array / 255 if array.dtype == np.uint8 else array.astype(np.float64)
