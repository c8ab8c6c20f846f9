import os
from collections import Counter

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data.folder import FolderDataset, _sort_names
from dgl_orient.data.folder_listing import list_shape_files
from dgl_orient.data.io.read import read_cloud
from dgl_orient.data.transforms import RandomRotate

OFF = "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"


def put(path, seed=0, rows=30):
    """A file with points of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    np.savetxt(path, rng.standard_normal((rows, 3)))
    return path


def make(root, names, rows=30):
    for number, name in enumerate(names):
        put(root / name, number, rows)
    return root


def classes(root, sizes):
    names = [f"{label}/{number:02}.xyz" for label, size in sizes.items() for number in range(size)]
    return make(root, names)


def names_of(dataset):
    return [os.path.relpath(path, dataset.root.parent) for path in dataset.files]


def test_a_folder_for_each_class_is_split_by_seed_in_equal_fractions(tmp_path):
    root = classes(tmp_path / "shapes", {"mug": 10, "chair": 20, "lamp": 3})
    parts = {split: FolderDataset(root, split, num_points=16) for split in ("train", "val", "test", "all")}
    assert parts["all"].class_names == ["chair", "lamp", "mug"] and parts["all"].num_classes == 3
    counts = {split: Counter(part.labels.tolist()) for split, part in parts.items()}
    assert counts["test"] == {0: 4, 1: 1, 2: 2} and counts["val"] == {0: 2, 1: 1, 2: 1}
    assert counts["train"] == {0: 14, 1: 1, 2: 7}
    concatenated = [name for split in ("train", "val", "test") for name in names_of(parts[split])]
    assert sorted(concatenated) == names_of(parts["all"]) and len(set(concatenated)) == 33
    assert names_of(FolderDataset(root, "val", num_points=16)) == names_of(parts["val"])
    assert names_of(FolderDataset(root, "val", num_points=16, split_seed=1)) != names_of(parts["val"])


def test_numbers_of_one_value_have_an_order_of_their_own(tmp_path):
    root = classes(tmp_path / "shapes", dict.fromkeys(["1", "01", "001", "10", "2"], 1))
    names = FolderDataset(root, "all", num_points=16).class_names
    assert names == ["001", "01", "1", "2", "10"]


def test_an_item_is_the_resampled_file_and_its_class(tmp_path):
    root = classes(tmp_path, {"a": 3, "b": 3})
    dataset = FolderDataset(root, "all", num_points=20, gravity="y")
    graph, label = dataset[4]
    assert int(label) == 1 and label.dtype == torch.int64 and dataset.gravity == "y"
    assert set(graph.ndata) == {"pos"} and graph.ndata["pos"].dtype == torch.float32
    source = {tuple(row) for row in read_cloud(root / "b" / "01.xyz", dtype=np.float32)["pos"].tolist()}
    taken = {tuple(row) for row in graph.ndata["pos"].tolist()}
    assert len(taken) == 20 and taken < source
    assert FolderDataset(root, "all", num_points=None)[4][0].num_nodes() == 30
    again = FolderDataset(root, "all", num_points=20, sample_seed=1)[4][0]
    assert not torch.equal(again.ndata["pos"], graph.ndata["pos"])


def test_a_file_has_the_same_points_whatever_other_files_there_are(tmp_path):
    root = classes(tmp_path, {"a": 3, "b": 3})
    before = FolderDataset(root, "all", num_points=20)[4][0].ndata["pos"]
    put(root / "a" / "00a.xyz")
    assert torch.equal(FolderDataset(root, "all", num_points=20)[5][0].ndata["pos"], before)


@pytest.mark.parametrize("pattern", ["{split}/{label}/{number}.xyz", "{label}/{split}/{number}.xyz"])
def test_given_splits_are_kept_and_a_missing_one_is_sampled_from_the_training_shapes(tmp_path, pattern):
    sizes = {"train": 10, "test": 2}
    names = [
        pattern.format(split=split, label=label, number=number)
        for split, size in sizes.items()
        for label in ("cup", "bed")
        for number in range(size)
    ]
    make(tmp_path, names)
    train, val, test = (FolderDataset(tmp_path, split, num_points=8) for split in ("train", "val", "test"))
    assert train.class_names == ["bed", "cup"]
    assert [len(part) for part in (train, val, test)] == [18, 2, 4]
    assert all("test" in name for name in names_of(test))
    assert all("train" in name for name in names_of(train) + names_of(val))
    assert not set(names_of(train)) & set(names_of(val))
    make(tmp_path, [pattern.format(split="val", label=label, number=0) for label in ("cup", "bed")])
    assert [len(FolderDataset(tmp_path, split, num_points=8)) for split in ("train", "val")] == [20, 2]


def test_hidden_and_other_files_are_left_out_and_inner_folders_searched(tmp_path):
    make(tmp_path, ["a/1.xyz", "a/deep/er/2.xyz", "b/1.xyz", "a/.3.xyz", ".git/1.xyz", "notes.txt"])
    (tmp_path / "a" / "photo.jpg").write_text("")
    dataset = FolderDataset(tmp_path, "all", num_points=4)
    assert dataset.class_names == ["a", "b"]
    assert [path.name for path in dataset.files] == ["1.xyz", "2.xyz", "1.xyz"]


def test_a_link_to_an_outer_folder_adds_nothing(tmp_path):
    root = classes(tmp_path / "shapes", {"mug": 4, "lamp": 3})
    (root / "mug" / "loop").symlink_to(root, target_is_directory=True)
    (root / "mug" / "self").symlink_to("self")
    (root / "lamp" / "more").symlink_to(put(tmp_path / "elsewhere" / "9.xyz").parent)
    assert len(FolderDataset(root, "all", num_points=8)) == 8


def test_links_that_lead_to_each_other_end(tmp_path):
    root = classes(tmp_path / "shapes", {"mug/a": 2, "mug/b": 1})
    (root / "mug" / "a" / "x").symlink_to(root / "mug" / "b")
    (root / "mug" / "b" / "y").symlink_to(root / "mug" / "a")
    assert len(FolderDataset(root, "all", num_points=8)) == 3  # each once, by whichever path


def test_meshes_bring_normals_and_a_cloud_without_is_named(tmp_path):
    pytest.importorskip("trimesh")
    for label in "ab":
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.off").write_text(OFF)
    graph, _ = FolderDataset(tmp_path, "all", num_points=50, normals=True)[0]
    assert torch.equal(graph.ndata["normal"], torch.tensor([[0.0, 0, 1]]).expand(50, 3))
    path = put(tmp_path / "b" / "2.xyz")
    with pytest.raises(DGLError, match=f"no normals in {path}"):
        FolderDataset(tmp_path, "all", num_points=50, normals=True)


def test_a_list_names_paths_labels_and_parts(tmp_path):
    make(tmp_path, ["data/one.xyz", "data/two.xyz", "data/three.xyz", "data/four.xyz"])
    listing = tmp_path / "lists" / "shapes.csv"
    listing.parent.mkdir()
    listing.write_text(
        "\ufeffLabel, Path ,note,split\n"
        "10,../data/one.xyz,x,train\n2,../data/two.xyz,,Train\n\n"
        f'10,{tmp_path}/data/three.xyz,"a, b",test\n2,"../data/four.xyz",,val\n'
    )
    dataset = FolderDataset(listing, "all", num_points=8, save_dir=tmp_path / "cache")
    assert dataset.class_names == ["2", "10"] and dataset.labels.tolist() == [1, 0, 1, 0]
    sizes = [len(FolderDataset(listing, split, num_points=8)) for split in ("train", "val", "test")]
    assert sizes == [2, 1, 1]
    assert [path.name for path in dataset.files] == ["one.xyz", "two.xyz", "three.xyz", "four.xyz"]


def test_a_list_without_parts_is_divided_by_seed(tmp_path):
    root = classes(tmp_path, {"a": 10, "b": 10})
    listing = tmp_path / "all.csv"
    listing.write_text("path,label\n" + "".join(f"{p},{p[0]}\n" for p in sorted(_relative(root))))
    sizes = [len(FolderDataset(listing, split, num_points=8)) for split in ("train", "val", "test")]
    assert sizes == [14, 2, 4]


def _relative(root):
    return [str(path.relative_to(root)) for path in root.glob("*/*.xyz")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "path,label"),
        ("file,class\n", "path,label"),
        ("path,label\n", "no shapes"),
        ("path,label\nx.xyz,\n", "line 2"),
        ("path,label\nnone.xyz,a\n", "none.xyz"),
        ("path,label\nfolder,a\n", "folder"),
        ("path,label\na.xyz,a\nfolder/../a.xyz,b\n", "again in line 3"),
        ("path,label,split\na.xyz,a,training\n", "'training'"),
        ("path,label,split\na.xyz,a\n", "line 2"),
        ("path,label,split\na.xyz,a,train\nb.xyz,b,test\n", "class b"),
        ("path,label\na\0.xyz,a\n", "list.csv"),
        ('"path\nlabel",path\n', "path,label"),
        ('path,label\n"a\nb.xyz",a\n', "line 3"),
        (b"path,label\n\xff\xfe\xfa,a\n", "list.csv"),
    ],
)
def test_bad_lists_end_in_a_sentence(tmp_path, text, words):
    make(tmp_path, ["a.xyz", "b.xyz", "folder/c.xyz"])
    listing = tmp_path / "list.csv"
    listing.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(DGLError, match=words) as caught:
        FolderDataset(listing, "all")
    assert "list.csv" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "no shapes"),
        (["1.xyz"], "no shapes"),
        (["a/1.xyz", "b/notes.md"], r"class folder .*b has no files"),
        (["a/1.xyz", "a/train/2.xyz"], "a/1.xyz is not"),
        (["train/a/1.xyz", "test/b/1.xyz"], "class b .*no training"),
    ],
)
def test_bad_folders_end_in_a_sentence(tmp_path, names, words):
    make(tmp_path, names)
    with pytest.raises(DGLError, match=words) as caught:
        FolderDataset(tmp_path, "all")
    assert str(tmp_path) in str(caught.value)


def test_missing_folders_and_files_that_are_no_list(tmp_path):
    with pytest.raises(DGLError, match="none"):
        FolderDataset(tmp_path / "none")
    with pytest.raises(DGLError, match=r"cloud\.xyz"):
        FolderDataset(put(tmp_path / "cloud.xyz"))


def test_an_unreadable_file_is_named_and_nothing_is_kept(tmp_path):
    classes(tmp_path, {"a": 3, "b": 3})
    (tmp_path / "b" / "01.xyz").write_text("not numbers\nat all\n")
    with pytest.raises(DGLError, match=r"b/01\.xyz"):
        FolderDataset(tmp_path)
    assert not list(tmp_path.glob("*.npz"))
    (tmp_path / "b" / "01.xyz").unlink()
    os.symlink(tmp_path / "gone", tmp_path / "b" / "01.xyz")
    with pytest.raises(DGLError, match=r"b/01\.xyz"):
        FolderDataset(tmp_path)


def test_parts_that_are_empty_are_named(tmp_path):
    make(tmp_path, ["train/a/1.xyz", "train/a/2.xyz"])
    with pytest.raises(DGLError):
        FolderDataset(tmp_path, "test")


@pytest.mark.parametrize(
    "options",
    [
        dict(split="valid"),
        dict(num_points=0),
        dict(val_fraction=0.9),
        dict(test_fraction=1.0),
        dict(test_fraction="a"),
        dict(sample_seed=0.5),
        dict(gravity="up"),
        dict(columns=(0, 1)),
        dict(columns=3),
    ],
)
def test_bad_arguments_are_refused(tmp_path, options):
    classes(tmp_path, {"a": 5, "b": 5})
    with pytest.raises(DGLError):
        FolderDataset(tmp_path, **options)


def test_files_are_read_once_and_again_when_one_changes(tmp_path, monkeypatch):
    root, cache = classes(tmp_path / "shapes", {"a": 3, "b": 3}), tmp_path / "cache"
    reads = []
    monkeypatch.setattr(
        "dgl_orient.data.folder_files.read_cloud",
        lambda *given, **named: reads.append(given) or read_cloud(*given, **named),
    )

    def reads_of(**options):
        reads.clear()
        FolderDataset(root, save_dir=cache, **{"num_points": 8} | options)
        return len(reads)

    assert [reads_of(), reads_of(), reads_of(split="test"), reads_of(split_seed=5)] == [6, 0, 0, 0]
    assert [reads_of(num_points=9), reads_of(), reads_of(force_reload=True)] == [6, 0, 6]
    put(root / "a" / "01.xyz", seed=9, rows=40)
    assert [reads_of(), reads_of()] == [6, 0]
    put(root / "a" / "07.xyz")
    assert [reads_of(), reads_of()] == [7, 0]
    (root / "a" / "07.xyz").rename(root / "b" / "07.xyz")
    assert reads_of() == 7
    # Without a folder named for it, the cache lies among the class folders and is not taken for a shape.
    FolderDataset(root, num_points=8)
    assert len(FolderDataset(root, "all", num_points=8)) == 7 and list(root.glob("*.npz"))


def test_transforms_are_applied(tmp_path):
    classes(tmp_path, {"a": 3, "b": 3})
    plain, rotated = (
        FolderDataset(tmp_path, "all", num_points=8, transform=transform)
        for transform in (None, RandomRotate("so3"))
    )
    before, after = plain[0][0].ndata["pos"], rotated[0][0].ndata["pos"]
    assert not torch.allclose(before, after)
    torch.testing.assert_close(torch.pdist(before), torch.pdist(after))


def test_folders_that_link_to_each_other_are_seen_once(tmp_path):
    root = tmp_path / "mine"
    for name in "abcdefghi":
        (root / "chair" / name).mkdir(parents=True)
        for other in "abcdefghi":
            (root / "chair" / name / other).symlink_to(root / "chair" / other)
        np.savetxt(root / "chair" / name / f"{name}.xyz", np.eye(3))
    shapes = list_shape_files(root)
    assert sorted(shape.path.name for shape in shapes) == [f"{name}.xyz" for name in "abcdefghi"]


def test_classes_may_be_named_by_numbers_of_any_length():
    assert _sort_names({"10", "9", "9" * 5000}) == ["10", "9", "9" * 5000]
    assert _sort_names({"10", "9", "9" * 90}) == ["9", "10", "9" * 90]


def test_a_listed_name_that_is_too_long_is_a_sentence(tmp_path):
    (tmp_path / "list.csv").write_text(f"path,label\n{'a' * 300}.xyz,chair\n")
    with pytest.raises(DGLError, match="list.csv"):
        FolderDataset(tmp_path / "list.csv")
