import hashlib
import math

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data.shapes import Shapes
from dgl_orient.data.shapes.classes import SHAPE_CLASSES

SMALL = dict(num_points=64, num_shapes=20)


def _same(a: Shapes, b: Shapes) -> bool:
    first, second = a.clouds.arrays(), b.clouds.arrays()
    return first.keys() == second.keys() and all(np.array_equal(first[key], second[key]) for key in first)


def test_an_item_serves_classes_parts_and_normals():
    shapes = Shapes("val", num_points=100, num_shapes=30)
    assert len(shapes) == 30 and shapes.num_classes == len(shapes.class_names) == 10
    for number in range(30):
        graph, label = shapes[number]
        assert graph.num_nodes() == 100 and graph.num_edges() == 0
        assert graph.ndata["pos"].dtype == graph.ndata["normal"].dtype == torch.float32
        assert graph.ndata["part"].dtype == torch.int64
        assert set(graph.ndata["part"].tolist()) <= set(shapes.class_parts[label])
        assert label == number % 10 == shapes.labels[number]
        torch.testing.assert_close(graph.ndata["normal"].norm(dim=1), torch.ones(100))


def test_parts_are_numbered_through_all_classes():
    shapes = Shapes(**SMALL)
    assert [number for numbers in shapes.class_parts for number in numbers] == list(range(shapes.num_parts))
    assert len(shapes.part_names) == shapes.num_parts == 30
    for name, numbers in zip(shapes.class_names, shapes.class_parts):
        own = tuple(shapes.part_names[number] for number in numbers)
        assert own == tuple(f"{name}/{part}" for part in SHAPE_CLASSES[name].parts)


def test_clouds_fill_the_unit_sphere_about_their_mean():
    pos = Shapes(**SMALL).clouds.node["pos"].reshape(20, 64, 3)
    np.testing.assert_allclose(pos.mean(1), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(pos, axis=2).max(1), 1, atol=1e-6)


def test_sizes_are_kept_on_request():
    scaled, own = Shapes(**SMALL), Shapes(normalize=False, **SMALL)
    a, b = (shapes.clouds.node["pos"].reshape(20, 64, 3).astype(float) for shapes in (scaled, own))
    b = b - b.mean(1, keepdims=True)
    np.testing.assert_allclose(a, b / np.linalg.norm(b, axis=2).max(1)[:, None, None], atol=1e-5)
    assert np.linalg.norm(b, axis=2).max() > 1.2


def test_the_same_arguments_give_the_same_data_on_any_machine():
    """A sum over all bits, written down once: if it changes, so did everyone's data."""
    arrays = Shapes("test", num_points=128, num_shapes=100, shape_seed=3).clouds.arrays()
    digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in sorted(arrays)))
    assert digest.hexdigest()[:16] == "eca88412ebf60078"


@pytest.mark.parametrize(
    "other", [dict(split="val"), dict(split="test"), dict(shape_seed=1), dict(shape_seed=-1)]
)
def test_other_splits_and_seeds_hold_other_shapes(other):
    def extents(shapes: Shapes) -> np.ndarray:
        return np.ptp(shapes.clouds.node["pos"].reshape(50, 32, 3), axis=1)

    options = dict(num_points=32, num_shapes=50, normalize=False)
    first, second = extents(Shapes(**options)), extents(Shapes(**options | other))
    assert np.abs(first[:, None] - second[None]).max(-1).min() > 1e-4


def test_the_seed_of_transforms_does_not_change_the_shapes():
    assert _same(Shapes(seed=0, **SMALL), Shapes(seed=1, **SMALL))
    assert not _same(Shapes(shape_seed=0, **SMALL), Shapes(shape_seed=1, **SMALL))


def test_more_shapes_and_other_classes_leave_a_cloud_as_it_is():
    few, many = Shapes(num_points=64, num_shapes=13), Shapes(num_points=64, num_shapes=40)
    assert np.array_equal(few.clouds.node["pos"], many.clouds.node["pos"][: 13 * 64])
    some = Shapes(num_points=64, num_shapes=8, classes=["rocket", "chair"])
    chairs = [number for number in range(40) if many.labels[number] == many.class_names.index("chair")]
    for own, other in zip(range(1, 8, 2), chairs):
        a, b = some[own][0].ndata, many[other][0].ndata
        assert torch.equal(a["pos"], b["pos"]) and torch.equal(a["normal"], b["normal"])
        offset = many.class_parts[2][0] - some.class_parts[1][0]
        assert torch.equal(a["part"] + offset, b["part"])
    assert some.class_names == ["rocket", "chair"] and some.class_parts == [(0, 1, 2), (3, 4, 5)]


