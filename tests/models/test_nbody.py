"""OrientedNBody, and what all networks for particles have in common."""

import copy

import dgl
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data import ChargedParticles
from dgl_orient.geometry import norm
from dgl_orient.models import EGNN, GNN, LinearVelocity, OrientedNBody
from dgl_orient.models.pairs import _AnyPairs, full_graph, pairs_of
from dgl_orient.models.particles import particles_of
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball
from tests.particles import charges, on_systems, system, systems

SMALL = dict(hidden_feats=12, num_layers=3)
ORIENTED = {
    "learned": {},
    "three": dict(num_orientations=3),
    "neighbours": dict(num_orientations=2, neighbour_orientation=True),
    "no vectors": dict(initial_vectors=False),
    "plain distances": dict(inverse_distance=False),
    "velocity": dict(orientations="velocity"),
    "none": dict(orientations="none"),
    "none, plain distances": dict(orientations="none", inverse_distance=False),
    "knn": dict(k=3),
    "other sizes": dict(orientation=dict(hidden_feats=8, hidden_vectors=4)),
}
NETWORKS = {
    **{f"oriented: {name}": lambda kw=kw: OrientedNBody(**SMALL, **kw) for name, kw in ORIENTED.items()},
    "egnn": lambda: EGNN(**SMALL),
    "egnn, inverse distances": lambda: EGNN(**SMALL, inverse_distance=True),
    "egnn, knn": lambda: EGNN(**SMALL, k=3),
    "gnn": lambda: GNN(**SMALL),
    "gnn, knn": lambda: GNN(**SMALL, k=3),
    "linear": LinearVelocity,
}
SIZES = {"equal": [7, 7, 7], "mixed": [9, 4, 8]}


def network(name, dtype=torch.float64):
    """With weights large enough for all parts to be seen in the result."""
    model = NETWORKS[name]().to(dtype)
    with torch.no_grad():
        for layer in getattr(model, "layers", []):
            if hasattr(layer, "weights"):
                layer.weights.mul_(20)
                layer.update[-1].weight[12:].mul_(20)
            if hasattr(layer, "weight"):
                layer.weight.mul_(300)
    return model


def moved(model, graph):
    return model(graph) - graph.ndata["pos"]


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", [name for name in NETWORKS if not name.startswith("gnn")])
def test_positions_turn_and_shift_with_the_system(name, sizes):
    model, graph = network(name), systems(sizes)
    inputs = dict(scalars={"charge": graph.ndata["charge"]}, vectors={"vel": graph.ndata["vel"]})
    assert_equivariant(on_systems(model), graph.ndata["pos"], "positions", sizes, **inputs)


@pytest.mark.parametrize("name", ["oriented: learned", "oriented: three", "oriented: velocity", "egnn"])
def test_positions_turn_in_float32(name):
    model, graph = network(name, torch.float32), systems([10, 10], dtype=torch.float32)
    inputs = dict(scalars={"charge": graph.ndata["charge"]}, vectors={"vel": graph.ndata["vel"]})
    assert_equivariant(on_systems(model), graph.ndata["pos"], "positions", [10, 10], **inputs)


@pytest.mark.parametrize("name", NETWORKS)
def test_velocities_and_charges_and_others_matter(name):
    model, graph = network(name), systems([6, 6])
    result = model(graph)
    for key in ("pos", "vel", "charge"):
        other = systems([6, 6])
        other.ndata[key][0] *= -1.5
        change = (model(other) - result).abs()
        assert (change[1:6].max() > 1e-6) == (name != "linear"), f"{key} of another particle"
        assert change[6:].max() < 1e-12, "another system's particle is heard"


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "linear"])
def test_the_regular_form_equals_the_general_one(name, monkeypatch):
    model = network(name)
    used = []

    def recorded(graph):
        used.append(pairs_of(graph))
        return used[-1]

    graph = systems([6, 6, 6])
    replace_pairs(monkeypatch, recorded)
    one, one_gradients = with_gradients(model, graph)
    assert used and type(used[0]) is not _AnyPairs
    replace_pairs(monkeypatch, _AnyPairs)
    other, other_gradients = with_gradients(model, graph)
    assert torch.allclose(one, other, atol=1e-12)
    for a, b in zip(one_gradients, other_gradients):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-11)


