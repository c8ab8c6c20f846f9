"""OrientedNBody, and properties of all networks for particles."""

import copy

import dgl
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data import ChargedParticles
from dgl_orient.geometry import norm
from dgl_orient.models import EGNN, GNN, LinearVelocity, OrientedNBody
from dgl_orient.models.particles import particle_inputs
from dgl_orient.nn.edge_ops import GraphEdges, RegularEdges, edge_ops
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
    """With weights large enough for all parts to matter for the result."""
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
def test_positions_are_equivariant(name, sizes):
    model, graph = network(name), systems(sizes)
    inputs = dict(scalars={"charge": graph.ndata["charge"]}, vectors={"vel": graph.ndata["vel"]})
    assert_equivariant(on_systems(model), graph.ndata["pos"], "positions", sizes, **inputs)


@pytest.mark.parametrize("name", ["oriented: learned", "oriented: three", "oriented: velocity", "egnn"])
def test_positions_are_equivariant_in_float32(name):
    model, graph = network(name, torch.float32), systems([10, 10], dtype=torch.float32)
    inputs = dict(scalars={"charge": graph.ndata["charge"]}, vectors={"vel": graph.ndata["vel"]})
    assert_equivariant(on_systems(model), graph.ndata["pos"], "positions", [10, 10], **inputs)


@pytest.mark.parametrize("name", NETWORKS)
def test_positions_velocities_and_charges_of_others_matter(name):
    model, graph = network(name), systems([6, 6])
    result = model(graph)
    for key in ("pos", "vel", "charge"):
        other = systems([6, 6])
        other.ndata[key][0] *= -1.5
        change = (model(other) - result).abs()
        assert (change[1:6].max() > 1e-6) == (name != "linear"), f"{key} of another particle"
        assert change[6:].max() < 1e-12, "another system has an effect"


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "linear"])
def test_regular_edges_equal_graph_edges(name, monkeypatch):
    model = network(name)
    used = []

    def recorded(graph):
        used.append(edge_ops(graph))
        return used[-1]

    graph = systems([6, 6, 6])
    replace_edge_ops(monkeypatch, recorded)
    one, one_gradients = with_gradients(model, graph)
    assert used and type(used[0]) is RegularEdges
    replace_edge_ops(monkeypatch, GraphEdges)
    other, other_gradients = with_gradients(model, graph)
    assert torch.allclose(one, other, atol=1e-12)
    for a, b in zip(one_gradients, other_gradients):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-11)


def replace_edge_ops(monkeypatch, function):
    for module in ("nbody", "egnn", "nbody_baselines"):
        monkeypatch.setattr(f"dgl_orient.models.{module}.edge_ops", function)


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
    ids=["one", "ones", "sizes", "one place", "in twos", "at rest", "all zero", "no particles", "no system"],
)
def test_ugly_systems_give_finite_positions_and_gradients(name, graph):
    result, gradients = with_gradients(network(name), graph)
    assert result.shape == graph.ndata["pos"].shape and torch.isfinite(result).all()
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


@pytest.mark.parametrize("name", ["oriented: learned", "oriented: none", "egnn", "gnn"])
def test_k_of_all_particles_equals_no_k(name):
    model, graph = network(name), systems([6, 6])
    result = model(graph)
    model.k = 5
    assert torch.allclose(model(graph), result, atol=1e-12)
    model.k = 2
    assert not torch.allclose(model(graph), result, atol=1e-6)


IN_FEATS = {
    **{
        f"oriented: {name}": lambda kw=kw: OrientedNBody(**SMALL, **kw, in_feats=2, in_vectors=3)
        for name, kw in ORIENTED.items()
    },
    "egnn": lambda: EGNN(**SMALL, in_feats=2),
}


def with_features(model):
    def function(pos, batch_num_nodes=None, *, vel, charge, feat, vec=None):
        graph = system(pos, vel, charge, batch_num_nodes)
        graph.ndata["feat"] = feat
        if vec is not None:
            graph.ndata["vec"] = vec
        return model(graph)

    return function


