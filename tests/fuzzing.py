"""Mutated files for every reader, recipes and checkpoints: each is read or a ``DGLError``, in bounded memory.

``python -m tests.fuzzing --minutes 10`` runs it for longer than the tests do.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import struct
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dgl import DGLError

from dgl_orient.config import recipe as recipes
from dgl_orient.config.build import make_model
from dgl_orient.data import PointCloudDataset, PointClouds, read_cloud
from dgl_orient.data.folder_listing import list_shape_files
from dgl_orient.data.io.hdf5 import read_hdf5
from dgl_orient.data.io.tables import read_table
from dgl_orient.train import checkpoint
from dgl_orient.zoo.loading import load_trained_model
from tests.data.io.samples import CLOUDS_AND_SCANS, MESHES
from tests.go import tiny

try:
    import h5py
except ImportError:
    h5py = None
try:
    import resource
except ImportError:  # Windows has no limit of memory
    resource = None

#: The memory that reading a file may take with the limits below.
MEMORY = 1 << 30
LIMITS = dict(max_points=100_000, max_bytes=1 << 24)
_NUMBERS = [
    b"0",
    b"-1",
    b"3",
    b"255",
    b"65536",
    b"4294967295",
    b"99999999999999999999",
    b"1e308",
    b"nan",
    b"",
]
_WORDS = [0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


class Target(NamedTuple):
    """A reader and a valid file for it."""

    name: str  #: of the file
    content: bytes
    read: Callable[[Path], None]  #: raises DGLError, or AssertionError if it reads something invalid


def _read_cloud(path: Path) -> None:
    cloud = read_cloud(path, num_points=10, **LIMITS)
    assert cloud["pos"].shape == (10, 3) and np.isfinite(cloud["pos"]).all()
    assert all(len(array) == 10 for array in cloud.values())


def _read_table(path: Path) -> None:
    assert np.isfinite(read_table(path, columns=(3, 6))).all()


def _list_files(path: Path) -> None:
    assert all(shape.label for shape in list_shape_files(path))


def _read_hdf5(path: Path) -> None:
    assert np.isfinite(read_hdf5(path, {"data": 3, "label": 2})["data"]).all()


def _read_cache(path: Path) -> None:
    path.replace(path.parent / _CACHE_NAME)
    dataset = _Cached(save_dir=path.parent)
    assert dataset.clouds.node["pos"].tolist() == [[1.0, 2.0, 3.0]] * 4


class _Cached(PointCloudDataset):
    """A data set whose cache is mutated: it is processed again, or unchanged."""

    def __init__(self, save_dir: Path) -> None:
        super().__init__("cached", save_dir=save_dir)

    def process(self) -> None:
        pos = np.array([[1.0, 2.0, 3.0]] * 4, np.float32)
        self.clouds = PointClouds(np.array([1, 3]), {"pos": pos}, {"label": np.array([0, 1])})

    def save(self) -> None:
        """Not at every check: waiting for the disk takes long."""


def _cache() -> tuple[str, bytes]:
    """Name and content of a cache file."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = _Cached(Path(folder))
        PointCloudDataset.save(dataset)
        return dataset.cache_path.name, dataset.cache_path.read_bytes()


def _hdf5_content() -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as arrays:
        arrays["data"], arrays["label"] = np.ones((4, 8, 3), np.float32), np.zeros((4, 1), int)
    return file.getvalue()


def _load_recipe(path: Path) -> None:
    try:
        recipes.load(path)
    except recipes.RecipeError as error:
        assert error.problems and not any("\n" in problem for problem in error.problems)


def _load_checkpoint(path: Path) -> None:
    """A checkpoint with the mutated header, or the bytes themselves where they are no JSON."""
    try:
        header = json.loads(path.read_bytes())
        checkpoint.save(path, header | {"weights": _WEIGHTS})
    except (ValueError, TypeError, OverflowError):
        pass
    try:
        load_trained_model(path)
    except DGLError as error:
        assert str(path) in str(error), f"not a sentence about the file: {error}"


_RECIPE = tiny.recipe("pointcls")
_METADATA = {"num_classes": 3, "class_names": ["chair", "mug", "lamp"], "gravity": "z"}
_WEIGHTS = checkpoint.weights_of(make_model(_RECIPE, _METADATA))
_HEADER = {"task": "pointcls", "recipe": _RECIPE, "metadata": _METADATA, "tests": {"test": {"accuracy": 0.5}}}


def _as_bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


_CACHE_NAME, _CACHE_CONTENT = _cache()
TARGETS = [
    *(
        Target(name, _as_bytes(content), _read_cloud)
        for name, content in {**CLOUDS_AND_SCANS, **MESHES}.items()
    ),
    Target("modelnet.txt", b"0.5,1,2,0,0,1\n3,4,5,0,1,0\n", _read_table),
    Target("cache.bin", _CACHE_CONTENT, _read_cache),
    *([] if h5py is None else [Target("arrays.h5", _hdf5_content(), _read_hdf5)]),
    Target("recipe.yaml", json.dumps(_RECIPE, indent=1).encode(), _load_recipe),
    Target("checkpoint.pth", json.dumps(_HEADER).encode(), _load_checkpoint),
    Target("listing.csv", b"path,label,split\nlisting.csv,a,train\n", _list_files),
]


