"""Folders of files with normals, parts and features, and files that cannot be read."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data import FolderDataset, write_cloud
from dgl_orient.data.io.read import EXTENSIONS
from tests.data.test_folder import OFF, classes, put


def cloud(rows: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points, and their parts: 2 below, 5 above."""
    pos = np.random.default_rng(seed).standard_normal((rows, 3))
    return pos, np.where(pos[:, 2] > 0, 5, 2)


def write_ply(path, pos, part):
    write_cloud(path.with_suffix(".ply"), pos, part=part)


def write_npz(path, pos, part):
    np.savez(path.with_suffix(".npz"), pos=pos, part=part)


def write_header(path, pos, part):
    np.savetxt(
        path.with_suffix(".csv"), np.column_stack([pos, part]), "%.9g", ",", header="x,y,z,part", comments=""
    )


def write_seg(path, pos, part):
    np.savetxt(path.with_suffix(".pts" if ".pts" in EXTENSIONS else ".xyz"), pos)
    np.savetxt(path.with_suffix(".seg"), part, "%d")


def assert_parts(dataset):
    for index in range(len(dataset)):
        graph = dataset[index] if dataset.labels is None else dataset[index][0]
        expected = torch.where(graph.ndata["pos"][:, 2] > 0, 5, 2)
        assert torch.equal(graph.ndata["part"], expected) and graph.ndata["part"].dtype == torch.int64


@pytest.mark.parametrize("write", [write_ply, write_npz, write_header, write_seg])
def test_parts_stay_with_their_points(tmp_path, write):
    for number in range(4):
        write(tmp_path / str(number), *cloud(seed=number))
    columns = (0, 1, 2) if write is write_header else None
    for _ in range(2):  # read, and then from the cache
        dataset = FolderDataset(tmp_path, "all", num_points=16, parts=True, columns=columns)
        assert len(dataset) == 4 and dataset.labels is None
        assert dataset.class_parts == [[2, 5]] and dataset.num_parts == 6
        assert dataset.num_classes is None and dataset.class_names == [tmp_path.name]
        assert_parts(dataset)


def test_parts_are_found_under_a_name_or_number(tmp_path):
    for number in range(3):
        pos, part = cloud(seed=number)
        np.savetxt(tmp_path / f"{number}.txt", np.column_stack([pos, np.zeros(40), part]))
    options = dict(num_points=16, parts=True, columns=(0, 1, 2))
    assert_parts(FolderDataset(tmp_path, "all", part_name=4, **options))
    with pytest.raises(DGLError, match="part_name"):
        FolderDataset(tmp_path, "all", **options)
    write_cloud(tmp_path / "0.ply", pos, scalar=part)
    for number in range(3):
        (tmp_path / f"{number}.txt").unlink()
    assert_parts(FolderDataset(tmp_path, "all", num_points=16, parts=True, part_name="scalar"))


def test_each_category_has_its_own_parts_in_all_splits(tmp_path):
    for label, shift in (("cup", 0), ("bed", 1)):
        (tmp_path / label).mkdir()
        for number in range(6):
            pos, part = cloud(seed=number)
            write_npz(tmp_path / label / str(number), pos, part + shift)
    for split in ("train", "val", "test"):
        dataset = FolderDataset(tmp_path, split, num_points=16, parts=True)
        assert dataset.class_names == ["bed", "cup"] and dataset.num_classes == 2
        assert dataset.class_parts == [[3, 6], [2, 5]] and dataset.num_parts == 7
        assert set(dataset.labels.tolist()) == {0, 1}


@pytest.mark.parametrize("part", [np.full(40, -1), np.full(40, 1000), np.full(40, 0.5), np.zeros((40, 2))])
def test_labels_that_are_no_parts_are_refused(tmp_path, part):
    np.savez(tmp_path / "a.npz", pos=cloud()[0], part=part)
    with pytest.raises(DGLError):
        FolderDataset(tmp_path, "all", num_points=16, parts=True)


def test_a_seg_file_of_another_length_is_refused(tmp_path):
    write_seg(tmp_path / "a", cloud()[0], np.zeros(39))
    with pytest.raises(DGLError):
        FolderDataset(tmp_path, "all", num_points=16, parts=True)


