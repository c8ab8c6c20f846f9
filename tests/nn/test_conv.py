import copy

import dgl
import pytest
import torch
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient import OrientationNet, OrientedConv
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, ball, generator

AGGREGATIONS = ("max", "sum", "mean", "attention")
#: What the message sees beyond features and positions.
EXTRAS = [(), ("relative",), ("vector",), ("vectors",), ("edges",), ("relative", "vectors", "edges")]


class Message(nn.Module):
    """A nonlinear map of everything it is given, with the sizes that the tests below use."""

    def __init__(self, out_feats, extras, num_orientations, scale):
        super().__init__()
        self.scale = scale
        widths = {"relative": 9, "vector": 3, "vectors": 6, "edges": 0}
        oriented = num_orientations * (3 + sum(widths[extra] for extra in extras))
        self.linear = nn.Linear(10 + oriented + 2 * ("edges" in extras), out_feats)

    def forward(self, h_i, h_j, local, *further):
        inputs = [h_i, h_j, self.scale * local, *further]
        return torch.nn.functional.leaky_relu(self.linear(torch.cat([x.flatten(1) for x in inputs], 1)), 0.2)


def make_conv(aggregation, extras=(), num_orientations=1, scale=1.0, **arguments):
    message, logits = (Message(size, extras, num_orientations, scale) for size in (6, 2))
    attention = logits if aggregation == "attention" else None
    return OrientedConv(message, aggregation, "relative" in extras, attention, **arguments).double()


def random_tensor(*shape, seed=1):
    return torch.randn(*shape, dtype=torch.float64, generator=generator(seed)).requires_grad_()


def make_inputs(n, num_orientations=1):
    """Features, positions, orientations, and vectors one or several a node."""
    frames = random_rotation(n * num_orientations, torch.float64, generator(n))
    return dict(
        feat=random_tensor(n, 5, seed=n),
        pos=random_tensor(n, 3, seed=n + 1),
        orient=frames.view(n, num_orientations, 3, 3).requires_grad_(),
        vector=random_tensor(n, 3, seed=n + 2),
        vectors=random_tensor(n, 2, 3, seed=n + 3),
    )


def make_knn(num_orientations=1):
    """A graph of 12 points with 48 edges, and the points' inputs."""
    inputs = make_inputs(12, num_orientations)
    return dgl_orient.knn_graph(inputs["pos"].detach(), 4), inputs


def plain_conv(conv, graph, src, dst, edge_feat=None, extras=()):
    """Eq. 9, edge by edge."""
    result = []
    for i in range(graph.num_dst_nodes()):
        messages, logits = [], []
        for j, edge in zip(*(x.tolist() for x in graph.in_edges(i, form="all")[::2])):
            inverse = dst["orient"][i].transpose(1, 2)  # (F, 3, 3)
            inputs = [] if src["feat"] is None else [dst["feat"][i], src["feat"][j]]
            inputs.append(torch.stack([matrix @ (src["pos"][j] - dst["pos"][i]) for matrix in inverse]))
            if "relative" in extras:
                inputs.append(torch.stack([a @ b for a, b in zip(inverse, src["orient"][j])]))
            for name in {"vector", "vectors"}.intersection(extras):
                inputs.append(torch.stack([src[name][j] @ matrix.T for matrix in inverse]))
            if "edges" in extras:
                inputs.append(edge_feat[edge])
            inputs = [x.unsqueeze(0) for x in inputs]
            messages.append(conv.message(*inputs)[0])
            if conv.attention is not None:
                logits.append(conv.attention(*inputs)[0])
        result.append(plain_aggregation(conv.aggregation, messages, logits))
    return torch.stack(result)


