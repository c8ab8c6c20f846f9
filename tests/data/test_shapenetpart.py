"""ShapeNet-Part: tiny sets in the three layouts, their splits and parts, and a sentence for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data.shapenetpart import ShapeNetPart

NORMAL = "shapenetcore_partanno_segmentation_benchmark_v0_normal"
PLAIN = "shapenetcore_partanno_segmentation_benchmark_v0"
HDF5 = "hdf5_data"
#: The categories' folders and their parts, written down independently of the code.
PARTS = {
    "02691156": range(0, 4),
    "02773838": range(4, 6),
    "02954340": range(6, 8),
    "02958343": range(8, 12),
    "03001627": range(12, 16),
    "03261776": range(16, 19),
    "03467517": range(19, 22),
    "03624134": range(22, 24),
    "03636649": range(24, 28),
    "03642806": range(28, 30),
    "03790512": range(30, 36),
    "03797390": range(36, 38),
    "03948459": range(38, 41),
    "04099429": range(41, 44),
    "04225987": range(44, 47),
    "04379243": range(47, 50),
}
COUNTS = {"train": 2, "val": 1, "test": 1}
SIZES = (5, 8, 11)


def shapes(split, size=None):
    """Category, name and rows ``x y z nx ny nz part``, of different sizes if none is given."""
    rng = np.random.default_rng(len(split))
    for category, (synset, parts) in enumerate(PARTS.items()):
        for number in range(COUNTS[split]):
            rows = size or SIZES[(category + number) % 3]
            points = rng.normal(size=(rows, 6)).round(5)
            part = rng.integers(parts.start, parts.stop, size=(rows, 1))
            yield category, f"{synset[-4:]}{split}{number}", np.hstack([points, part]).astype(np.float32)


def write_lists(root, lists):
    folder = root / "train_test_split"
    folder.mkdir(parents=True, exist_ok=True)
    for split, listed in lists.items():
        (folder / f"shuffled_{split}_file_list.json").write_text(json.dumps(listed))


def official_lists():
    synsets = list(PARTS)
    return {
        split: [f"shape_data/{synsets[category]}/{name}" for category, name, _ in shapes(split)]
        for split in COUNTS
    }


def write_normal(folder: Path, size=None) -> Path:
    root = folder / NORMAL
    write_lists(root, official_lists())
    for split in COUNTS:
        for category, name, table in shapes(split, size):
            place = root / list(PARTS)[category]
            place.mkdir(exist_ok=True)
            np.savetxt(place / f"{name}.txt", table, fmt="%.6f")
    return root


def write_plain(folder: Path, size=None) -> Path:
    root = folder / PLAIN
    write_lists(root, official_lists())
    for split in COUNTS:
        for category, name, table in shapes(split, size):
            synset, parts = list(PARTS.items())[category]
            for place in ("points", "points_label"):
                (root / synset / place).mkdir(parents=True, exist_ok=True)
            np.savetxt(root / synset / "points" / f"{name}.pts", table[:, :3], fmt="%.6f")
            labels = table[:, 6].astype(int) - parts.start + 1
            np.savetxt(root / synset / "points_label" / f"{name}.seg", labels, fmt="%d")
    return root


def write_hdf5(folder: Path, size=8) -> Path:
    h5py = pytest.importorskip("h5py")
    root = folder / HDF5
    root.mkdir(parents=True, exist_ok=True)
    for split in COUNTS:
        tables = np.stack([table for _, _, table in shapes(split, size)])
        labels = np.array([[category] for category, _, _ in shapes(split, size)], np.uint8)
        with h5py.File(root / f"ply_data_{split}0.h5", "w") as file:
            file["data"], file["label"], file["pid"] = (
                tables[..., :3],
                labels,
                tables[..., 6].astype(np.uint8),
            )
        (root / f"{split}_hdf5_file_list.txt").write_text(f"ply_data_{split}0.h5\n")
    return root


WRITERS = {"normal": write_normal, "plain": write_plain, "hdf5": write_hdf5}


@pytest.fixture(params=WRITERS)
def root(request, tmp_path):
    return WRITERS[request.param](tmp_path, size=8)


@pytest.mark.parametrize("split", COUNTS)
def test_graphs_and_categories_are_those_of_the_files(root, split):
    data = ShapeNetPart(root, split=split, num_points=None)
    expected = list(shapes(split, size=8))
    assert len(data) == len(expected)
    for (graph, category), (expected_category, _, table) in zip(data, expected):
        assert category == expected_category and set(graph.ndata) == {"pos", "part"}
        assert torch.equal(graph.ndata["pos"], torch.tensor(table[:, :3]))
        assert torch.equal(graph.ndata["part"], torch.tensor(table[:, 6]).long())


def test_the_standard_table_of_parts():
    assert [tuple(parts) for parts in PARTS.values()] == ShapeNetPart.class_parts
    assert (ShapeNetPart.num_classes, ShapeNetPart.num_parts, ShapeNetPart.gravity) == (16, 50, "y")
    names = "Airplane Bag Cap Car Chair Earphone Guitar Knife Lamp Laptop Motorbike Mug Pistol Rocket"
    assert ShapeNetPart.class_names == [*names.split(), "Skateboard", "Table"]
    for name, parts in zip(ShapeNetPart.class_names, ShapeNetPart.class_parts):
        assert all(ShapeNetPart.part_names[part].startswith(f"{name}/") for part in parts)
    assert len(set(ShapeNetPart.part_names)) == 50


def test_splits_share_a_file_and_trainval_is_both(root):
    train, val, both = (
        ShapeNetPart(root, split=split, num_points=8) for split in ("train", "val", "trainval")
    )
    assert (len(train), len(val), len(both)) == (32, 16, 48)
    assert sorted([*train.rows, *val.rows]) == list(both.rows)
    ShapeNetPart(root, split="test", num_points=8)
    assert len(list(root.glob("*.npz"))) == 2


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_category_alone_keeps_its_number_and_its_parts(root, split):
    everything = ShapeNetPart(root, split=split, num_points=8)
    chairs = ShapeNetPart(root, split=split, num_points=8, category="Chair")
    expected = [item for item in everything if item[1] == 4]
    assert 0 < len(chairs) == len(expected) < len(everything)
    for (graph, category), (expected_graph, _) in zip(chairs, expected):
        assert category == 4 and set(graph.ndata["part"].tolist()) <= {12, 13, 14, 15}
        assert torch.equal(graph.ndata["pos"], expected_graph.ndata["pos"])
    assert chairs.class_names == everything.class_names
    assert len(list(root.glob("*.npz"))) == 1  # they share the cache


def test_the_folder_that_holds_the_download_will_do_too(root):
    assert len(ShapeNetPart(root.parent, split="test", num_points=8)) == 16


def test_normals(tmp_path):
    data = ShapeNetPart(write_normal(tmp_path), split="test", num_points=None, normals=True)
    for (graph, _), (_, _, table) in zip(data, shapes("test")):
        assert torch.equal(graph.ndata["normal"], torch.tensor(table[:, 3:6]))
    plain = write_plain(tmp_path)
    with pytest.raises(DGLError, match=NORMAL):
        ShapeNetPart(plain, normals=True)


@pytest.mark.parametrize("num_points", [3, 8, 30])
def test_clouds_are_resampled_evenly_and_by_seed(tmp_path, num_points):
    root = write_normal(tmp_path)
    options = dict(split="test", num_points=num_points, normals=True)
    data, other = ShapeNetPart(root, **options), ShapeNetPart(root, sample_seed=1, **options)
    for (graph, _), (_, _, table) in zip(data, shapes("test")):
        columns = [graph.ndata["pos"], graph.ndata["normal"], graph.ndata["part"].float().unsqueeze(1)]
        rows = [tuple(row) for row in torch.cat(columns, dim=1).tolist()]
        times = [rows.count(tuple(row)) for row in table.tolist()]
        # Whole rows of the file, each as often as any other or once more.
        assert sum(times) == len(rows) == num_points and max(times) - min(times) <= 1
    assert not np.array_equal(data.clouds.node["pos"], other.clouds.node["pos"])
    again = ShapeNetPart(root, **options, force_reload=True)
    np.testing.assert_array_equal(data.clouds.node["pos"], again.clouds.node["pos"])


def test_none_keeps_all_points(tmp_path):
    data = ShapeNetPart(write_normal(tmp_path), split="train", num_points=None)
    assert [graph.num_nodes() for graph, _ in data] == [len(table) for _, _, table in shapes("train")]


@pytest.mark.parametrize("write", [write_normal, write_plain])
def test_where_lists_overlap_test_goes_before_val_and_val_before_train(tmp_path, write, capsys):
    root = write(tmp_path, size=8)
    lists = official_lists()
    lists["train"] += [lists["val"][0], lists["test"][1], lists["train"][5]]
    lists["val"] += [lists["test"][2]]
    # The same shape under another category, whose file exists too.
    lists["train"].append(lists["test"][3].replace("02958343", "02691156"))
    write_lists(root, lists)
    sizes = {split: len(ShapeNetPart(root, split=split, num_points=8)) for split in COUNTS}
    assert sizes == {"train": 32, "val": 16, "test": 16}
    capsys.readouterr()
    ShapeNetPart(root, num_points=8, verbose=True)
    assert "Left out 4 of the shapes" in capsys.readouterr().out


def assert_fails(folder, sentence, **arguments):
    with pytest.raises(DGLError, match=sentence) as error:
        ShapeNetPart(folder, **({"num_points": 4} | arguments))
    assert "\n" not in str(error.value)


def test_wrong_folders_and_arguments_give_a_sentence(tmp_path):
    assert_fails(tmp_path / "absent", "Cannot list the folder .*absent for ShapeNet-Part: no such file")
    assert_fails(
        tmp_path, f"neither is nor contains ShapeNet-Part in a known layout .{NORMAL}, {PLAIN}, {HDF5}"
    )
    root = write_normal(tmp_path)
    assert_fails(root, "Expected split to be one of", split="all")
    assert_fails(root, "Expected num_points to be", num_points=0)
    assert_fails(root, "Expected category to be one of 'Airplane', .*got 'chair'", category="chair")
    assert_fails(root, "Expected sample_seed to be an integer, got 0.5", sample_seed=0.5)


def test_wrong_lists_give_a_sentence(tmp_path):
    root = write_normal(tmp_path)
    lists = official_lists()
    path = root / "train_test_split" / "shuffled_train_file_list.json"
    write_lists(root, {"train": [*lists["train"], "shape_data/02691156/absent"]})
    assert_fails(root, "Cannot find .*absent.txt, which .*shuffled_train_file_list.json lists: no such file")
    write_lists(root, {"train": [entry for entry in lists["train"] if "04379243" not in entry], "val": []})
    assert_fails(root, "shuffled_train_file_list.json has no shape of 1 of 16 classes, such as Table")
    for content in ("[", '["name"]', "[3]", "3", '["shape_data/99999999/name"]'):
        path.write_text(content)
        assert_fails(root, "shuffled_train_file_list.json is not a list of shapes")
    path.write_bytes(b"\xff\xfe")
    assert_fails(root, "shuffled_train_file_list.json: it is not UTF-8 text")
    write_lists(root, lists)
    (root / "train_test_split" / "shuffled_val_file_list.json").unlink()
    assert_fails(root, "shuffled_val_file_list.json: no such file")


def assert_corrupted_fails(root, path, content, sentence):
    whole = path.read_text()
    path.write_text(content(whole))
    assert_fails(root, f"{path.name}.*{sentence}")
    path.write_text(whole)
    assert not list(root.glob("*.npz"))


def test_faulty_text_files_give_a_sentence(tmp_path):
    root = write_normal(tmp_path)
    path = root / "02773838" / "3838train0.txt"
    assert_corrupted_fails(root, path, lambda text: text[:-40], "row . has . columns, expected 7")
    assert_corrupted_fails(root, path, lambda text: "", "it is empty")
    assert_corrupted_fails(root, path, lambda text: "1 2 3 4 5 6\n", "row 1 has 6 columns, expected 7")
    assert_corrupted_fails(root, path, lambda text: text + "1 2 3 nan 5 6 4\n", "row .* has NaN")
    assert_corrupted_fails(
        root,
        path,
        lambda text: text + "1 2 3 4 5 6 3\n",
        "parts from 3 to .*Bag are the integers from 4 to 5",
    )
    assert_corrupted_fails(
        root, path, lambda text: text + "1 2 3 4 5 6 4.5\n", "parts from 4 to .*Bag are the integers"
    )
    assert len(ShapeNetPart(root, num_points=4)) == 32


def test_faulty_points_and_labels_give_a_sentence(tmp_path):
    root = write_plain(tmp_path)
    points = root / "02773838" / "points" / "3838train0.pts"
    labels = root / "02773838" / "points_label" / "3838train0.seg"
    assert_corrupted_fails(root, points, lambda text: text + "1 2\n", "row .* has 2 columns, expected 3")
    assert_corrupted_fails(
        root, labels, lambda text: text + "1\n", r"labels for the \d+ points of .*3838train0.pts"
    )
    assert_corrupted_fails(
        root, labels, lambda text: text.replace("1", "3"), "Bag are the integers from 1 to 2"
    )
    assert_corrupted_fails(
        root, labels, lambda text: text.replace("1", "0"), "parts from 0 to 2, .*from 1 to 2"
    )
    labels.unlink()
    assert_fails(root, "Cannot find .*3838train0.seg, which .*shuffled_train_file_list.json lists")


def test_faulty_hdf5_files_give_a_sentence(tmp_path):
    h5py = pytest.importorskip("h5py")
    root = write_hdf5(tmp_path)
    path = root / "ply_data_val0.h5"
    whole = path.read_bytes()
    faults = {
        r"points, parts and labels of shape \(16, 8, 2\)": ("data", np.zeros((16, 8, 2))),
        r"\(16, 8, 3\), \(16, 7\) and": ("pid", np.zeros((16, 7), int)),
        "cloud 0 of its array data has NaN": ("data", np.full((16, 8, 3), np.nan)),
        "has labels from 16 to 16, but there are 16 classes": ("label", np.full((16, 1), 16)),
        "parts from 0 to 0, but those of the category Bag": ("pid", np.zeros((16, 8), int)),
        "it lacks one of the arrays data, pid, label": ("pid", None),
    }
    for sentence, (name, array) in faults.items():
        path.write_bytes(whole)
        with h5py.File(path, "a") as file:
            del file[name]
            if array is not None:
                file[name] = array
        assert_fails(root, f"ply_data_val0.h5.*{sentence}")
    path.write_bytes(whole[: len(whole) // 2])
    assert_fails(root, "ply_data_val0.h5: it is absent, truncated, or no HDF5 file")
    path.unlink()
    assert_fails(root, "Cannot find .*ply_data_val0.h5, which .*val_hdf5_file_list.txt lists")
    path.write_bytes(whole)
    assert len(ShapeNetPart(root, num_points=4)) == 32


def test_an_hdf5_set_without_a_category_gives_a_sentence(tmp_path):
    h5py = pytest.importorskip("h5py")
    root = write_hdf5(tmp_path)
    with h5py.File(root / "ply_data_test0.h5", "a") as file:
        for name in ("data", "pid", "label"):
            kept = file[name][1:]
            del file[name]
            file[name] = kept
    assert_fails(
        root, "test_hdf5_file_list.txt has no shape of 1 of 16 classes, such as Airplane", split="test"
    )


def test_a_broken_cache_is_rebuilt(root):
    good = ShapeNetPart(root, split="test", num_points=8)
    good.cache_path.write_bytes(good.cache_path.read_bytes()[:-200])
    again = ShapeNetPart(root, split="test", num_points=8)
    np.testing.assert_array_equal(good.clouds.node["part"], again.clouds.node["part"])
    assert again.has_cache()
