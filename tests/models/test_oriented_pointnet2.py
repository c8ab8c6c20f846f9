"""Tests of the oriented PointNet++: classification and part segmentation."""

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data import Shapes, point_cloud_loader
from dgl_orient.models import OrientedPointNet2, OrientedPointNet2Seg
from dgl_orient.testing import assert_equivariant
from tests.clouds import DEGENERATE, ball

SIZES = [70, 41, 9]


def classifier(**kw):
    return OrientedPointNet2(5, (8, 12, 16), (24, 12, 4), 16, (12,), 6, **kw)


def segmenter(**kw):
    return OrientedPointNet2Seg(5, 0, (8, 12, 16), (24, 8), 16, 12, (12,), 6, **kw)


NETWORKS = {"cloud": classifier, "node": segmenter}
CASES = [(per, conv) for per in NETWORKS for conv in ("edge", "pose")]


def on_clouds(model):
    return lambda pos, batch_num_nodes=None: model(dgl_orient.point_cloud(pos, batch_num_nodes))


def settled(model, pos):
    """In evaluation mode, with the statistics of these points in the batch norms."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.momentum = 1.0
    model(dgl_orient.point_cloud(pos, [len(pos) // 2, len(pos) - len(pos) // 2]))
    return model.eval()


@pytest.mark.parametrize("per, conv", CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_predictions_are_invariant(per, conv, dtype):
    pos = ball(sum(SIZES), dtype=dtype) * torch.tensor([1.0, 1.5, 2.5], dtype=dtype)
    model = settled(NETWORKS[per](conv=conv).to(dtype), pos)
    assert_equivariant(on_clouds(model), pos, "invariant", SIZES, per=per, trials=1)
    one, other = on_clouds(model)(pos), on_clouds(model)(ball(sum(SIZES), seed=1, dtype=dtype))
    assert (one - other).abs().max() > 0.05 * one.abs().max(), "the same prediction for all point clouds"


@pytest.mark.parametrize("per", NETWORKS)
def test_features_and_vectors_of_points_keep_the_invariance(per):
    pos, feat, vec = ball(60), torch.rand(60, 2).double(), torch.rand(60, 1, 3).double()
    model = NETWORKS[per](in_feats=2, in_vectors=1).double().eval()
    rotation = dgl_orient.geometry.random_rotation(dtype=torch.float64)

    def run(pos, feat, vec):
        graph = dgl_orient.point_cloud(pos)
        graph.ndata.update(feat=feat, vec=vec)
        return model(graph)

    result = run(pos, feat, vec)
    torch.testing.assert_close(result, run(pos @ rotation.T, feat, vec @ rotation.T), rtol=0, atol=1e-9)
    for other in (run(pos, feat.flip(0), vec), run(pos, feat, -vec)):
        assert (result - other).abs().max() > 1e-6


@pytest.mark.parametrize("per, conv", CASES)
@pytest.mark.parametrize("pos, sizes", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize("training", [True, False])
def test_degenerate_point_clouds_give_finite_predictions_and_gradients(per, conv, pos, sizes, training):
    model = NETWORKS[per](conv=conv).double().train(training)
    result = model(dgl_orient.point_cloud(pos, sizes))
    assert len(result) == (len(sizes) if per == "cloud" else len(pos))
    result.square().sum().backward()
    assert torch.isfinite(result).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


def test_in_training_each_point_cloud_has_one_choice_of_signs():
    model, clouds = settled(classifier().double(), ball(60)), dgl_orient.point_cloud(ball(60), [30, 30])
    mean = model(clouds).softmax(1)
    for module in model.modules():  # all but the signs as in evaluation
        module.training = module is model
    sampled = {}
    for seed in range(30):
        torch.manual_seed(seed)
        one = model(clouds).softmax(1)[0]
        sampled[tuple(one.round(decimals=9).tolist())] = one
    assert len(sampled) == 4
    torch.testing.assert_close(torch.stack(list(sampled.values())).mean(0), mean[0])


def test_parts_are_conditioned_on_the_category():
    model = OrientedPointNet2Seg.light(6, num_categories=3).eval()
    clouds = dgl_orient.point_cloud(ball(80, dtype=torch.float32), [40, 40])
    one, other = (model(clouds, torch.tensor([0, last])) for last in (1, 2))
    assert torch.equal(one[:40], other[:40]) and not torch.allclose(one[40:], other[40:])
    with pytest.raises(DGLError, match="category"):
        model(clouds)


@pytest.mark.parametrize(
    "arguments",
    [
        dict(widths=(8, 8)),
        dict(level_sizes=()),
        dict(orientation={"input_features": "none", "num_layers": 1}),
        dict(num_orientations=0),
    ],
)
def test_sizes_that_do_not_fit_are_refused(arguments):
    with pytest.raises(DGLError):
        OrientedPointNet2(5, **arguments)


def test_it_learns_rotated_shapes():
    train, test = (
        Shapes(split, 64, number, classes=["mug", "plane", "table"], seed=1)
        for split, number in (("train", 150), ("test", 90))
    )
    torch.manual_seed(0)
    model = OrientedPointNet2(5, (16, 24, 32), (24, 12, 4), 32, (16,), 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    loader = point_cloud_loader(train, 15, shuffle=True)
    for epoch in range(14):
        loader.set_epoch(epoch)
        for graph, label in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(graph), label).backward()
            optimizer.step()
    model.eval()
    graph, label = next(iter(point_cloud_loader(test, 90)))
    graph.ndata["pos"] = graph.ndata["pos"] @ dgl_orient.geometry.random_rotation().T
    assert (model(graph).argmax(1) == label).float().mean() > 0.8
