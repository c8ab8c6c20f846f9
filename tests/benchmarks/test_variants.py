"""The variants of oriented DGCNN: their symmetries, their layers against plain formulas, and recipes."""

from __future__ import annotations

import copy
import doctest
import importlib

import pytest
import torch
from torch import nn

import dgl_orient
from benchmarks.modelnet40.variants import (
    AttentiveEdgeConv,
    AttentiveOrientedDGCNN,
    RefinedOrientedDGCNN,
    Refinement,
    RelativeEdgeConv,
    RelativeOrientedDGCNN,
)
from dgl_orient import OrientedConv
from dgl_orient.config.build import build
from dgl_orient.config.recipe import check
from dgl_orient.config.registry import model_class
from dgl_orient.config.sections import model_section
from dgl_orient.geometry import frames_from_vectors, random_rotation
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball, duplicates, generator, line, plane, rotation_error

SIZES = [40, 31, 9]
VARIANTS = {
    "oriented-dgcnn-relative": RelativeOrientedDGCNN,
    "oriented-dgcnn-attention": AttentiveOrientedDGCNN,
    "oriented-dgcnn-refined": RefinedOrientedDGCNN,
}
MOMENTS = dict(input_features="covariance", num_layers=0, hidden_feats=8, hidden_vectors=8)
SETTINGS = {
    "canonical": dict(initial_feats="canonical", level_sizes=(12,)),
    "every": dict(initial_feats="all_scales", level_sizes=(), orientation=MOMENTS),
    "constant": dict(initial_feats="constant", level_sizes=(), orientation=MOMENTS, dynamic=False),
}
DOUBLE = dict(dtype=torch.float64)


def small(name: str, setting: str = "every", **options) -> nn.Module:
    sizes = dict(widths=(8, 12), embed_feats=16, head_feats=(12,), k=6, num_orientations=2, orientation_k=6)
    return VARIANTS[name](5, **(sizes | SETTINGS[setting] | options))


def on_clouds(model):
    return lambda pos, batch_num_nodes=None: model(dgl_orient.point_cloud(pos, batch_num_nodes))