def test_more_points_lie_on_the_same_objects():
    options = dict(num_shapes=20, normalize=False)
    coarse, fine = Shapes(num_points=500, **options), Shapes(num_points=2000, **options)
    a, b = (shapes.clouds.node["pos"].reshape(20, -1, 3) for shapes in (coarse, fine))
    assert np.abs(np.ptp(a, axis=1) - np.ptp(b, axis=1)).max() < 0.12
    nearest = np.linalg.norm(a[:, :100, None] - b[:, None], axis=-1).min(-1)
    assert nearest.max() < 0.2


@pytest.mark.parametrize("count, largest", [(25, 3), (7, 1), (40, 4)])
def test_classes_are_balanced(count, largest):
    counts = np.bincount(Shapes(num_points=8, num_shapes=count).labels, minlength=10)
    assert counts.max() == largest and counts.min() >= largest - 1 and counts.sum() == count


def test_default_sizes():
    sizes = [len(Shapes(split, num_points=1, classes=["bottle"])) for split in ("train", "val", "test")]
    assert sizes == [800, 160, 320]
    assert Shapes.gravity == "z"


def test_a_single_point_is_no_nan():
    shapes = Shapes(num_points=1, num_shapes=10)
    assert (shapes.clouds.node["pos"] == 0).all()


def test_transforms_are_applied():
    def lifted(graph):
        graph.ndata["pos"] = graph.ndata["pos"] + 5
        return graph

    assert Shapes(transform=lifted, **SMALL)[0][0].ndata["pos"].min() > 3.9


def test_kept_clouds_are_those_that_were_made(tmp_path):
    made = Shapes(save_dir=tmp_path, **SMALL)
    assert made.cache_path.exists()
    written = made.cache_path.stat().st_mtime_ns
    kept = Shapes(save_dir=tmp_path, **SMALL)
    assert _same(made, kept) and kept.cache_path.stat().st_mtime_ns == written
    other = Shapes(save_dir=tmp_path, shape_seed=1, **SMALL)
    assert other.cache_path != made.cache_path and not _same(made, other)


@pytest.mark.parametrize(
    "arguments",
    [
        dict(split="training"),
        dict(split=["train"]),
        dict(num_points=0),
        dict(num_points=None),
        dict(num_shapes=-2),
        dict(num_shapes=2.5),
        dict(shape_seed="x"),
        dict(classes=[]),
        dict(classes=["chair", "sofa"]),
        dict(classes=["chair", "chair"]),
        dict(classes=[["chair"]]),
        dict(classes=3),
    ],
)
def test_wrong_arguments_are_named(arguments):
    with pytest.raises(DGLError, match=next(iter(arguments))):
        Shapes(**SMALL | arguments)


def test_statistics_of_the_points_do_not_give_the_class_away():
    """A vote of neighbours by principal extents and distances from the middle is far from solving it."""
    train, test = (
        Shapes(split, num_points=256, num_shapes=size) for split, size in (("train", 400), ("test", 200))
    )
    known, asked = _statistics(train), _statistics(test)
    mean, spread = known.mean(0), known.std(0)
    known, asked = (known - mean) / spread, (asked - mean) / spread
    nearest = np.linalg.norm(asked[:, None] - known[None], axis=-1).argsort(1)[:, :5]
    votes = (train.labels[nearest][..., None] == np.arange(10)).sum(1)
    accuracy = (votes.argmax(1) == test.labels).mean()
    assert 0.3 < accuracy < 0.75


def _statistics(shapes: Shapes) -> np.ndarray:
    rows = []
    for pos in shapes.clouds.node["pos"].reshape(len(shapes), -1, 3).astype(float):
        variances, axes = np.linalg.eigh(np.cov(pos.T))
        radii = np.histogram(np.linalg.norm(pos, axis=1), 10, (0, 1))[0] / math.sqrt(len(pos))
        rows.append([*variances, *np.ptp(pos @ axes, axis=0), *radii])
    return np.array(rows)


@pytest.mark.parametrize("name", ["num_points", "num_shapes"])
def test_more_than_can_be_made_is_refused(name):
    with pytest.raises(DGLError, match=name):
        Shapes("test", **{name: 2**62})
