"""Every reader on mutated files and on random bytes, with fixed seeds."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgl_orient.data.io import EXTENSIONS
from tests.data.io.samples import CLOUDS, PLY_FACE, PLY_HEAD
from tests.fuzzing import TARGETS, Target, _read_cloud, check, limited_memory, mutate

bounded = settings(derandomize=True, deadline=None, max_examples=60, database=None)


@pytest.fixture(scope="module", autouse=True)
def memory():
    with limited_memory():
        yield


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@bounded
@given(seed=st.integers(0, 2**32))
def test_mutated_files_give_finite_points_or_a_sentence(tmp_path_factory, target, seed):
    content = mutate(target.name, target.content, random.Random(seed))
    check(target, content, tmp_path_factory.getbasetemp())


STARTS = {
    ".ply": [
        PLY_HEAD + PLY_FACE + "end_header\n",
        PLY_HEAD.replace("ascii", "binary_big_endian") + "end_header\n",
    ],
    ".off": ["OFF\n", "OFF\n3 1 0\n"],
    ".obj": ["v 0 0 0\nv 1 0 0\nv 0 1 0\nf "],
    ".stl": ["solid a\nfacet normal 0 0 1\nouter loop\nvertex "],
    ".glb": ["glTF\x02\0\0\0"],
    ".npy": ["\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }"],
    ".npz": ["PK\x03\x04"],
    ".pcd": [CLOUDS["compressed.pcd"][:200].split(b"DATA")[0].decode() + "DATA binary_compressed\n"],
}


@pytest.mark.parametrize("suffix", EXTENSIONS)
@bounded
@given(data=st.data())
def test_random_bytes_give_finite_points_or_a_sentence(tmp_path_factory, suffix, data):
    start = data.draw(st.sampled_from(["", *STARTS.get(suffix, ["1 2 3\n"])]))
    rest = data.draw(st.one_of(st.binary(max_size=200), st.text("0123456789 .-e\nvf/", max_size=200)))
    content = start.encode("latin-1") + (rest.encode() if isinstance(rest, str) else rest)
    check(Target(f"random{suffix}", b"", _read_cloud), content, tmp_path_factory.getbasetemp())
