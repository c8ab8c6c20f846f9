"""The baselines against their formulas."""

import pytest
import torch
from dgl import DGLError

from dgl_orient.models import GNN, LinearVelocity
from dgl_orient.testing import assert_equivariant
from tests.particles import on_systems, systems


def pair_by_pair(model, pos, vel, charge):
    """One system."""
    linear, n = torch.nn.functional.linear, len(pos)
    feat = model.embed(torch.cat([pos, vel], 1))
    for layer in model.layers:
        totals = []
        for i in range(n):
            total = torch.zeros_like(feat[i])
            for j in range(n):
                if i != j:
                    inputs = torch.cat([feat[i], feat[j], charge[i] * charge[j]])
                    total = total + layer.message(linear(inputs, layer.edge.weight, layer.edge.bias))
            totals.append(total)
        feat = feat + layer.update(torch.cat([feat, torch.stack(totals)], 1))
    return model.decode(feat)


@pytest.mark.parametrize("sizes", [[5, 5], [4, 6]], ids=["equal", "mixed"])
def test_gnn_equals_its_formulas_pair_by_pair(sizes):
    model, graph = GNN(8, 2).double(), systems(sizes)
    parts = (graph.ndata[key].split(sizes) for key in ("pos", "vel", "charge"))
    expected = torch.cat([pair_by_pair(model, *system) for system in zip(*parts)])
    assert torch.allclose(model(graph), expected, rtol=1e-10, atol=1e-11)


def test_gnn_is_permutation_equivariant_but_not_rotation_equivariant():
    graph = systems([7, 4])
    inputs = dict(scalars={"charge": graph.ndata["charge"]}, vectors={"vel": graph.ndata["vel"]})
    case = (on_systems(GNN(8, 2).double()), graph.ndata["pos"], "positions", [7, 4])
    assert_equivariant(*case, symmetries=("permutation", "batching"), **inputs)
    for motion in ("rotation", "translation"):
        with pytest.raises(AssertionError, match=f"{motion} changes"):
            assert_equivariant(*case, symmetries=(motion,), **inputs)


def test_linear_velocity_finds_the_best_time():
    graph, model = systems([30]), LinearVelocity().double()
    vel = graph.ndata["vel"]
    target = graph.ndata["pos"] + 0.37 * vel
    optimizer = torch.optim.LBFGS(model.parameters())

    def loss():
        optimizer.zero_grad()
        value = (model(graph) - target).square().sum()
        value.backward()
        return value

    optimizer.step(loss)
    assert sum(p.numel() for p in model.parameters()) == 1
    assert float(model.time.detach()) == pytest.approx(0.37, abs=1e-6)


@pytest.mark.parametrize("arguments", [dict(k="all"), dict(hidden_feats=0), dict(num_layers=0)])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(DGLError, match=next(iter(arguments))):
        GNN(**arguments)