@pytest.mark.parametrize("name", IN_FEATS)
def test_positions_with_further_features_are_equivariant_and_depend_on_them(name):
    model, graph = IN_FEATS[name]().double(), systems([9, 4, 8])
    scalars = {"charge": graph.ndata["charge"], "feat": torch.randn(21, 2, dtype=torch.float64)}
    vectors = {"vel": graph.ndata["vel"]}
    if name != "egnn":
        vectors["vec"] = torch.randn(21, 3, 3, dtype=torch.float64)
    pos, fn = graph.ndata["pos"], with_features(model)
    assert_equivariant(fn, pos, "positions", [9, 4, 8], scalars=scalars, vectors=vectors)
    result = fn(pos, **scalars, **vectors)
    for key, value in (scalars | vectors).items():
        changed = fn(pos, **(scalars | vectors | {key: 2 * value}))
        assert (changed - result).abs().max() > 1e-9, key


def test_gnn_takes_further_features_and_missing_ones_are_named():
    graph, model = systems([5]), GNN(**SMALL, in_feats=2).double()
    with pytest.raises(DGLError, match=r'in_feats=2; .* \(5, 2\), into graph.ndata\["feat"\]'):
        model(graph)
    graph.ndata["feat"] = torch.randn(5, 2, dtype=torch.float64)
    one = model(graph)
    graph.ndata["feat"] = -graph.ndata["feat"]
    assert not torch.allclose(model(graph), one)


def test_oriented_networks_distinguish_a_system_from_its_mirror_image():
    graph = systems([8])
    mirrored = system(*(graph.ndata[key] * torch.tensor([1.0, 1, -1]) for key in ("pos", "vel")), charges(8))
    mirror = torch.tensor([1.0, 1, -1], dtype=torch.float64)
    for name, chiral in (("oriented: learned", True), ("oriented: none", False), ("egnn", False)):
        model = network(name)
        difference = (moved(model, graph) * mirror - moved(model, mirrored)).abs().max()
        assert (difference > 1e-6) == chiral


def test_untrained_networks_move_particles_with_almost_constant_velocity():
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
    expected = model(graph)
    with torch.autocast("cpu", torch.bfloat16):
        result = model(graph)
    assert result.dtype == torch.float32
    assert (result - expected).abs().max() < 0.05


@pytest.mark.parametrize("name", NETWORKS)
def test_states_round_trip_and_inputs_stay(name):
    model, graph = NETWORKS[name](), systems([5, 6], dtype=torch.float32)
    before = {key: value.clone() for key, value in graph.ndata.items()}
    other = NETWORKS[name]()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(graph), model(graph)) and torch.equal(copy.deepcopy(model)(graph), model(graph))
    assert graph.num_edges() == 0 and before.keys() == graph.ndata.keys()
    assert all(torch.equal(graph.ndata[key], value) for key, value in before.items())


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
        (altered("pos", torch.full((4, 3), torch.nan).double()), r'ndata\["pos"\]'),
        (altered("pos", 1e160 * ball(4)), "scale the point cloud down"),
        (altered("charge", charges(4).long()), "int64"),
        (systems([4], dtype=torch.float32), "float64, but its input is torch.float32"),
    ],
    ids=range(14),
)
def test_bad_graphs_are_refused(name, graph, sentence):
    with pytest.raises(DGLError, match=sentence):
        NETWORKS[name]().double()(graph)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (dict(orientations="random"), "'none', got 'random'"),
        (dict(orientations="velocity", num_orientations=2), "takes num_orientations and orientation"),
        (
            dict(orientations="none", orientation=dict(hidden_vectors=4)),
            "takes num_orientations and orientation",
        ),
        (dict(orientations="none", neighbour_orientation=True), "neighbour_orientation=False"),
        (dict(k=0), "k to be an integer of at least 1"),
        (dict(num_layers=0), "num_layers"),
        (dict(hidden_feats=1.5), "hidden_feats"),
        (dict(num_orientations=0), "num_orientations"),
        (dict(orientation=dict(hidden_vectors=0)), "hidden_vectors"),
    ],
)
def test_bad_arguments_are_refused(arguments, sentence):
    with pytest.raises(DGLError, match=sentence):
        OrientedNBody(**arguments)


def test_frames_by_velocity_far_from_the_origin():
    model = OrientedNBody(**SMALL, orientations="velocity")
    graph, away = systems([7, 7], dtype=torch.float32), torch.tensor([16384.0, 8192.0, -16384.0])
    near = (graph.ndata["pos"] + away) - away
    actual = []
    for pos in (near, near + away):
        graph.ndata["pos"] = pos
        particles = particle_inputs(graph, model)
        actual.append(model._orient(None, particles, None))
    torch.testing.assert_close(*actual, rtol=0, atol=0)
