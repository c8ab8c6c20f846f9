"""Networks for molecules: symmetries, smoothness through planes and lines, and forces."""

import math

import pytest
import torch
from dgl import DGLError

from dgl_orient import point_cloud
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import radius_graph
from dgl_orient.models import EGNNMol, OrientedMol, PaiNN, SchNet, energy_and_forces
from dgl_orient.models.atom_orientation import fading_axes
from dgl_orient.models.tracing import trace_orientations
from dgl_orient.testing import assert_equivariant
from tests.molecules import molecule_graph

SMALL = {"hidden_feats": 16, "num_layers": 2}
NETWORKS = (OrientedMol, EGNNMol, SchNet, PaiNN)
FLOAT64 = torch.float64


def untrained(cls, seed=0, **options):
    """A small network whose outputs are not near zero."""
    torch.manual_seed(seed)
    network = cls(**SMALL | options).double()
    with torch.no_grad():
        network.readout.mlp[-1].weight.mul_(10)
    return network


def function_of(network, element):
    def function(pos, batch_num_nodes, element):
        graph = point_cloud(pos, batch_num_nodes)
        graph.ndata["element"] = element.long()
        return network(graph)

    return function


def assert_symmetric(network, output, graph, **options):
    assert_equivariant(
        function_of(network, graph.ndata["element"]),
        graph.ndata["pos"],
        output,
        graph.batch_num_nodes().tolist(),
        per="cloud",
        scalars={"element": graph.ndata["element"].double()},
        **options,
    )


@pytest.mark.parametrize("cls", NETWORKS)
def test_scalars_are_invariant(cls):
    network = untrained(cls, num_outputs=3, pools=["sum", "mean", "sum"])
    assert_symmetric(network, "invariant", molecule_graph([7, 1, 5, 2]))


@pytest.mark.parametrize("cls", NETWORKS)
def test_further_features_of_atoms_are_invariant_and_count(cls):
    graph = molecule_graph([7, 5])
    feat = torch.randn(12, 2, dtype=FLOAT64, generator=torch.Generator().manual_seed(0))
    network = untrained(cls, in_feats=2)

    def function(pos, batch_num_nodes, element, feat):
        other = point_cloud(pos, batch_num_nodes)
        other.ndata.update(element=element.long(), feat=feat)
        return network(other)

    scalars = {"element": graph.ndata["element"].double(), "feat": feat}
    assert_equivariant(function, graph.ndata["pos"], "invariant", [7, 5], per="cloud", scalars=scalars)
    with torch.no_grad():
        result, changed = (
            function(graph.ndata["pos"], [7, 5], scalars["element"], each) for each in (feat, -feat)
        )
    assert (result - changed).abs().min() > 1e-6
    with pytest.raises(DGLError, match="in_feats=2"):
        network(graph)


@pytest.mark.parametrize("cls", [OrientedMol, PaiNN])
@pytest.mark.parametrize("out", ["vectors", "tensors"])
def test_vectors_and_tensors_are_equivariant(cls, out):
    assert_symmetric(untrained(cls, out=out), out, molecule_graph([7, 4, 5]))


@pytest.mark.parametrize("orientations", ["none", "fixed"])
def test_only_the_axes_of_the_coordinates_are_not_invariant(orientations):
    network, graph = untrained(OrientedMol, orientations=orientations), molecule_graph([7, 4])
    if orientations == "none":
        assert_symmetric(network, "invariant", graph)
    else:
        assert_symmetric(network, "invariant", graph, symmetries=["translation", "permutation", "batching"])
        with pytest.raises(AssertionError, match="rotation changes output 0"):
            assert_symmetric(network, "invariant", graph)


def molecule(element, pos):
    graph = point_cloud(torch.as_tensor(pos, dtype=FLOAT64))
    graph.ndata["element"] = torch.tensor(element)
    return graph


LINEAR = molecule([6, 8, 8], [[0, 0, 0], [1.2, 0, 0], [-1.2, 0, 0]])
PLANAR = molecule([6, 1, 1, 8], [[0, 0, 0], [-0.6, 0.9, 0], [-0.6, -0.9, 0], [1.2, 0, 0]])
METHANE = molecule(
    [6, 1, 1, 1, 1], [[0, 0, 0], [0.6, 0.6, 0.6], [0.6, -0.6, -0.6], [-0.6, 0.6, -0.6], [-0.6, -0.6, 0.6]]
)


@pytest.mark.parametrize("graph", [LINEAR, PLANAR, METHANE], ids=["linear", "planar", "methane"])
@pytest.mark.parametrize("out", ["scalars", "vectors", "tensors"])
def test_symmetric_molecules_keep_the_symmetries(graph, out):
    network = untrained(OrientedMol, out=out)
    kind = "invariant" if out == "scalars" else out
    if out == "vectors" and graph is not PLANAR:  # no direction is distinguished: the dipole moment is zero
        assert network(graph).abs().max() < 1e-9
    else:
        assert_symmetric(network, kind, graph)
    if out == "tensors" and graph is METHANE:
        tensor = network(graph)[0]
        torch.testing.assert_close(tensor, tensor[0, 0] * torch.eye(3, dtype=FLOAT64), atol=1e-9, rtol=0)