def check(target: Target, content: bytes, folder: Path) -> None:
    """Raise AssertionError if a file with this content is neither read nor refused with a sentence."""
    path = folder / target.name
    path.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(path)
    except DGLError as error:
        assert str(path) in str(error) and "\n" not in str(error), f"not a sentence about the file: {error}"
        assert not isinstance(error.__cause__, MemoryError), f"too much memory: {error}"


@contextmanager
def limited_memory(size: int = MEMORY) -> Iterator[None]:
    """Within it, this process cannot allocate more than so many further bytes."""
    if resource is None or not Path("/proc/self/statm").exists():
        yield
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def mutate(name: str, content: bytes, rng: random.Random) -> bytes:
    """The content with one to four random changes, in the container or in what it contains."""
    inner = {".glb": _mutate_glb, ".npz": _mutate_npz, ".pth": _mutate_header, ".yaml": _mutate_header}.get(
        Path(name).suffix
    )
    if inner is not None and rng.random() < 0.7:
        return inner(content, rng)
    for _ in range(rng.randint(1, 4)):
        content = rng.choice(_MUTATIONS)(content, rng)
    return content


def _place(content: bytes, rng: random.Random) -> int:
    """A position, in the header more often than elsewhere."""
    return rng.randrange(min(len(content), rng.choice([64, 512, len(content) or 1])) or 1)


def _replace_byte(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def _replace_word(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + struct.pack("<I", rng.choice(_WORDS)) + content[at + 4 :]


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: _place(content[::-1], rng)] if rng.random() < 0.2 else content[: -_place(content, rng)]


def _delete(content: bytes, rng: random.Random) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at + rng.choice([1, 2, 4, 16, 100]) :]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    at, length = _place(content, rng), rng.choice([1, 2, 4, 16, 100])
    return content[:at] + content[at : at + length] * rng.choice([2, 3, 50]) + content[at + length :]


def _replace_number(content: bytes, rng: random.Random) -> bytes:
    numbers = list(re.finditer(rb"-?\d+(\.\d+)?", content[:4096]))
    if not numbers:
        return _replace_byte(content, rng)
    start, stop = rng.choice(numbers).span()
    return content[:start] + rng.choice(_NUMBERS) + content[stop:]


_MUTATIONS = [_replace_byte, _replace_word, _truncate, _delete, _repeat, _replace_number, _replace_number]


def _mutate_glb(content: bytes, rng: random.Random) -> bytes:
    """Another JSON header with the right length."""
    length = struct.unpack_from("<I", content, 12)[0]
    header, rest = json.loads(content[20 : 20 + length]), content[20 + length :]
    for _ in range(rng.randint(1, 3)):
        _mutate_json(header, rng)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    size = struct.pack("<II", 20 + len(text) + len(rest), len(text))
    return content[:8] + size + content[16:20] + text + rest


def _mutate_header(content: bytes, rng: random.Random) -> bytes:
    """JSON, which is YAML too, with other values."""
    header = json.loads(content)
    for _ in range(rng.randint(1, 3)):
        _mutate_json(header, rng)
    return json.dumps(header).encode()


def _mutate_json(value: dict | list, rng: random.Random) -> None:
    """Replace, remove or repeat a random value, at any depth."""
    while value:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if isinstance(value[key], (dict, list)) and value[key] and rng.random() < 0.8:
            value = value[key]
            continue
        change = rng.randrange(4)
        if change == 0:
            value.pop(key)
        elif change == 1 and isinstance(value, list):
            value.extend([value[key]] * rng.choice([1, 1000]))
        else:
            value[key] = rng.choice([0, -1, 1, 2**31, 10**12, 0.5, "VEC3", "other.bin", None, [], {}, [[]]])
        return


def _mutate_npz(content: bytes, rng: random.Random) -> bytes:
    """Arrays with changes in an archive with the right checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    if rng.random() < 0.2:
        members.append(rng.choice(members))
    compression = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", compression) as archive:
        warnings.simplefilter("ignore")  # repeated names
        for name, member in members:
            archive.writestr(name, rng.choice(_MUTATIONS)(member, rng) if rng.random() < 0.6 else member)
    return file.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--failures", type=Path, default=Path(tempfile.gettempdir(), "fuzz-failures"))
    options = parser.parse_args()
    stop, count = time.monotonic() + 60 * options.minutes, 0
    with tempfile.TemporaryDirectory() as folder, limited_memory():
        while time.monotonic() < stop:
            rng = random.Random(f"{options.seed} {count}")
            target = rng.choice(TARGETS)
            content = mutate(target.name, target.content, rng)
            try:
                check(target, content, Path(folder))
            except Exception as error:
                options.failures.mkdir(parents=True, exist_ok=True)
                (options.failures / target.name).write_bytes(content)
                print(f"{options.failures / target.name} (--seed {options.seed}, file {count}): {error!r}")
                return 1
            count += 1
    print(f"{count:,} mutated files of {len(TARGETS)} kinds, none read wrongly (--seed {options.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