def test_normals_come_from_a_flat_folder_of_meshes(tmp_path):
    pytest.importorskip("trimesh")
    for number in range(10):
        (tmp_path / f"{number}.off").write_text(OFF)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the files are copies
        sets = [FolderDataset(tmp_path, split, 30, normals=True) for split in ("train", "val", "test")]
    assert [len(each) for each in sets] == [7, 1, 2] and sets[0].num_classes is None
    assert torch.equal(sets[0][0].ndata["normal"], torch.tensor([[0.0, 0, 1]]).expand(30, 3))


def test_flat_folders_may_have_splits(tmp_path):
    for split, size in (("train", 5), ("test", 2)):
        for number in range(size):
            (tmp_path / split).mkdir(exist_ok=True)
            write_npz(tmp_path / split / str(number), *cloud(seed=number + 10 * size))
    sizes = [len(FolderDataset(tmp_path, each, 16, parts=True)) for each in ("train", "val", "test")]
    assert sizes == [4, 1, 2]


def test_colours_and_intensities_are_features(tmp_path):
    pos, part = cloud()
    color = np.stack([255 * (part == 5), 0 * part, 255 * (part == 2)], 1).astype(np.uint8)
    for shift, label in enumerate("ab"):
        (tmp_path / label).mkdir()
        np.savez(tmp_path / label / "1.npz", pos=pos + shift, color=color, intensity=pos[:, 2])
    dataset = FolderDataset(tmp_path, "all", 16, features=["color", "intensity"])
    feat = dataset[1][0].ndata["feat"]
    above = (dataset[1][0].ndata["pos"][:, 2] > 1).float()
    assert torch.equal(feat[:, 0], above) and torch.equal(feat[:, 2], 1 - above)
    torch.testing.assert_close(feat[:, 3] + 1, dataset[1][0].ndata["pos"][:, 2])
    with pytest.raises(DGLError, match="normal"):
        FolderDataset(tmp_path, "all", 16, features=["normal"])
    for wrong in ("color", ["colour"], ["color", "color"]):
        with pytest.raises(DGLError):
            FolderDataset(tmp_path, "all", 16, features=wrong)


def test_all_bad_files_are_listed_at_once_or_skipped(tmp_path):
    root = classes(tmp_path, {"a": 5, "b": 5})
    bad = [root / "a" / "00.xyz", root / "b" / "03.xyz"]
    for path in bad:
        path.write_text("not numbers\nat all\n")
    with pytest.raises(DGLError) as caught:
        FolderDataset(root, "all", num_points=8)
    assert all(str(path) in str(caught.value) for path in bad) and "--skip-bad" in str(caught.value)
    with pytest.warns(UserWarning) as warned:
        dataset = FolderDataset(root, "all", num_points=8, skip_bad=True)
    assert all(any(str(path) in str(each.message) for each in warned) for path in bad)
    assert len(dataset) == 8 and not {*bad} & {*dataset.files}
    again = FolderDataset(root, "all", num_points=8, skip_bad=True)  # from the cache
    assert again.files == dataset.files and again.labels.tolist() == dataset.labels.tolist()


def test_a_class_without_any_good_file_is_gone(tmp_path):
    root = classes(tmp_path, {"a": 5, "b": 5, "c": 1})
    (root / "c" / "00.xyz").write_text("")
    with pytest.warns(UserWarning):
        assert FolderDataset(root, "all", num_points=8, skip_bad=True).class_names == ["a", "b"]
    for path in root.glob("*/*.xyz"):
        path.write_text("")
    with pytest.raises(DGLError):
        FolderDataset(root, "all", num_points=8, skip_bad=True)


def messages_of(*arguments, **options) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FolderDataset(*arguments, **options)
    return "\n".join(str(each.message) for each in caught)


def test_results_that_would_mean_nothing_are_warned_of(tmp_path):
    root = classes(tmp_path / "good", {"a": 10, "b": 10})
    assert messages_of(root, num_points=30) == ""
    assert "fewer than num_points=31" in messages_of(root, num_points=31)
    assert "one class, 'mug'" in messages_of(classes(tmp_path / "one", {"mug": 9}), num_points=8)
    few = messages_of(classes(tmp_path / "few", {"a": 10, "b": 2, "c": 1}), num_points=8)
    assert "no validation shapes of b, c" in few and "no test shapes of c" in few
    put(root / "b" / "copy.xyz", seed=0)  # as a/00.xyz
    for _ in range(2):  # also from the cache
        said = messages_of(root, num_points=30)
        assert "copy.xyz" in said and "a/00.xyz" in said
