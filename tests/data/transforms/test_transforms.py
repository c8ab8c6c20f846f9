"""What all transforms have in common."""

import dgl
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data.transforms import (
    FixedPoints,
    NormalizeScale,
    RandomJitter,
    RandomPointDropout,
    RandomRotate,
    RandomScale,
    RandomTranslate,
    RemoveOutliers,
)
from tests.clouds import SIZES, ball

from .batches import TYPES, clouds, fields

ALL = [
    RandomRotate("so3"),
    RandomRotate("x"),
    RandomRotate("y"),
    RandomRotate("z"),
    RandomRotate("none"),
    RandomScale(),
    RandomScale(0.5, 2, anisotropic=True),
    RandomTranslate(),
    RandomJitter(),
    RandomJitter((0.0, 0.02)),
    RandomPointDropout(),
    FixedPoints(20),
    FixedPoints(20, replace=True),
    FixedPoints(20, "first"),
    FixedPoints(20, "farthest"),
    FixedPoints(20, "random_farthest"),
    NormalizeScale(),
    RemoveOutliers(),
]


@pytest.mark.parametrize("transform", ALL, ids=repr)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", [(60,), SIZES], ids=str)
def test_the_given_graph_stays_and_types_names_and_clouds_are_kept(transform, dtype, sizes):
    graph = clouds(sizes, dtype)
    before = {name: value.clone() for name, value in fields(graph).items()}
    torch.manual_seed(3)
    after = transform(graph)
    assert set(graph.ndata) == set(before) == set(after.ndata)
    assert all(torch.equal(before[name], value) for name, value in fields(graph).items())
    assert {name: value.dtype for name, value in fields(after).items()} == {
        name: value.dtype for name, value in before.items()
    }
    assert after.batch_size == len(sizes) and int(after.batch_num_nodes().sum()) == after.num_nodes()
    # Labels stay with their points.
    row = after.ndata["part"]
    assert torch.equal(after.ndata["charge"], before["charge"][row])
    assert torch.isfinite(after.ndata["pos"]).all()
    torch.testing.assert_close(after.ndata["normal"].norm(dim=1), torch.ones(len(row), dtype=dtype))
    torch.manual_seed(3)
    assert all(torch.equal(value, after.ndata[name]) for name, value in fields(transform(graph)).items())


@pytest.mark.parametrize("transform", ALL, ids=repr)
def test_clouds_without_points(transform):
    batch = dgl_orient.point_cloud(torch.zeros(3, 3), [3, 0])
    none = dgl_orient.point_cloud(torch.zeros(0, 3), [])
    if isinstance(transform, FixedPoints):
        with pytest.raises(DGLError):
            transform(batch)
    else:
        assert int(transform(batch).batch_num_nodes()[1]) == 0
    assert transform(none).batch_size == 0


@pytest.mark.parametrize("transform", ALL, ids=repr)
def test_edges_are_kept_or_refused(transform):
    graph = dgl_orient.knn_graph(ball(60, dtype=torch.float32), 4, [30, 30])
    graph.ndata["pos"] = ball(60, dtype=torch.float32)
    if isinstance(transform, (RandomPointDropout, FixedPoints)):
        with pytest.raises(DGLError):
            transform(graph)
    else:
        after = transform(graph)
        assert torch.equal(after.edges()[0], graph.edges()[0]) and after.batch_size == 2
        assert torch.equal(after.batch_num_edges(), graph.batch_num_edges())


@pytest.mark.parametrize("transform", ALL, ids=repr)
def test_what_is_no_cloud_is_refused(transform):
    flat = dgl_orient.point_cloud(torch.rand(5, 2))
    several = dgl.heterograph({("a", "to", "b"): ([0], [0])})
    for given in (torch.rand(5, 3), dgl.graph(([0], [1])), flat, several, None):
        with pytest.raises(DGLError):
            transform(given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomRotate("w"),
        lambda: RandomRotate("SO3"),
        lambda: RandomScale(0, 1),
        lambda: RandomScale(2, 1),
        lambda: RandomScale("a"),
        lambda: RandomTranslate(-1),
        lambda: RandomTranslate(float("nan")),
        lambda: RandomJitter(-0.1),
        lambda: RandomJitter((0.2, 0.1)),
        lambda: RandomJitter(0.1, float("inf")),
        lambda: RandomPointDropout(1),
        lambda: RandomPointDropout(None),
        lambda: FixedPoints(0),
        lambda: FixedPoints(2.5),
        lambda: FixedPoints(5, "last"),
        lambda: FixedPoints(5, "farthest", replace=True),
        lambda: FixedPoints(5, "random_farthest", replace=True),
        lambda: RandomRotate("z", vectors=["speed"])(clouds()),
        lambda: RandomScale(vectors=["charge"])(clouds()),
    ],
)
def test_bad_arguments_are_refused(make):
    with pytest.raises(DGLError):
        make()


def test_they_say_what_they_do():
    assert repr(dgl.transforms.Compose([RandomRotate("z"), RandomScale(), RandomJitter()])).split() == [
        "Compose([",
        "RandomRotate('z'),",
        "RandomScale(0.6667,",
        "1.5),",
        "RandomJitter(0.01,",
        "0.05)",
        "])",
    ]
    assert [
        repr(each)
        for each in (
            FixedPoints(5, replace=True),
            NormalizeScale("own"),
            RandomTranslate(),
            RandomPointDropout(),
        )
    ] == [
        "FixedPoints(5, 'random', replace=True)",
        "NormalizeScale(vectors=('own',))",
        "RandomTranslate(0.2)",
        "RandomPointDropout(0.5)",
    ]
