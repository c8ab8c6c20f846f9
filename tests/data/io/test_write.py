import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data.io.read import read_cloud
from dgl_orient.data.io.write import write_cloud

trimesh = pytest.importorskip("trimesh")

POS = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)
NORMAL = (POS / np.linalg.norm(POS, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("suffix", [".ply", ".npz"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_written_is_read_again(tmp_path, suffix, dtype):
    path = tmp_path / f"cloud{suffix}"
    own = dict(
        part=np.arange(7) - 3,
        small=np.arange(7, dtype=np.uint8),
        inside=np.arange(7) > 3,
        score=np.linspace(0, 1, 7).astype(dtype),
        vel=torch.arange(21.0, dtype=torch.float64).view(7, 3).requires_grad_(),
        charge=np.ones((7, 1)),
    )
    write_cloud(path, torch.tensor(POS), NORMAL.astype(dtype), **own)
    cloud = read_cloud(path, dtype=dtype)
    assert set(cloud) == {"pos", "normal", *own}
    assert np.array_equal(cloud["pos"], POS)
    np.testing.assert_allclose(cloud["normal"], NORMAL, atol=1e-6)
    for name, values in own.items():
        given = values.detach().numpy() if name == "vel" else values
        assert np.array_equal(cloud[name], given) and cloud[name].shape == given.shape
        assert cloud[name].dtype == (dtype if given.dtype.kind == "f" else np.int64)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_others_read_what_is_written(tmp_path):
    write_cloud(tmp_path / "a.ply", POS, NORMAL)
    np.testing.assert_allclose(trimesh.load(tmp_path / "a.ply").vertices, POS)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (dict(pos=POS[0]), "pos"),
        (dict(pos=3.0), "pos"),
        (dict(pos=POS[:0]), "pos"),
        (dict(pos=POS, normal=NORMAL[:3]), "normal"),
        (dict(pos=POS * np.nan), "finite"),
        (dict(pos=POS, part=np.arange(3)), "part"),
        (dict(pos=POS, name=np.array(["a"] * 7)), "name"),
        (dict(pos=POS, x=np.arange(7)), "x"),
        (dict(pos=POS, feat_0=np.arange(7)), "feat_0"),
        (dict(pos=POS, frames=np.zeros((7, 3, 3))), "npz"),
        (dict(pos=POS, number=np.arange(7) + 2**40), "32 bits"),
        (dict(pos=POS, file=np.arange(7)), "file"),
    ],
)
def test_what_cannot_be_written_is_said_and_leaves_the_file_alone(tmp_path, arrays, words):
    path = tmp_path / "a.ply"
    path.write_text("before")
    with pytest.raises(DGLError, match=words) as caught:
        write_cloud(path, **arrays)
    assert "a.ply" in str(caught.value)
    assert path.read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_no_folder_no_format_and_a_full_disk(tmp_path, monkeypatch):
    for name in ("none/a.ply", "a.xyz"):
        with pytest.raises(DGLError, match=name):
            write_cloud(tmp_path / name, POS)

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DGLError, match=r"a\.ply"):
        write_cloud(tmp_path / "a.ply", POS)
    assert not list(tmp_path.iterdir())