def replace_pairs(monkeypatch, function):
    for module in ("nbody", "egnn", "nbody_baselines"):
        monkeypatch.setattr(f"dgl_orient.models.{module}.pairs_of", function)


def with_gradients(model, graph):
    """The result, and the gradients of parameters and of what the graph carries."""
    inputs = []
    for key in ("pos", "vel", "charge"):
        inputs.append(graph.ndata[key].detach().clone().requires_grad_())
    result = model(system(*inputs, graph.batch_num_nodes()))
    values = [*inputs, *model.parameters()]
    gradients = torch.autograd.grad(result.square().sum(), values, allow_unused=True)
    return result.detach(), [torch.zeros_like(v) if g is None else g for v, g in zip(values, gradients)]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    "graph",
    [
        systems([1]),
        systems([1, 1, 1]),
        systems([1, 5, 0, 2]),
        system(torch.ones(6, 3).double(), ball(6), charges(6), [4, 2]),
        system(ball(3).repeat(2, 1), ball(3).repeat(2, 1), charges(6)),
        system(ball(6), torch.zeros(6, 3).double(), charges(6)),
        system(torch.zeros(4, 3).double(), torch.zeros(4, 3).double(), charges(4)),
        systems([0]),
        systems([]),
    ],
    ids=["one", "ones", "sizes", "one place", "in twos", "at rest", "nothing known", "nobody", "no system"],
)
def test_ugly_systems_give_finite_positions_and_gradients(name, graph):
    result, gradients = with_gradients(network(name), graph)
    assert result.shape == graph.ndata["pos"].shape and torch.isfinite(result).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("name", ["oriented: learned", "oriented: none", "egnn", "gnn"])
def test_as_many_neighbours_as_there_are_particles_are_all(name):
    model, graph = network(name), systems([6, 6])
    result = model(graph)
    model.k = 5
    assert torch.allclose(model(graph), result, atol=1e-12)
    model.k = 2
    assert not torch.allclose(model(graph), result, atol=1e-6)


def test_oriented_network_can_tell_a_system_from_its_mirror_image():
    graph = systems([8])
    mirrored = system(*(graph.ndata[key] * torch.tensor([1.0, 1, -1]) for key in ("pos", "vel")), charges(8))
    mirror = torch.tensor([1.0, 1, -1], dtype=torch.float64)
    for name, chiral in (("oriented: learned", True), ("oriented: none", False), ("egnn", False)):
        model = network(name)
        difference = (moved(model, graph) * mirror - moved(model, mirrored)).abs().max()
        assert (difference > 1e-6) == chiral


def test_untrained_particles_fly_almost_straight_on():
    graph = systems([10, 10])
    off = moved(OrientedNBody().double(), graph) - graph.ndata["vel"]
    assert norm(off).max() < 0.2


@pytest.fixture(scope="module")
def motion():
    data = ChargedParticles("train", num_particles=4, size=20, horizon=400)
    return dgl.batch([data[i] for i in range(len(data))])


@pytest.mark.parametrize("name", ["oriented: learned", "oriented: none", "egnn", "gnn"])
def test_networks_learn_the_motion(name, motion):
    target, model = motion.ndata["target_pos"], NETWORKS[name]()
    still = (motion.ndata["pos"] - target).square().mean()
    start = (model(motion) - target).square().mean()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(25):
        loss = (model(motion) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in model.parameters())
    assert loss < 0.3 * (start if name == "gnn" else still)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("name", ["oriented: learned", "oriented: none", "egnn"])
def test_half_precision_does_not_reach_positions(name, sizes):
    model, graph = NETWORKS[name](), systems(sizes, dtype=torch.float32)
    graph.ndata["pos"] += 1000  # bfloat16 has steps of 4 here
    wanted = model(graph)
    with torch.autocast("cpu", torch.bfloat16):
        result = model(graph)
    assert result.dtype == torch.float32
    assert (result - wanted).abs().max() < 0.05


