"""EGNN against its paper's formulas."""

import pytest
import torch
from dgl import DGLError

from dgl_orient.models import EGNN
from tests.particles import systems


def by_the_paper(model, pos, vel, charge, inverse_distance):
    """One system, pair by pair."""

    def phi_e(layer, *inputs):
        return layer.message(
            torch.nn.functional.linear(torch.cat(inputs), layer.edge.weight, layer.edge.bias)
        )

    n, first = len(pos), pos
    feat = [model.embed(v.square().sum().sqrt().view(1)) for v in vel]
    for layer in model.layers:
        new_feat, new_pos = [], []
        for i in range(n):
            total, shift = torch.zeros_like(feat[i]), torch.zeros_like(pos[i])
            for j in range(n):
                if i == j:
                    continue
                charges = charge[i] * charge[j]
                squares = [((x[i] - x[j]) ** 2).sum().view(1) for x in (pos, first)]
                values = [squares[0], charges, squares[1]]
                if inverse_distance:
                    near = 1 / (squares[0].sqrt() + 0.05)
                    values += [near, charges * near, charges / (squares[0] + 0.05)]
                message = phi_e(layer, feat[i], feat[j], *values)
                total = total + message
                shift = shift + (pos[i] - pos[j]) * (layer.hidden(message) @ layer.weight[0])
            new_pos.append(pos[i] + layer.velocity(feat[i]) * vel[i] + shift / (n - 1))
            if layer is not model.layers[-1]:
                new_feat.append(feat[i] + layer.update(torch.cat([feat[i], total])))
        feat, pos = new_feat, torch.stack(new_pos)
    return pos


@pytest.mark.parametrize("sizes", [[5, 5], [4, 6]], ids=["equal", "mixed"])
@pytest.mark.parametrize("inverse_distance", [False, True])
def test_equals_the_paper_pair_by_pair(sizes, inverse_distance):
    model = EGNN(8, 2, inverse_distance=inverse_distance).double()
    with torch.no_grad():
        for layer in model.layers:
            layer.weight.mul_(300)
    graph = systems(sizes)
    parts = (graph.ndata[key].split(sizes) for key in ("pos", "vel", "charge"))
    expected = torch.cat([by_the_paper(model, *system, inverse_distance) for system in zip(*parts)])
    assert (expected - graph.ndata["pos"]).abs().max() > 0.1
    assert torch.allclose(model(graph), expected, rtol=1e-10, atol=1e-11)


def test_has_the_authors_sizes():
    edge, update = (2 * 64 + 3) * 64 + 64 + 64 * 64 + 64, 128 * 64 + 64 + 64 * 64 + 64
    weight, velocity = 64 * 64 + 64 + 64, 64 * 64 + 64 + 64 + 1
    assert sum(p.numel() for p in EGNN().parameters()) == 128 + 4 * (edge + weight + velocity) + 3 * update


def test_initial_displacements_are_along_velocities():
    graph = systems([6, 6])
    model = EGNN().double()
    for layer in model.layers:
        torch.nn.init.zeros_(layer.weight)
    moved = model(graph) - graph.ndata["pos"]
    assert torch.linalg.cross(moved, graph.ndata["vel"]).abs().max() < 1e-12


@pytest.mark.parametrize("arguments", [dict(k=-1), dict(hidden_feats=0), dict(num_layers=True)])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(DGLError, match=next(iter(arguments))):
        EGNN(**arguments)
