"""ModelNet: tiny sets in both layouts, their splits and cache, and a sentence for whatever is wrong."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data.modelnet import ModelNet10, ModelNet40

TEN = list(ModelNet10._subset)
NAMES = sorted([*TEN, "airplane", "xbox"])
COUNTS = {"train": 4, "test": 2}
TXT, HDF5 = "modelnet40_normal_resampled", "modelnet40_ply_hdf5_2048"
POINTS = 6


def shapes(part):
    """Name of the class, name of the shape and rows of six numbers, in the order of the lists."""
    rng = np.random.default_rng(len(part))
    for name in NAMES:
        for number in range(COUNTS[part]):
            number += 0 if part == "train" else COUNTS["train"]
            yield name, f"{name}_{number:04d}", rng.normal(size=(POINTS, 6)).round(6).astype(np.float32)


def write_txt(folder: Path) -> Path:
    root = folder / TXT
    for part in COUNTS:
        for name, shape, table in shapes(part):
            (root / name).mkdir(parents=True, exist_ok=True)
            np.savetxt(root / name / f"{shape}.txt", table, fmt="%.6f", delimiter=",")
        listed = [shape for _, shape, _ in shapes(part)]
        (root / f"modelnet40_{part}.txt").write_text("\n".join(listed) + "\n")
    (root / "modelnet40_shape_names.txt").write_text("\n".join(NAMES) + "\n")
    return root


def write_hdf5(folder: Path, without: str = "") -> Path:
    """In two files for each part."""
    h5py = pytest.importorskip("h5py")
    root = folder / HDF5
    root.mkdir(parents=True, exist_ok=True)
    for part in COUNTS:
        tables = np.stack([table for _, _, table in shapes(part)])
        labels = np.array([[NAMES.index(name)] for name, _, _ in shapes(part)], np.uint8)
        listed = []
        for number, rows in enumerate([slice(0, 5), slice(5, None)]):
            arrays = {"data": tables[rows, :, :3], "normal": tables[rows, :, 3:], "label": labels[rows]}
            with h5py.File(root / f"ply_data_{part}{number}.h5", "w") as file:
                for name in set(arrays) - {without}:
                    file[name] = arrays[name]
            listed.append(f"data/{HDF5}/ply_data_{part}{number}.h5\n")
        (root / f"{part}_files.txt").write_text("".join(listed))
    (root / "shape_names.txt").write_text("\n".join(NAMES) + "\n")
    return root


WRITERS = {"txt": write_txt, "hdf5": write_hdf5}


@pytest.fixture(params=WRITERS)
def root(request, tmp_path):
    return WRITERS[request.param](tmp_path)


@pytest.mark.parametrize("part", COUNTS)
def test_graphs_and_labels_are_those_of_the_files(root, part):
    data = ModelNet40(root, split="test" if part == "test" else "trainval", num_points=4, normals=True)
    expected = list(shapes(part))
    assert (len(data), data.num_classes, data.class_names, data.gravity) == (len(expected), 12, NAMES, "y")
    for (graph, label), (name, _, table) in zip(data, expected):
        assert data.class_names[label] == name
        assert set(graph.ndata) == {"pos", "normal"} and graph.num_edges() == 0
        torch.testing.assert_close(graph.ndata["pos"], torch.tensor(table[:4, :3]), atol=1e-6, rtol=0)
        torch.testing.assert_close(graph.ndata["normal"], torch.tensor(table[:4, 3:]), atol=1e-6, rtol=0)


def test_by_default_there_are_no_normals_and_none_takes_all_points(root):
    graph, _ = ModelNet40(root, num_points=None)[0]
    assert set(graph.ndata) == {"pos"} and graph.num_nodes() == POINTS


def test_the_folder_that_holds_the_download_will_do_too(root):
    inside, above = ModelNet40(root, num_points=4), ModelNet40(root.parent, num_points=4)
    np.testing.assert_array_equal(inside.clouds.node["pos"], above.clouds.node["pos"])


def test_both_layouts_give_the_same(tmp_path):
    txt, hdf5 = (ModelNet40(write(tmp_path), num_points=5, normals=True) for write in WRITERS.values())
    assert txt.class_names == hdf5.class_names
    np.testing.assert_array_equal(txt.labels, hdf5.labels)
    for name in ("pos", "normal"):
        np.testing.assert_allclose(txt.clouds.node[name], hdf5.clouds.node[name], atol=1e-6)


def test_train_and_val_divide_the_official_training_shapes(root):
    train, val, both = (
        ModelNet40(root, split=split, num_points=4, val_fraction=0.25)
        for split in ("train", "val", "trainval")
    )
    assert np.bincount(train.labels).tolist() == [3] * 12 and np.bincount(val.labels).tolist() == [1] * 12
    assert sorted([*train.rows, *val.rows]) == list(both.rows) == list(range(48))
    other = ModelNet40(root, split="val", num_points=4, val_fraction=0.25, split_seed=1)
    assert not np.array_equal(other.rows, val.rows)
    # Whatever the split or its seed, the training shapes are kept in one file.
    assert len(list(root.glob("*.npz"))) == 1


@pytest.mark.parametrize("listed", [False, True])
def test_modelnet10_is_the_ten_classes(root, listed):
    if listed and root.name == TXT:
        for part in COUNTS:
            own = [shape for name, shape, _ in shapes(part) if name in TEN]
            (root / f"modelnet10_{part}.txt").write_text("\n".join(own[::-1]))
    data, whole = ModelNet10(root, split="test", num_points=4), ModelNet40(root, split="test", num_points=4)
    assert data.class_names == TEN and data.num_classes == 10 and len(data) == 20
    backwards = listed and root.name == TXT
    rows = [row for row in range(len(whole)) if whole.class_names[whole.labels[row]] in TEN]
    for (graph, label), row in zip(data, rows[::-1] if backwards else rows):
        expected, expected_label = whole[row]
        assert data.class_names[label] == whole.class_names[expected_label]
        assert torch.equal(graph.ndata["pos"], expected.ndata["pos"])


def test_the_cache_is_used_and_kept_where_asked(root, tmp_path, capsys):
    place = tmp_path / "cache"
    first = ModelNet40(root, num_points=4, save_dir=place, verbose=True)
    assert "Done saving" in capsys.readouterr().out
    again = ModelNet40(root, num_points=4, save_dir=place, verbose=True)
    assert "Done loading" in capsys.readouterr().out
    np.testing.assert_array_equal(first.clouds.node["pos"], again.clouds.node["pos"])
    val = ModelNet40(root, num_points=4, save_dir=place, verbose=True, split="val")
    assert "Done loading" in capsys.readouterr().out
    assert len(val.clouds.node["pos"]) == 4 * len(val) < len(first.clouds.node["pos"])
    assert again.cache_path.parent == place and not list(root.glob("*.npz"))


def test_a_changed_source_or_setting_is_read_again(tmp_path):
    root = write_txt(tmp_path)
    before = ModelNet40(root, split="trainval", num_points=2)
    path = root / "airplane" / "airplane_0000.txt"
    path.write_text("9,9,9,9,9,9\n" * POINTS)
    after = ModelNet40(root, split="trainval", num_points=2)
    assert (after[0][0].ndata["pos"] == 9).all() and not (before[0][0].ndata["pos"] == 9).all()
    assert ModelNet40(root, split="trainval", num_points=3)[0][0].num_nodes() == 3


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_broken_or_hostile_cache_is_never_taken_or_executed(tmp_path):
    root, trap = write_txt(tmp_path), tmp_path / "sprung"
    good = ModelNet40(root, split="test", num_points=4)
    path = good.cache_path
    whole = path.read_bytes()
    with np.load(path) as archive:
        arrays = dict(archive)
    hostile = np.array([Trap(trap)], dtype=object)

    def save(write):
        with open(path, "wb") as file:
            write(file)

    corruptions = [
        lambda: path.write_bytes(b""),
        lambda: path.write_bytes(b"rubbish"),
        lambda: path.write_bytes(whole[: len(whole) // 2]),
        # A byte within the positions: the archive opens, its checksum does not fit.
        lambda: path.write_bytes(whole[:1500] + bytes([whole[1500] ^ 255]) + whole[1501:]),
        lambda: save(lambda file: np.savez(file, fingerprint=hostile)),
        lambda: save(lambda file: np.savez(file, **(arrays | {"node/pos": hostile}))),
        lambda: save(lambda file: np.savez(file, fingerprint=arrays["fingerprint"])),
        lambda: save(lambda file: np.save(file, hostile)),
        lambda: save(lambda file: np.save(file, np.zeros(3))),
        lambda: path.write_bytes(pickle.dumps(Trap(trap))),
    ]
    for corrupt in corruptions:
        corrupt()
        data = ModelNet40(root, split="test", num_points=4)
        np.testing.assert_array_equal(data.clouds.node["pos"], good.clouds.node["pos"])
        np.testing.assert_array_equal(data.labels, good.labels)
        assert path.read_bytes() == whole
    assert not trap.exists()


class Noting(ModelNet40):
    """Knows whether it was read from the source."""

    was_read = False

    def process(self):
        self.was_read = True
        super().process()


def build(root, together, results):
    together.wait()
    data = Noting(root, split="trainval", num_points=4)
    results.put((data.was_read, data.clouds.node["pos"]))


def test_two_processes_build_one_cache(tmp_path):
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("without fork each process would import everything first")
    root = write_txt(tmp_path)
    context = multiprocessing.get_context("fork")
    together, results = context.Barrier(2), context.Queue()
    processes = [context.Process(target=build, args=(root, together, results)) for _ in range(2)]
    for process in processes:
        process.start()
    found = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert sorted(was_read for was_read, _ in found) == [False, True]
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert len(found[0][1]) == 4 * 48
    assert not list(root.glob(".*.part"))


def test_a_full_disk_gives_a_sentence_and_leaves_nothing(tmp_path):
    resource = pytest.importorskip("resource")
    root, place = write_txt(tmp_path), tmp_path / "cache"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Files may not grow further, as on a full disk: the write fails half-way.
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(DGLError):
            ModelNet40(root, num_points=4, save_dir=place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path for path in place.iterdir() if not path.name.endswith(".lock")] == []
    assert len(ModelNet40(root, num_points=4, save_dir=place)) == 36


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may do everything")
def test_no_permission_gives_a_sentence(tmp_path):
    root = write_txt(tmp_path)
    root.chmod(0o500)
    try:
        with pytest.raises(DGLError, match="save_dir"):
            ModelNet40(root, num_points=4)
        assert len(ModelNet40(root, num_points=4, save_dir=tmp_path / "cache")) == 36
        (root / "airplane").chmod(0)
        with pytest.raises(DGLError, match="airplane_0000.txt"):
            ModelNet40(root, num_points=4, save_dir=tmp_path / "cache")
    finally:
        (root / "airplane").chmod(0o700)
        root.chmod(0o700)


def assert_fails(folder, sentence, **arguments):
    with pytest.raises(DGLError, match=sentence) as error:
        ModelNet40(folder, **({"num_points": 4} | arguments))
    assert "\n" not in str(error.value)


def test_wrong_folders_give_a_sentence(tmp_path):
    assert_fails(tmp_path / "absent", "Cannot list the folder .*absent for ModelNet40: no such file")
    assert_fails(tmp_path, f"neither is nor contains ModelNet40 in a known layout .{TXT}, {HDF5}")


def test_wrong_arguments_give_a_sentence(root):
    assert_fails(
        root, "Expected split to be one of 'train', 'val', 'trainval', 'test', got 'all'", split="all"
    )
    assert_fails(root, "Expected num_points to be an integer", num_points=0)
    assert_fails(root, "Expected val_fraction to be above 0", val_fraction=1)
    assert_fails(root, "has only 6 .*, but num_points is 7; lower num_points", num_points=7)


def test_wrong_lists_of_the_txt_layout_give_a_sentence(tmp_path):
    root = write_txt(tmp_path)
    listing, names = root / "modelnet40_train.txt", root / "modelnet40_shape_names.txt"
    whole = listing.read_text()
    listing.write_text(whole + "airplane_9999\n")
    assert_fails(root, "Cannot find .*airplane_9999.txt, which .*modelnet40_train.txt lists: no such file")
    listing.write_text(whole + "teapot_0001\n")
    assert_fails(root, "modelnet40_train.txt lists 'teapot_0001', which is of none of the 12 classes")
    listing.write_text("\n".join(line for line in whole.split() if "xbox" not in line))
    assert_fails(root, "modelnet40_train.txt has no shape of 1 of 12 classes, such as xbox")
    listing.write_text("")
    assert_fails(root, "modelnet40_train.txt: it is empty")
    listing.write_text(whole)
    names.unlink()
    assert_fails(root, "modelnet40_shape_names.txt: no such file")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("1,2,3,4,5,6\n" * 3, "has only 3 rows"),
        ("1,2,3,4,5,6\n" * 3 + "1,2,3,4,0.", "row 4 has 5 columns, expected 3 or 6"),
        ("1,2,3,4\n" * 6, "row 1 has 4 columns"),
        ("1,2,3,4,5,6\nnan,2,3,4,5,6\n" * 3, "row 2 has NaN"),
        ("#!\x00\x01\n" * 50, "row 1 has 1 columns"),
        ("", "it is empty"),
    ],
)
def test_a_faulty_text_file_gives_a_sentence_and_no_cache(tmp_path, content, sentence):
    root = write_txt(tmp_path)
    (root / "desk" / "desk_0002.txt").write_text(content)
    assert_fails(root, f"desk_0002.txt.*{sentence}")
    assert not list(root.glob("*.npz"))


def test_a_text_file_without_normals(tmp_path):
    root = write_txt(tmp_path)
    for path in root.glob("*/*.txt"):
        np.savetxt(path, np.loadtxt(path, delimiter=",")[:, :3], delimiter=",")
    assert len(ModelNet40(root, num_points=4)) == 36
    assert_fails(root, "airplane_0000.txt has no normals; leave out normals=True", normals=True)


def test_an_hdf5_file_without_normals(tmp_path):
    root = write_hdf5(tmp_path, without="normal")
    assert len(ModelNet40(root, num_points=4)) == 36
    assert_fails(root, "ply_data_train0.h5 has no normals; leave out normals=True", normals=True)


def test_faulty_hdf5_files_give_a_sentence(tmp_path):
    h5py = pytest.importorskip("h5py")
    root = write_hdf5(tmp_path, without="label")
    assert_fails(root, "ply_data_train0.h5: it lacks one of the arrays")
    root = write_hdf5(tmp_path)
    path = root / "ply_data_train1.h5"
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"rubbish"):
        path.write_bytes(content)
        assert_fails(root, "ply_data_train1.h5: it is absent, truncated, or no HDF5 file")
    faults = {
        r"has arrays of shape .*expected points \(B, N, 3\)": ("data", np.zeros((43, 6, 4))),
        "cloud 0 of its array data has NaN": ("data", np.full((43, 6, 3), np.nan)),
        "has labels from 12 to 12, but there are 12 classes": ("label", np.full((43, 1), 12)),
        "train_files.txt has no shape of 10 of 12 classes, such as bed": ("label", np.zeros((43, 1), int)),
    }
    for sentence, (name, array) in faults.items():
        path.write_bytes(whole)
        with h5py.File(path, "a") as file:
            del file[name]
            file[name] = array
        assert_fails(root, sentence)
    path.unlink()
    assert_fails(root, "Cannot find .*ply_data_train1.h5, which .*train_files.txt lists")


def test_the_official_lists_agree_on_modelnet10():
    lists = Path(__file__).parents[3] / "shared" / "data"
    if not (lists / "modelnet10_train.txt").is_file():
        pytest.skip("needs the lists of the download")
    for part, count in {"train": 3991, "test": 908}.items():
        own, whole = ((lists / f"modelnet{n}_{part}.txt").read_text().split() for n in (10, 40))
        assert len(own) == count
        assert own == [shape for shape in whole if shape.rpartition("_")[0] in TEN]
