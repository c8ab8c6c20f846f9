import os
import pickle

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data.charged_particle_files import ChargedParticleFiles
from dgl_orient.data.simulation import Physics, simulate

AS_RELEASED = Physics(cap="component", staggered=True)
SUFFIX = "charged5_initvel1small"


def released(count=4, n=5, frames=49, every=10, seed=0):
    """Arrays as the EGNN paper's generator saves them; their first frame is that after ``every`` steps."""
    rng = np.random.default_rng(seed)
    pos, vel = 2 * rng.normal(size=(count, n, 3)), 0.3 * rng.normal(size=(count, n, 3))
    charge = rng.choice([-1.0, 1.0], (count, n, 1))
    positions, velocities = simulate(pos, vel, charge, frames * every, every, AS_RELEASED)
    loc, vel = (array[1:].transpose(1, 0, 3, 2) for array in (positions, velocities))  # (B, T, 3, n)
    return dict(loc=loc, vel=vel, charges=charge, edges=charge * charge.swapaxes(1, 2))


def save(folder, arrays, split="train", suffix=SUFFIX):
    for name, array in arrays.items():
        np.save(folder / f"{name}_{split}_{suffix}.npy", array)
    return folder


def node(dataset, name):
    return dataset.clouds.node[name].reshape(len(dataset), -1, dataset.clouds.node[name].shape[-1])


def refusal(folder, **options):
    with pytest.raises(DGLError) as error:
        ChargedParticleFiles(folder, **options)
    assert str(error.value).count("\n") == 0
    return str(error.value)


def test_reads_the_frames_that_the_egnn_paper_takes(tmp_path):
    arrays = released()
    dataset = ChargedParticleFiles(save(tmp_path, arrays))
    assert len(dataset) == 4 and dataset.gravity is None
    for i in range(4):
        data = dataset[i].ndata
        assert np.array_equal(data["pos"], arrays["loc"][i, 30].T.astype(np.float32))
        assert np.array_equal(data["vel"], arrays["vel"][i, 30].T.astype(np.float32))
        assert np.array_equal(data["target_pos"], arrays["loc"][i, 40].T.astype(np.float32))
        assert np.array_equal(data["target_vel"], arrays["vel"][i, 40].T.astype(np.float32))
        assert np.array_equal(data["charge"], arrays["charges"][i].astype(np.float32))


def test_the_simulator_goes_on_where_a_file_is(tmp_path):
    dataset = ChargedParticleFiles(save(tmp_path, released()), frames=(10, 20))
    state = [node(dataset, name) for name in ("pos", "vel", "charge")]
    positions, velocities = simulate(*state, [100], physics=AS_RELEASED)
    assert np.allclose(positions[0], node(dataset, "target_pos"), atol=1e-5)
    assert np.allclose(velocities[0], node(dataset, "target_vel"), atol=1e-5)


@pytest.mark.parametrize("charges", ["(B, n)", "absent", "absent, diagonal of 0"])
def test_either_order_of_axes_and_either_way_to_say_the_charges(tmp_path, charges):
    arrays = released()
    expected = arrays["charges"].copy()
    arrays["loc"], arrays["vel"] = (arrays[name].swapaxes(2, 3) for name in ("loc", "vel"))
    if charges == "(B, n)":
        arrays["charges"] = arrays["charges"][..., 0]
    else:
        del arrays["charges"]
        expected *= expected[:, :1]  # of a whole system's sign nothing is known: the first is positive
    if charges == "absent, diagonal of 0":
        arrays["edges"] = arrays["edges"] * (1 - np.eye(5))
    dataset = ChargedParticleFiles(save(tmp_path, arrays))
    assert np.array_equal(node(dataset, "charge"), expected)
    assert np.array_equal(node(dataset, "pos"), arrays["loc"][:, 30].astype(np.float32))


def test_splits_suffixes_frames_and_size(tmp_path):
    small, large = released(), released(frames=9, seed=1)
    save(tmp_path, small, "valid")
    save(tmp_path, large, "valid", "charged5_initvel1")
    assert f"{SUFFIX!r}" in refusal(tmp_path, split="val")
    dataset = ChargedParticleFiles(tmp_path, "val", "charged5_initvel1", frames=(6, 8), size=3)
    assert len(dataset) == 3
    assert np.array_equal(node(dataset, "target_pos"), large["loc"][:3, 8].swapaxes(1, 2).astype(np.float32))


def test_a_changed_file_is_read_again(tmp_path):
    folder, kept = tmp_path / "raw", tmp_path / "kept"
    folder.mkdir()
    for seed in (0, 1):
        arrays = released(seed=seed)
        dataset = ChargedParticleFiles(save(folder, arrays), save_dir=kept)
        assert np.array_equal(node(dataset, "pos"), arrays["loc"][:, 30].swapaxes(1, 2).astype(np.float32))


