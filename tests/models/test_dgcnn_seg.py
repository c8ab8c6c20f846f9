"""Segmentation: output vectors, conditioning on categories, names of parameters."""

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.models import DGCNNSeg, OrientedDGCNNSeg
from tests.clouds import ball
from tests.models.test_networks import MODELS


def test_plain_vectors_are_three_numbers_each():
    model, outputs = MODELS["plain normals"](), []
    model.vectors.mlp.register_forward_hook(lambda module, inputs, output: outputs.append(output))
    vectors = model(dgl_orient.point_cloud(ball(30, dtype=torch.float32), [20, 10]))
    assert vectors.shape == (30, 2, 3) and torch.equal(vectors.flatten(1), outputs[0])


@pytest.mark.parametrize("plain, oriented", [("plain parts", "parts"), ("plain normals", "normals")])
def test_segmentation_states_keep_their_names(plain, oriented):
    last = "labels" if "parts" in plain else "vectors.mlp.0"
    after = ["embed.0.weight", "head.0.weight", f"{last}.weight", f"{last}.bias"]
    for name, before in [(plain, ["backbone"]), (oriented, ["orientation_encoder", "backbone"])]:
        names = [key for key, _ in MODELS[name]().named_parameters()]
        # In this order too, by which an optimizer's state is kept.
        assert list(dict.fromkeys(key.split(".")[0] for key in names))[: len(before)] == before
        assert [key for key in names if key.startswith(("embed.0", "head.0", last))] == after


@pytest.mark.parametrize(
    "make", [DGCNNSeg.light, lambda *args, **kw: OrientedDGCNNSeg.light(*args, level_sizes=(8,), **kw)]
)
def test_predictions_are_conditioned_on_the_category(make):
    pos = ball(60, dtype=torch.float32)
    assert make(4).num_categories == 0
    model = make(4, num_categories=3).eval()
    cloud = dgl_orient.point_cloud(pos, [30, 30])
    a, b = model(cloud, torch.tensor([0, 1])), model(cloud, torch.tensor([2, 1]))
    assert not torch.allclose(a[:30], b[:30]) and torch.equal(a[30:], b[30:])
    with pytest.raises(DGLError):
        model(cloud)
    for wrong in (torch.tensor([0, 3]), torch.tensor([0.0, 1.0])):
        with pytest.raises(DGLError):
            model(cloud, wrong)
    with pytest.raises(DGLError, match="num_categories=0"):
        make(4)(cloud, torch.tensor([0, 1]))


def test_planes_are_fitted_for_vectors_only():
    with pytest.raises(DGLError, match="vectors"):
        OrientedDGCNNSeg.light(3, plane_fit=True)