def bent(angle: float):
    """Water, linear at an angle of 0."""
    c, s = math.cos(angle), math.sin(angle)
    return molecule([8, 1, 1], [[0, 0, 0], [0.96, 0, 0], [-0.96 * c, 0.96 * s, 0]])


def pyramid(height: float):
    """Ammonia with different hydrogens' distances, planar at a height of 0."""
    return molecule([7, 1, 1, 1], [[0, 0, height], [1, 0, 0], [-0.5, 0.9, 0], [-0.6, -0.9, 0]])


@pytest.mark.parametrize("shape", [bent, pyramid])
@pytest.mark.parametrize("seed", range(3))
def test_energy_and_forces_are_continuous_through_lines_and_planes(shape, seed):
    network = untrained(OrientedMol, seed)
    path = [energy_and_forces(network, shape(each)) for each in torch.linspace(-0.6, 0.6, 61).tolist()]
    spread = torch.stack([energy for energy, _ in path]).std()
    step = 1e-8
    for middle in (-0.02, 0.0, 0.02):
        (before, force_before), (after, force_after) = (
            energy_and_forces(network, shape(middle + each)) for each in (-step, step)
        )
        assert (after - before).abs() < 1e-3 * spread
        assert (force_after - force_before).abs().max() < 1e-3 * force_before.abs().max().clamp_min(spread)
    # Nor is there a jump between the points of a coarse path.
    energies = torch.cat([energy for energy, _ in path])
    assert energies.diff().abs().max() < 0.3 * (energies.max() - energies.min())


def test_energy_is_continuous_where_an_atom_comes_within_the_cutoff():
    network = untrained(OrientedMol, cutoff=3.0)
    energies = [
        network(molecule([6, 8, 1], [[0, 0, 0], [1.2, 0, 0], [0, 3.0 + d, 0]])) for d in (-1e-4, 1e-4)
    ]
    near = network(molecule([6, 8, 1], [[0, 0, 0], [1.2, 0, 0], [0, 2.0, 0]]))
    assert (energies[0] - energies[1]).abs() < 1e-6 * (near - energies[0]).abs()


def test_fading_axes_are_gram_schmidt_times_lengths():
    v1, v2 = torch.randn(2, 20, 3, dtype=FLOAT64)
    axes = fading_axes(v1, v2)
    lengths = axes.norm(dim=1)
    first = v1 / v1.norm(dim=1, keepdim=True)
    torch.testing.assert_close(axes[:, :, 0] / lengths[:, :1], first)
    assert (lengths < 1).all() and (torch.linalg.det(axes) > 0).all()
    gram = axes.transpose(1, 2) @ axes
    torch.testing.assert_close(gram, torch.diag_embed(lengths**2))
    assert ((axes[:, :, 1] * v2).sum(1) > 0).all()
    zero = torch.zeros(3, dtype=FLOAT64)
    for pair in ((zero, v2[0]), (v1[0], zero), (v1[0], 2 * v1[0]), (zero, zero)):
        degenerate = fading_axes(*pair)
        assert torch.isfinite(degenerate).all() and degenerate[:, 1:].abs().max() < 1e-12
    assert torch.autograd.gradcheck(fading_axes, (zero.requires_grad_(), v2[0].requires_grad_()))


def test_axes_of_atoms_are_well_apart_before_training():
    network, graph = untrained(OrientedMol, hidden_feats=64), molecule_graph([12] * 20)
    orient = trace_orientations(network, lambda: network(graph)).orient[:, 0]
    lengths = orient.norm(dim=2)  # (N, F, 3)
    assert (
        orient.shape == (240, 2, 3, 3) and lengths[..., 0].median() > 0.95 and lengths[..., 1].median() > 0.9
    )


@pytest.mark.parametrize("cls", NETWORKS)
def test_forces_are_the_gradient_of_the_energy(cls):
    network, graph = untrained(cls), molecule_graph([5, 3])
    energy, forces = energy_and_forces(network, graph)
    direction = torch.randn(8, 3, dtype=FLOAT64)
    moved = [graph.local_var(), graph.local_var()]
    for each, sign in zip(moved, (-1, 1)):
        each.ndata["pos"] = graph.ndata["pos"] + sign * 1e-5 * direction
    numerical = (network(moved[1]) - network(moved[0])).sum() / 2e-5
    torch.testing.assert_close(numerical, -(forces * direction).sum(), rtol=1e-6, atol=1e-7)
    assert energy.shape == (2,) and forces.reshape(8, 3)[:5].sum(0).abs().max() < 1e-9


def morse(pos):
    """A toy potential: Morse bonds between three atoms, in eV and Å."""
    distance = torch.stack([(pos[:, i] - pos[:, j]).norm(dim=1) for i, j in ((0, 1), (0, 2), (1, 2))], 1)
    depth, width, best = torch.tensor([2.0, 2.0, 0.5]), 1.8, torch.tensor([1.0, 1.0, 1.5])
    return (depth * (1 - torch.exp(-width * (distance - best))) ** 2).sum(1)