@pytest.mark.parametrize(
    "name, change, sentence",
    [
        ("loc", lambda a: a[:, :, :2], "instead of (B, T, 3, n) or (B, T, n, 3)"),
        ("loc", lambda a: a[0], "instead of (B, T, 3, n) or (B, T, n, 3)"),
        ("loc", lambda a: a[:0], "instead of (B, T, 3, n) or (B, T, n, 3)"),
        ("loc", lambda a: a[:, :9], "has 9 times"),
        ("vel", lambda a: a[:, :, :, :4], "does not fit loc_train"),
        (
            "vel",
            lambda a: np.where(np.arange(4)[:, None, None, None] == 2, np.nan, a),
            "NaN or infinity in system 2",
        ),
        ("loc", lambda a: 1e300 * a, "NaN or infinity in system 0"),
        ("loc", lambda a: a.astype(str), "has no array of numbers"),
        ("loc", lambda a: a.astype(object), "is not a complete .npy file"),
        ("charges", lambda a: a[:3], "does not fit the 4 systems of 5 particles of loc_train"),
        ("edges", lambda a: a[:, :4], "does not fit the 4 systems of 5 particles of loc_train"),
        ("edges", lambda a: -a, "does not have the products of charges_train"),
    ],
)
def test_bad_arrays_are_answered_with_a_sentence_that_names_the_file(tmp_path, name, change, sentence):
    arrays = released()
    arrays[name] = change(arrays[name])
    message = refusal(save(tmp_path, arrays))
    assert message.startswith(str(tmp_path / f"{name}_train_{SUFFIX}.npy")) and sentence in message


@pytest.mark.parametrize("edges", [np.ones((4, 5, 5)) - 2 * np.eye(5)[::-1], np.full((4, 5, 5), 0.5)])
def test_edges_of_springs_are_not_charges(tmp_path, edges):
    arrays = released()
    del arrays["charges"]
    assert "products of charges of 1 and -1" in refusal(save(tmp_path, arrays | {"edges": edges}))


@pytest.mark.parametrize(
    "content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{'descr': (", b"PK\x03\x04", b"x" * 500]
)
def test_garbled_files_are_answered_with_a_sentence(tmp_path, content):
    path = save(tmp_path, released()) / f"vel_train_{SUFFIX}.npy"
    path.write_bytes(content)
    assert refusal(tmp_path).startswith(f"{path} is not a complete .npy file")


def test_truncated_files_are_answered_with_a_sentence(tmp_path):
    path = save(tmp_path, released()) / f"loc_train_{SUFFIX}.npy"
    content = path.read_bytes()
    for length in (len(content) - 1, 200, 100, 9):
        path.write_bytes(content[:length])
        assert refusal(tmp_path).startswith(f"{path} is not a complete .npy file")


def test_missing_files_and_folders_are_answered_with_a_sentence(tmp_path):
    assert f"{tmp_path / 'absent'}: no such file or directory" in refusal(tmp_path / "absent")
    (tmp_path / "file").touch()
    assert "not a directory" in refusal(tmp_path / "file")
    assert f"Expected a file loc_train_*.npy in {tmp_path}" in refusal(tmp_path)
    save(tmp_path, released())
    assert "Expected a file loc_train_other.npy" in refusal(tmp_path, suffix="other")
    os.remove(tmp_path / f"edges_train_{SUFFIX}.npy")
    os.remove(tmp_path / f"charges_train_{SUFFIX}.npy")
    assert f"exists without charges_train_{SUFFIX}.npy" in refusal(tmp_path)
    os.remove(tmp_path / f"vel_train_{SUFFIX}.npy")
    assert f"exists without vel_train_{SUFFIX}.npy" in refusal(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read anything")
def test_files_without_permission_are_answered_with_a_sentence(tmp_path):
    path = save(tmp_path, released()) / f"loc_train_{SUFFIX}.npy"
    path.chmod(0)
    assert refusal(tmp_path).startswith(f"Cannot read {path}: permission denied")


class Trap:
    """Unpickling it makes a folder."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_pickles_are_never_opened(tmp_path):
    sprung = tmp_path / "sprung"
    path = tmp_path / "ds_train_charged_3D_5_new.pkl"
    path.write_bytes(pickle.dumps(Trap(sprung)))
    assert refusal(tmp_path).startswith(f"{path} is a pickle")
    save(tmp_path, released())
    np.save(
        tmp_path / f"charges_train_{SUFFIX}.npy", np.array([Trap(sprung)], dtype=object), allow_pickle=True
    )
    assert "is not a complete .npy file" in refusal(tmp_path)
    (tmp_path / f"charges_train_{SUFFIX}.npy").write_bytes(path.read_bytes())
    assert "is not a complete .npy file" in refusal(tmp_path)
    assert not sprung.exists()


@pytest.mark.parametrize(
    "options, sentence",
    [
        (dict(split="valid"), "split to be one of 'train', 'val', 'test'"),
        (dict(frames=(40, 30)), "two increasing integers of at least 0, got (40, 30)"),
        (dict(frames=7), "two increasing integers of at least 0, got 7"),
        (dict(size=0), "size to be an integer of at least 1, got 0"),
        (dict(size=5), "has 4 systems, not size=5"),
        (dict(frames=(30, 49)), "has 49 times, numbered from 0, so not frames=(30, 49)"),
    ],
)
def test_bad_arguments_are_answered_with_a_sentence(tmp_path, options, sentence):
    assert sentence in refusal(save(tmp_path, released()), **options)