def settled(model, pos):
    """The model in evaluation mode, with the statistics of these points in its batch norms."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.momentum = 1.0
    model(dgl_orient.point_cloud(pos, [len(pos) // 2, len(pos) - len(pos) // 2]))
    return model.eval()


@pytest.mark.parametrize("module", ["relative", "attention", "refined"])
def test_examples_run(module):
    failed, attempted = doctest.testmod(importlib.import_module(f"benchmarks.modelnet40.variants.{module}"))
    assert attempted and not failed


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", VARIANTS)
def test_answers_hold_in_every_pose(name, setting):
    pos = ball(sum(SIZES))
    model = settled(small(name, setting).double(), pos)
    assert_equivariant(on_clouds(model), pos + 1e3, "invariant", SIZES, per="cloud")
    one, other = on_clouds(model)(pos), on_clouds(model)(ball(sum(SIZES), seed=1))
    assert (one - other).abs().max() > 0.05 * one.abs().max(), "the same answer for all clouds"


@pytest.mark.parametrize("name", VARIANTS)
def test_answers_hold_in_training_and_in_float32(name):
    model, motions = small(name, dropout=0.5).double(), ("rotation", "translation")
    assert_equivariant(on_clouds(model), ball(sum(SIZES)), "invariant", SIZES, "cloud", symmetries=motions)
    pos = ball(80, dtype=torch.float32)
    model = settled(small(name, dynamic=False), pos)
    assert_equivariant(on_clouds(model), pos, "invariant", [50, 30], "cloud")


UGLY = {
    "one point": (ball(30), [1, 29]),
    "only single points": (ball(3), [1, 1, 1]),
    "no point": (ball(30), [0, 18, 12]),
    "fewer than k": (ball(30), [3, 2, 25]),
    "duplicates": (duplicates(40), [20, 20]),
    "one place": (torch.ones(20, 3, **DOUBLE), [12, 8]),
    "line": (torch.cat([line(14), ball(16)]), [14, 16]),
    "plane": (plane(30), [3, 27]),
}


@pytest.mark.parametrize("cloud", UGLY)
@pytest.mark.parametrize("name", VARIANTS)
def test_ugly_clouds_give_finite_answers_and_gradients(name, cloud):
    pos, sizes = UGLY[cloud]
    model = small(name).double()
    clouds = dgl_orient.point_cloud(pos, sizes)
    result = model(clouds)
    result.square().sum().backward()
    assert result.shape == (len(sizes), 5) and torch.isfinite(result).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())
    assert torch.isfinite(model.eval()(clouds)).all()


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_reach_all_parameters(name, setting):
    model = small(name, setting, dropout=0.0).double()
    result = model(dgl_orient.point_cloud(ball(sum(SIZES)), SIZES))
    (result * torch.randn(result.shape, **DOUBLE, generator=generator())).sum().backward()
    # Rounding leaves 1e-17 where batch norm or softmax takes a parameter out.
    unreached = [n for n, p in model.named_parameters() if p.grad is None or p.grad.abs().max() < 1e-12]
    assert not unreached


@pytest.mark.parametrize("name", VARIANTS)
def test_they_learn_and_their_states_round_trip(name):
    cloud = dgl_orient.point_cloud(ball(80, dtype=torch.float32), [30, 20, 20, 10])
    label, model = torch.tensor([0, 1, 1, 0]), small(name, dropout=0.0)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(25):
        optimizer.zero_grad()
        losses.append(nn.functional.cross_entropy(model(cloud), label))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.3 * losses[0]
    other = small(name)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.eval()(cloud), model.eval()(cloud))


@pytest.mark.parametrize("name", VARIANTS)
def test_autocast_changes_answers_little(name):
    pos = ball(80, dtype=torch.float32)
    model, cloud = settled(small(name, dynamic=False), pos), dgl_orient.point_cloud(pos, [50, 30])
    expected = model(cloud)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(cloud)
    assert (found - expected).abs().max() < 0.1 * expected.abs().max()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_recipe_of_oriented_dgcnn_serves(name):
    assert model_class(name, "pointcls") is VARIANTS[name]
    own, common = (model_section(each, "pointcls").fields() for each in (name, "oriented-dgcnn"))
    assert own.keys() == common.keys()
    section = dict(
        preset="light", widths=[16, 16], num_orientations=2, level_sizes=[], initial_feats="all_scales"
    )
    section |= dict(name=name, orientation=MOMENTS, k=8, dropout=0.1)
    data = {"name": "shapes", "num_points": 64, "num_shapes": 20}
    job = build(check({"pipeline_name": "pointcls", "data": data, "model": section}))
    model = job.make_model()
    assert type(model) is VARIANTS[name] and model.backbone.k == 8
    assert [conv.out_feats for conv in model.backbone.convs] == [16, 16]


def layer_inputs(sizes, in_feats):
    n = sum(sizes)
    pos, orient = ball(n), random_rotation(3 * n, torch.float64, generator()).view(n, 3, 3, 3)
    feat = torch.randn(n, in_feats, **DOUBLE, generator=generator()).requires_grad_() if in_feats else None
    return dgl_orient.knn_graph(pos, 5, sizes), feat, pos.requires_grad_(), orient.requires_grad_()


def assert_same_layer(conv, reference, inputs):
    """Equal values, gradients and statistics, in training and in evaluation mode."""
    twin = copy.deepcopy(conv)
    for training in (True, True, False):
        conv.train(training), twin.train(training)
        found, expected = conv(*inputs), reference(twin, *inputs)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
        weights = torch.randn(found.shape, **DOUBLE, generator=generator())
        shared = [each for each in inputs[1:] if each is not None]
        for a, b in zip(
            torch.autograd.grad((found * weights).sum(), [*shared, *conv.parameters()]),
            torch.autograd.grad((expected * weights).sum(), [*shared, *twin.parameters()]),
        ):
            torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)
    for (name, a), b in zip(conv.named_buffers(), twin.buffers()):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10, msg=name)


def message_of(conv):
    """EdgeConv's message, with further terms of the neighbour's orientation where the layer has them."""

    def message(*seen):
        *feats, local = seen[: 3 if conv.in_feats else 1]
        result = conv.psi(local.flatten(1))
        if feats:
            result = result + conv.theta(feats[1] - feats[0]) + conv.phi(feats[0])
        if isinstance(conv, RelativeEdgeConv):
            relative = seen[-1][:, : conv.num_relative].transpose(2, 3)  # the layer's order
            result = conv.activation(conv.norms[0](result + conv.omega(relative.flatten(1))))
        return result

    return message


def plain_relative(conv, graph, feat, pos, orient):
    return OrientedConv(message_of(conv), relative_orientation=True, allow_zero_in_degree=True)(
        graph, feat, pos, orient
    )


def plain_attention(conv, graph, feat, pos, orient):
    """Weights by the formula on gathered edges; then the messages' weighed sum."""

    def logits(*seen):
        *feats, local = seen
        result = conv.tau(local.flatten(1))
        if feats:
            query, key = conv.query(feats[0]), conv.key(feats[1] - feats[0])
            result = result + (query * key).unflatten(1, (conv.heads, -1)).sum(2)
        return conv.logit_norm(result) * conv.sharpness

    options = dict(attention=logits, allow_zero_in_degree=True)
    joined = OrientedConv(message_of(conv), "attention", **options)(graph, feat, pos, orient)
    joined = conv.activation(conv.norm(joined))
    return torch.where((graph.in_degrees() > 0).unsqueeze(1), joined, 0.0)