def test_energy_is_conserved_in_a_run_of_a_fitted_potential():
    torch.manual_seed(0)
    rest = torch.tensor([[0.0, 0, 0], [1.0, 0, 0], [-0.125, 0.992, 0]])
    pos = rest + 0.08 * torch.randn(200, 3, 3)
    target = morse(pos)
    batch = point_cloud(pos.flatten(0, 1), [3] * 200)
    batch.ndata["element"] = torch.tensor([8, 1, 1]).repeat(200)
    references = [[float(target.mean()) / 3]] * 2
    network = OrientedMol(1, 32, 2, num_radial=8, elements=[1, 8], references=references)
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200)
    for _ in range(200):
        loss = (network(batch)[:, 0] - target).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    assert loss < 0.15 * target.std()
    network, mass = network.double(), torch.tensor([[16.0], [1.0], [1.0]], dtype=FLOAT64)
    graph = molecule([8, 1, 1], rest.double() * 1.06)
    velocity, step, totals, kinetic = torch.zeros(3, 3, dtype=FLOAT64), 0.01, [], []
    energy, force = energy_and_forces(network, graph)
    for _ in range(300):  # velocity Verlet
        velocity = velocity + 0.5 * step * force / mass
        graph.ndata["pos"] = graph.ndata["pos"] + step * velocity
        energy, force = energy_and_forces(network, graph)
        velocity = velocity + 0.5 * step * force / mass
        kinetic.append((0.5 * mass * velocity**2).sum())
        totals.append(energy[0] + kinetic[-1])
    totals = torch.stack(totals)
    assert max(kinetic) > 0.01  # the atoms do move
    assert (totals - totals[0]).abs().max() < 0.02 * max(kinetic)


def test_a_network_can_be_trained_by_forces():
    network, graph = untrained(OrientedMol), molecule_graph([4, 4])
    _, forces = energy_and_forces(network, graph, create_graph=True)
    forces.square().sum().backward()
    assert all(torch.isfinite(each.grad).all() for each in network.parameters() if each.grad is not None)
    assert network.orientation_encoder.weights.grad.abs().max() > 0


def test_references_pools_and_scales_give_what_they_say():
    elements, references = [1, 6, 8], [[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]]
    network = OrientedMol(
        2, 8, 1, pools=["sum", "mean"], elements=elements, references=references, scales=[2.0, 3.0]
    ).double()
    graph = molecule([6, 8, 8], LINEAR.ndata["pos"])
    with torch.no_grad():
        network.readout.mlp[-1].weight.zero_()
        network.readout.mlp[-1].bias.fill_(1.0)
    torch.testing.assert_close(network(graph), torch.tensor([[17.0 + 6, 9.0 + 3]], dtype=FLOAT64))
    with pytest.raises(DGLError, match="atomic number 7"):
        network(molecule([6, 7, 8], LINEAR.ndata["pos"]))


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: SchNet(out="tensors"), "has no vectors of atoms"),
        (lambda: OrientedMol(orientations="none", out="vectors"), "has no vectors of atoms"),
        (lambda: OrientedMol(2, out="tensors"), "num_outputs=1"),
        (lambda: OrientedMol(cutoff=0), "cutoff above 0"),
        (lambda: OrientedMol(2, pools=["sum"]), "2 pools"),
        (lambda: OrientedMol(elements=[0]), "from 1 to 118"),
        (lambda: OrientedMol(elements=[1], references=[[1.0, 2.0]]), r"references of shape \(1, 1\)"),
        (lambda: OrientedMol(scales=[float("nan")]), "finite scales"),
        (lambda: OrientedMol()(point_cloud(torch.zeros(2, 3))), "element is missing"),
        (lambda: energy_and_forces(OrientedMol(out="tensors").double(), PLANAR), "Expected scalars"),
    ],
)
def test_wrong_arguments_are_sentences(make, sentence):
    with pytest.raises(DGLError, match=sentence):
        make()


def test_the_radius_graph_has_all_pairs_within_the_radius():
    graph = molecule_graph([6, 1, 9, 4])
    pos, sizes = graph.ndata["pos"], graph.batch_num_nodes().tolist()
    near = torch.block_diag(*(torch.ones(n, n) for n in sizes)).bool() & (torch.cdist(pos, pos) <= 2.5)
    expected = (near & ~torch.eye(20, dtype=bool)).nonzero()
    made = radius_graph(pos, 2.5, sizes)
    src, dst = made.edges(order="eid")
    assert torch.equal(torch.stack([dst, src], 1), expected)
    assert made.batch_num_edges().sum() == len(expected) and made.batch_num_nodes().tolist() == sizes
    with pytest.raises(DGLError, match="radius above 0"):
        radius_graph(pos, 0.0)


def test_a_rotated_molecule_has_rotated_axes():
    network, graph = untrained(OrientedMol), molecule_graph([8])
    rotation = random_rotation(dtype=FLOAT64)
    rotated = graph.local_var()
    rotated.ndata["pos"] = graph.ndata["pos"] @ rotation.T
    first, second = (trace_orientations(network, lambda g=g: network(g)).orient for g in (graph, rotated))
    torch.testing.assert_close(rotation @ first, second)