@pytest.mark.parametrize("name", NETWORKS)
def test_states_round_trip_and_inputs_stay(name):
    model, graph = NETWORKS[name](), systems([5, 6], dtype=torch.float32)
    before = {key: value.clone() for key, value in graph.ndata.items()}
    other = NETWORKS[name]()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(graph), model(graph)) and torch.equal(copy.deepcopy(model)(graph), model(graph))
    assert graph.num_edges() == 0 and before.keys() == graph.ndata.keys()
    assert all(torch.equal(graph.ndata[key], value) for key, value in before.items())


def test_full_graph_joins_all_pairs_of_a_system():
    graph = full_graph(torch.tensor([3, 1, 0, 2]))
    edges = {tuple(edge) for edge in torch.stack(graph.edges(), 1).tolist()}
    assert edges == {(i, j) for i in range(3) for j in range(3) if i != j} | {(4, 5), (5, 4)}
    assert graph.batch_num_nodes().tolist() == [3, 1, 0, 2] and graph.batch_num_edges().tolist() == [
        6,
        0,
        0,
        2,
    ]


def without(key):
    graph = systems([4])
    del graph.ndata[key]
    return graph


def altered(key, value):
    graph = systems([4])
    graph.ndata[key] = value
    return graph


@pytest.mark.parametrize("name", ["oriented: learned", "egnn", "gnn", "linear"])
@pytest.mark.parametrize(
    "graph, sentence",
    [
        (without("vel"), "vel is missing"),
        (without("charge"), "charge is missing"),
        (dgl_orient.point_cloud(ball(4)), "vel, charge is missing"),
        (ball(4), "Expected a graph"),
        (None, "Expected a graph"),
        (altered("vel", ball(4)[:, :2]), r"Expected vel of shape \(4, 3\), got \(4, 2\)"),
        (altered("charge", charges(4)[:, 0]), r"Expected charge of shape \(4, 1\)"),
        (altered("pos", ball(4)[:, :2]), r"shape \(4, 3\)"),
        (altered("vel", torch.full((4, 3), torch.nan).double()), r'ndata\["vel"\], but some are NaN'),
        (altered("charge", torch.full((4, 1), torch.inf).double()), r'ndata\["charge"\]'),
        (altered("pos", torch.full((4, 3), torch.nan).double()), "finite"),
        (altered("pos", 1e160 * ball(4)), "scale the cloud down"),
        (altered("charge", charges(4).long()), "int64"),
        (systems([4], dtype=torch.float32), "float64, but its input is torch.float32"),
    ],
    ids=range(14),
)
def test_bad_graphs_are_answered_with_a_sentence(name, graph, sentence):
    with pytest.raises(DGLError, match=sentence):
        NETWORKS[name]().double()(graph)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(orientations="random"), "learned, velocity, none, got 'random'"),
        (dict(orientations="velocity", num_orientations=2), "leave out num_orientations"),
        (dict(orientations="none", orientation=dict(hidden_vectors=4)), "leave out num_orientations"),
        (dict(orientations="none", neighbour_orientation=True), "neighbour_orientation=False"),
        (dict(k=0), "k to be an integer of at least 1"),
        (dict(num_layers=0), "num_layers"),
        (dict(hidden_feats=1.5), "hidden_feats"),
        (dict(num_orientations=0), "num_orientations"),
        (dict(orientation=dict(hidden_vectors=0)), "hidden_vectors"),
    ],
)
def test_bad_arguments_are_answered_with_a_sentence(arguments, sentence):
    with pytest.raises(DGLError, match=sentence):
        OrientedNBody(**arguments)


def test_frames_by_velocity_far_from_the_origin():
    model = OrientedNBody(**SMALL, orientations="velocity")
    graph, away = systems([7, 7], dtype=torch.float32), torch.tensor([16384.0, 8192.0, -16384.0])
    near = (graph.ndata["pos"] + away) - away
    found = []
    for pos in (near, near + away):
        graph.ndata["pos"] = pos
        particles = particles_of(graph, model)
        found.append(model._orient(None, particles, None))
    torch.testing.assert_close(*found, rtol=0, atol=0)