def plain_aggregation(aggregation, messages, logits):
    if not messages:
        return torch.zeros(6, dtype=torch.float64)
    messages = torch.stack(messages)
    if aggregation == "attention":
        weights = torch.stack(logits).softmax(0)  # (k, heads), over six features
        return (messages * weights.repeat_interleave(6 // weights.shape[1], 1)).sum(0)
    return {"max": messages.amax, "sum": messages.sum, "mean": messages.mean}[aggregation](0)


def assert_same(actual, plain, inputs):
    """Equal in values and in gradients, in which an output of 0 counts too."""
    torch.testing.assert_close(actual, plain, rtol=1e-11, atol=1e-11)
    options = dict(retain_graph=True, allow_unused=True, materialize_grads=True)
    gradients = [torch.autograd.grad((x + 1).pow(3).sum(), inputs, **options) for x in (actual, plain)]
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


# Each case is a graph, the inputs of its sources and of its destinations, and what the layer is given.


def knn_case(num_orientations):
    graph, inputs = make_knn(num_orientations)
    return graph, inputs, inputs, inputs


def ragged_case(num_orientations):
    """Parallel edges, self-loops and nodes without neighbours, with 32-bit numbers."""
    inputs = make_inputs(12, num_orientations)
    src, dst = torch.randint(12, (2, 48), generator=generator(), dtype=torch.int32)
    return dgl.graph((src, dst % 9), num_nodes=12), inputs, inputs, inputs


def bipartite_case(num_orientations):
    src, dst = make_inputs(15, num_orientations), make_inputs(6, num_orientations)
    graph = bipartite_knn_graph(src["pos"].detach(), dst["pos"].detach(), 4)
    return graph, src, dst, {name: (src[name], dst[name]) for name in src}


def block_case(num_orientations):
    graph, inputs = make_knn(num_orientations)
    return dgl.create_block(graph.in_edges(range(3)), 12, 3), inputs, inputs, inputs


# What a message sees does not depend on the aggregation: each input, and each aggregation with all inputs.
@pytest.mark.parametrize(
    "aggregation, extras, num_orientations",
    [
        *(("max", extras, num_orientations) for extras in EXTRAS for num_orientations in (1, 3)),
        *((aggregation, EXTRAS[-1], 3) for aggregation in AGGREGATIONS[1:]),
    ],
    ids=str,
)
@pytest.mark.parametrize("case", [knn_case, ragged_case, bipartite_case, block_case])
def test_equals_the_formula(case, aggregation, extras, num_orientations):
    graph, src, dst, given = case(num_orientations)
    conv = make_conv(aggregation, extras, num_orientations, allow_zero_in_degree=case is ragged_case)
    edge_feat = random_tensor(graph.num_edges(), 2)
    further = dict(
        vec=next((given[name] for name in ("vector", "vectors") if name in extras), None),
        edge_feat=edge_feat if "edges" in extras else None,
    )
    plain = plain_conv(conv, graph, src, dst, edge_feat, extras)
    leaves = (*src.values(), *dst.values(), edge_feat, *conv.parameters())
    # The receivers' orientations are enough unless those of the senders are inputs.
    orients = [given["orient"], dst["orient"][: graph.num_dst_nodes()]]
    for orient in orients[: 1 if conv.relative_orientation else 2]:
        assert_same(conv(graph, given["feat"], given["pos"], orient, **further), plain, leaves)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_no_features_and_any_function_as_message(aggregation):
    graph, inputs = make_knn(num_orientations=2)
    inputs["feat"] = None
    attention = (lambda local: local[:, 1, :1]) if aggregation == "attention" else None
    conv = OrientedConv(lambda local: local.flatten(1).sin(), aggregation, attention=attention)
    actual = conv(graph, None, inputs["pos"], inputs["orient"])
    assert_same(actual, plain_conv(conv, graph, inputs, inputs), (inputs["pos"], inputs["orient"]))
    assert not graph.ndata and not graph.edata


@pytest.mark.parametrize("cloud", ORDINARY)
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_invariant(cloud, aggregation):
    assert_invariant(ORDINARY[cloud](torch.float64), aggregation)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_invariant_in_float32(aggregation):
    assert_invariant(ball(dtype=torch.float32), aggregation)


def assert_invariant(pos, aggregation):
    extras = ("relative", "vectors")
    # What the message sees of the cloud is of one size, so that no error hides behind larger inputs.
    conv = make_conv(aggregation, extras, 2, scale=1 / float(pos.std())).to(pos.dtype)
    net = OrientationNet(num_orientations=2).to(pos.dtype)

    def layer(pos, batch_num_nodes, feat, vec):
        graph = dgl_orient.knn_graph(pos, 8, batch_num_nodes)
        return conv(graph, feat, pos, net(graph, pos), vec=vec)

    scalars, vectors = random_tensor(60, 5).detach().to(pos), random_tensor(60, 2, 3).detach().to(pos)
    inputs = dict(scalars={"feat": scalars}, vectors={"vec": vectors})
    assert_equivariant(layer, pos, "invariant", SIZES, **inputs, trials=1)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_nodes_without_neighbours(aggregation):
    inputs = make_inputs(4)
    arguments = inputs["feat"], inputs["pos"], inputs["orient"]
    graph = dgl.graph(([0, 1], [1, 2]), num_nodes=4)
    conv = make_conv(aggregation)
    with pytest.raises(DGLError, match="allow_zero_in_degree=True"):
        conv(graph, *arguments)
    conv.set_allow_zero_in_degree(True)
    assert conv(graph, *arguments)[[0, 3]].eq(0).all()
    conv.set_allow_zero_in_degree(False)
    with pytest.raises(DGLError):
        conv(graph, *arguments)


@pytest.mark.parametrize("num_nodes", [0, 3])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_graphs_without_edges(aggregation, num_nodes):
    inputs = make_inputs(3)
    conv = make_conv(aggregation, allow_zero_in_degree=True)
    arguments = [inputs[name][:num_nodes] for name in ("feat", "pos", "orient")]
    actual = conv(dgl.graph(([], []), num_nodes=num_nodes), *arguments)
    assert actual.shape == (num_nodes, 6) and actual.eq(0).all()
    actual.sum().backward()
    assert all(p.grad.eq(0).all() for p in conv.parameters())


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_gradcheck(aggregation):
    extras = ("relative", "vectors", "edges")
    inputs = make_inputs(4, 2)
    graph = dgl_orient.knn_graph(inputs["pos"].detach(), 2)
    conv = make_conv(aggregation, extras, 2)
    leaves = inputs["feat"], inputs["pos"], inputs["orient"], inputs["vectors"], random_tensor(8, 2)
    assert torch.autograd.gradcheck(lambda *x: conv(graph, *x[:3], vec=x[3], edge_feat=x[4]), leaves)


def test_tensors_in_any_memory_layout():
    graph, inputs = make_knn(num_orientations=2)
    arguments = [inputs[name] for name in ("feat", "pos", "orient", "vectors")]
    conv = make_conv("attention", ("relative", "vectors"), 2)
    other = OrientedConv(
        lambda *x: scattered(conv.message(*x)), "attention", True, lambda *x: scattered(conv.attention(*x))
    )
    actual = other(graph, *map(scattered, arguments[:3]), vec=scattered(arguments[3]))
    assert_same(actual, conv(graph, *arguments[:3], vec=arguments[3]), arguments)


def scattered(tensor):
    """The same values, with the first dimension the fastest in memory."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def test_autocast_does_not_touch_the_geometry():
    graph, inputs = make_knn(num_orientations=2)
    arguments = [inputs[name].detach().float() for name in ("feat", "pos", "orient", "vectors")]
    calls = []
    conv = OrientedConv(lambda *x: calls.append(x) or x[2].flatten(1), relative_orientation=True)
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled):
            conv(graph, *arguments[:3], vec=arguments[3])
    assert len(calls[0]) == len(calls[1]) == 5
    assert all(a.dtype == torch.float32 and torch.equal(a, b) for a, b in zip(*calls))


def test_state_dict_and_reset():
    graph, inputs = make_knn()
    arguments = inputs["feat"], inputs["pos"], inputs["orient"]
    conv, other = make_conv("attention"), make_conv("attention")
    assert set(conv.state_dict()) == {
        f"{part}.linear.{name}" for part in ("message", "attention") for name in ("weight", "bias")
    }
    assert not torch.equal(conv(graph, *arguments), other(graph, *arguments))
    other.load_state_dict(conv.state_dict())
    assert torch.equal(conv(graph, *arguments), other(graph, *arguments))
    before = copy.deepcopy(conv.state_dict())
    conv.reset_parameters()
    assert not any(torch.equal(before[name], value) for name, value in conv.state_dict().items())
    OrientedConv(lambda local: local.flatten(1)).reset_parameters()


@pytest.mark.parametrize(
    "arguments",
    [
        dict(aggregation="median"),
        dict(aggregation="attention"),
        dict(aggregation="sum", attention=len),
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(DGLError):
        OrientedConv(len, **arguments)


@pytest.mark.parametrize(
    "name, value",
    [
        ("feat", torch.zeros(11, 5)),
        ("feat", torch.zeros(12, 0)),
        ("feat", (torch.zeros(12, 5), None)),
        ("pos", torch.zeros(12, 2)),
        ("pos", [0] * 12),
        ("orient", torch.zeros(12, 3, 3)),
        ("orient", (random_tensor(12, 2, 3, 3), random_tensor(12, 1, 3, 3))),
        ("vec", torch.zeros(12, 2)),
        ("vec", torch.zeros(12, 2, 4)),
        ("edge_feat", torch.zeros(12, 2)),
    ],
)
def test_wrong_inputs_are_refused(name, value):
    graph, inputs = make_knn()
    inputs = {key: inputs[key] for key in ("feat", "pos", "orient")} | {name: value}
    with pytest.raises(DGLError):
        OrientedConv(lambda *x: x[2].flatten(1), relative_orientation=True)(graph, **inputs)


def test_relative_orientations_on_bipartite_graphs_need_both():
    graph, _, dst, given = bipartite_case(num_orientations=1)
    with pytest.raises(DGLError):
        make_conv("max", ("relative",))(graph, given["feat"], given["pos"], dst["orient"])


@pytest.mark.parametrize(
    "message, attention",
    [
        (lambda local: local, lambda local: local[:, 0]),
        (lambda local: local[:, 0], lambda local: local),
        (lambda local: local[:, 0], lambda local: local[:, 0, :2]),
    ],
)
def test_wrong_messages_are_refused(message, attention):
    graph, inputs = make_knn()
    with pytest.raises(DGLError):
        OrientedConv(message, "attention", attention=attention)(graph, None, inputs["pos"], inputs["orient"])


def test_attention_is_a_softmax_with_two_derivatives():
    pos = ball(9).requires_grad_()
    graph, orient = dgl_orient.knn_graph(pos, 3), random_rotation(9, torch.float64).unsqueeze(1)
    message, logits = (nn.Linear(3, 2, dtype=torch.float64) for _ in range(2))
    conv = OrientedConv(
        lambda local: message(local.flatten(1)), "attention", attention=lambda local: logits(local.flatten(1))
    )
    src, dst = graph.edges()

    def plain(pos):
        local = torch.einsum("efji,ej->ei", orient[dst], pos[src] - pos[dst])
        weights = logits(local).view(9, 3, 2).softmax(1)
        return (weights * message(local).view(9, 3, 2)).sum(1)

    torch.testing.assert_close(conv(graph, None, pos, orient), plain(pos))
    assert torch.autograd.gradgradcheck(lambda pos: conv(graph, None, pos, orient), (pos,))