@pytest.mark.parametrize("sizes", [[9, 7], [9, 4, 2]], ids=["k neighbours", "fewer"])
@pytest.mark.parametrize("in_feats", [0, 4])
def test_layers_equal_message_passing_on_edges(sizes, in_feats):
    inputs = layer_inputs(sizes, in_feats)
    conv = RelativeEdgeConv(in_feats, 8, num_orientations=3, num_relative=2).double()
    nn.init.normal_(conv.norms[0].weight, generator=generator(5))  # of both signs, as training may make it
    assert_same_layer(conv, plain_relative, inputs)
    conv = AttentiveEdgeConv(in_feats, 8, num_orientations=3).double()
    nn.init.normal_(conv.sharpness, generator=generator(5))
    assert_same_layer(conv, plain_attention, inputs)


def test_attention_to_the_only_neighbour_is_whole():
    graph, feat, pos, orient = layer_inputs([2, 2], 4)
    conv = AttentiveEdgeConv(4, 8, 3).double().eval()
    expected = conv(graph, feat, pos, orient)
    nn.init.normal_(conv.sharpness)
    torch.testing.assert_close(conv(graph, feat, pos, orient), expected)


def plain_refinement(refinement, graph, feat, pos, orient):
    found, frames = refinement.mlp(feat), []
    num = orient.shape[1]
    shares, weights = found[:, : 6 * num].view(-1, num, 2, 3), found[:, 6 * num :].view(-1, num, 2)
    for i in range(len(pos)):
        near = graph.predecessors(i)
        away = pos[near] - pos[i]
        unit = away.square().sum(1).mean().sqrt()
        pair = []
        for f in range(num):
            for a in range(2):
                own = orient[i, f] @ (torch.eye(3, **DOUBLE)[a] + shares[i, f, a])
                pair.append(own + (weights[near, f, a].unsqueeze(1) * away).mean(0) / unit)
        frames.append(torch.stack(pair).view(num, 2, 3))
    return frames_from_vectors(*torch.stack(frames).unbind(2))


def test_refinement_equals_the_formula_and_turns_with_the_cloud():
    graph, feat, pos, orient = layer_inputs([9, 4], 4)
    refinement = Refinement(4, 3).double()
    nn.init.normal_(refinement.mlp[2].weight, std=0.5)
    assert_same_layer(refinement, plain_refinement, (graph, feat, pos, orient))
    moved = refinement(graph, feat, pos, orient)
    assert rotation_error(moved) < 1e-12 and (moved - orient).abs().max() > 0.1

    def refined(pos, feat, axes):
        return refinement(graph, feat, pos, axes.unflatten(1, (3, 3)).transpose(2, 3))

    given = dict(scalars={"feat": feat.detach()})
    given |= dict(vectors={"axes": orient.detach().transpose(2, 3).flatten(1, 2)})
    motions = ("rotation", "translation")
    assert_equivariant(refined, pos.detach(), "frames", symmetries=motions, **given)


def test_refinement_by_nothing_leaves_orientations_as_they_are():
    graph, feat, pos, orient = layer_inputs([9, 1], 4)
    refinement = Refinement(4, 3).double()
    nn.init.zeros_(refinement.mlp[2].weight)
    nn.init.zeros_(refinement.mlp[2].bias)
    torch.testing.assert_close(refinement(graph, feat, pos, orient), orient)


def test_further_layers_see_refined_orientations():
    model, pos = small("oriented-dgcnn-refined").double().eval(), ball(30)
    before = on_clouds(model)(pos)
    nn.init.normal_(model.backbone.refinements[0].mlp[2].bias)
    assert not torch.allclose(on_clouds(model)(pos), before, rtol=1e-3)
