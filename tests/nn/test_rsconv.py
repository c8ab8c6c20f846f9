import copy

import dgl
import pytest
import torch
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient import OrientedRSConv
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn import OrientationNet
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, ball, duplicates, generator

GRAPHS = ["kNN", "shuffled", "any", "bipartite", "block"]


def make_graph(kind):
    """A graph, and its source and destination coordinates."""
    if kind == "bipartite":
        src, dst = ball(15), ball(6, seed=1)
        return bipartite_knn_graph(src, dst, 4), src, dst
    pos = ball(12)
    graph = dgl_orient.knn_graph(pos, 4)
    if kind == "shuffled":
        order = torch.randperm(48, generator=generator())
        graph = dgl.graph(tuple(ends[order] for ends in graph.edges()))
    if kind == "any":
        ends = torch.randint(12, (2, 40), generator=generator())
        graph = dgl.add_self_loop(dgl.remove_self_loop(dgl.graph(tuple(ends), num_nodes=12)))
    if kind == "isolated":
        graph = dgl.graph(([1, 2, 2, 4], [0, 0, 3, 3]), num_nodes=12)
    if kind == "block":
        graph = dgl.to_block(dgl.in_subgraph(graph, [0, 3, 7]), [0, 3, 7])
        pos = pos[graph.srcdata[dgl.NID]]
    return graph, pos, pos[: graph.num_dst_nodes()]


def make_orient(num_nodes, num_orientations):
    if num_orientations == 0:
        return None
    rotations = random_rotation(num_nodes * num_orientations, torch.float64, generator())
    return rotations.view(num_nodes, num_orientations, 3, 3).requires_grad_()


def make_conv(num_orientations=1, **arguments):
    """A layer in float64 whose batch norms are not at their start."""
    conv = OrientedRSConv(5, 6, num_orientations, **arguments).double()
    for layer in conv.children():
        if isinstance(layer, nn.BatchNorm1d):
            for value in (layer.weight, layer.bias, layer.running_mean, layer.running_var):
                nn.init.uniform_(value, 0.5, 1.5)
    return conv


def plain_rsconv(conv, graph, feat, src, dst, orient):
    """Eqs. 10 to 12, edge by edge."""
    senders, receivers = (ends.tolist() for ends in graph.edges())
    relations = []
    for j, i in zip(senders, receivers):
        r = src[j] - dst[i]
        frames = [torch.eye(3, dtype=r.dtype)] if orient is None else orient[i]
        relations.append(torch.cat([r.norm().view(1), *(frame.T @ r for frame in frames)]))
    hidden = conv.relation_norm(conv.relation(torch.stack(relations)))
    weights = conv.mapping(hidden.clamp_min(0))
    messages = [[] for _ in dst]
    for j, i, weight in zip(senders, receivers, weights):
        messages[i].append(weight * feat[j])
    nothing = torch.zeros_like(feat[0])
    message = torch.stack([torch.stack(near).max(0)[0] if near else nothing for near in messages])
    return conv.activation(conv.raising_norm(conv.raising(conv.activation(conv.message_norm(message)))))


def assert_equals_plain(conv, kind, num_orientations):
    graph, src, dst = make_graph(kind)
    src, dst = src.clone().requires_grad_(), dst.clone().requires_grad_()
    feat = torch.randn(len(src), 5, dtype=torch.float64, requires_grad=True)
    orient = make_orient(len(dst), num_orientations)
    reference = copy.deepcopy(conv)
    inputs = [x for x in (feat, src, dst, orient) if x is not None]
    actual = conv(graph, feat, (src, dst), orient)
    expected = plain_rsconv(reference, graph, feat, src, dst, orient)
    torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-11)
    gradients = [
        torch.autograd.grad((value.square() + value).sum(), [*inputs, *layer.parameters()])
        for value, layer in ((actual, conv), (expected, reference))
    ]
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)
    # Also the running statistics.
    for a, b in zip(conv.buffers(), reference.buffers()):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("num_orientations", [0, 1, 3])
@pytest.mark.parametrize("training", [True, False])
def test_equals_the_formula_in_values_gradients_and_statistics(kind, num_orientations, training):
    # A smooth activation: a cut one hides the gradients of whatever it cuts.
    conv = make_conv(num_orientations, activation=nn.functional.silu).train(training)
    before = conv.relation_norm.running_mean.clone()
    assert_equals_plain(conv, kind, num_orientations)
    assert torch.equal(before, conv.relation_norm.running_mean) != training


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("arguments", [dict(), dict(activation=None), dict(hidden_feats=3)], ids=str)
def test_equals_the_formula_without_batch_norm(kind, arguments):
    assert_equals_plain(make_conv(2, batch_norm=False, **arguments), kind, 2)


def test_a_hand_worked_value():
    conv = OrientedRSConv(1, 1, hidden_feats=1, batch_norm=False, activation=None)
    for parameter in conv.parameters():
        nn.init.ones_(parameter)
    pos = torch.tensor([[0.0, 0, 0], [3, 0, 4], [0, -1, 0]])
    graph = dgl.graph(([1, 2], [0, 0]), num_nodes=3)
    conv.set_allow_zero_in_degree(True)
    # The relations are (5; 3, 0, 4) and (1; 0, -1, 0), so M is 13 + 1 and 1 + 1, and W adds 1 once more.
    actual = conv(graph, torch.tensor([[0.0], [10], [90]]), pos, torch.eye(3).expand(3, 1, 3, 3))
    torch.testing.assert_close(actual, torch.tensor([[2 * 90.0 + 1], [1], [1]]))


def test_one_tensor_serves_both_sides_and_nothing_stays_on_the_graph():
    for kind in ("kNN", "block"):
        graph, src, dst = make_graph(kind)
        conv, feat, orient = (
            make_conv().eval(),
            ball(len(src), seed=2)[:, [0, 1, 2, 0, 1]],
            make_orient(len(dst), 1),
        )
        keys = set(graph.srcdata), set(graph.dstdata), set(graph.edata)
        single = conv(graph, feat, src, orient)
        assert torch.equal(single, conv(graph, (feat, feat[: len(dst)]), (src, dst), orient))
        assert keys == (set(graph.srcdata), set(graph.dstdata), set(graph.edata))


@pytest.mark.parametrize(
    "cloud, dtype", [*((cloud, torch.float64) for cloud in ORDINARY), ("ball", torch.float32)]
)
def test_equivariant(cloud, dtype):
    net, conv = OrientationNet(2).to(dtype), OrientedRSConv(5, 6, 2).to(dtype).eval()

    def layer(pos, batch_num_nodes, feat):
        graph = dgl_orient.knn_graph(pos, 6, batch_num_nodes)
        return conv(graph, feat, pos, net(graph, pos))

    feat = {"feat": torch.randn(60, 5, dtype=dtype)}
    assert_equivariant(layer, ORDINARY[cloud](dtype), "invariant", SIZES, scalars=feat)


def test_invariant_in_training():
    net, conv = OrientationNet().double(), OrientedRSConv(5, 6).double()

    def layer(pos, feat):
        graph = dgl_orient.knn_graph(pos, 6)
        return conv(graph, feat, pos, net(graph, pos))

    assert_equivariant(layer, ball(), scalars={"feat": torch.randn(60, 5, dtype=torch.float64)})
    assert conv.relation_norm.num_batches_tracked > 0


def relation_and_output(conv, *inputs):
    """What M's first map gives, and the output."""
    recorded = []
    hook = conv.relation_norm.register_forward_pre_hook(lambda _, args: recorded.append(args[0].clone()))
    output = conv(*inputs)
    hook.remove()
    return recorded[0], output


def test_autocast_leaves_the_geometry_alone():
    pos = 1e4 + ball(60, dtype=torch.float32)
    graph, orient = dgl_orient.knn_graph(pos, 6), make_orient(60, 2).detach().float()
    conv, feat = OrientedRSConv(16, 16, 2), torch.randn(60, 16)
    expected = relation_and_output(conv, graph, feat, pos, orient)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = relation_and_output(conv, graph, feat.bfloat16(), pos, orient)
    assert torch.equal(actual[0], expected[0])
    torch.testing.assert_close(actual[1].float(), expected[1], rtol=0.1, atol=0.1)
    actual[1].float().sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in conv.parameters())


@pytest.mark.parametrize("setting", ["medium", "of each backend"])
def test_reduced_matmul_precision_leaves_the_geometry_alone(setting, monkeypatch):
    pos = ball(60, dtype=torch.float32)
    graph, orient = dgl_orient.knn_graph(pos, 6), make_orient(60, 2).detach().float()
    conv, feat = OrientedRSConv(5, 6, 2), torch.randn(60, 5)
    expected, _ = relation_and_output(conv, graph, feat, pos, orient)

    def precision():
        if setting == "of each backend":
            raise RuntimeError("what PyTorch says of it")
        return setting

    # Few machines round so, hence a product that does.
    exact = torch.bmm
    monkeypatch.setattr(torch, "bmm", lambda a, b: exact(a.bfloat16(), b.bfloat16()).float())
    monkeypatch.setattr(torch, "get_float32_matmul_precision", precision)
    torch.testing.assert_close(relation_and_output(conv, graph, feat, pos, orient)[0], expected)


def test_nodes_without_neighbours():
    graph, pos, _ = make_graph("isolated")
    conv = make_conv(2, activation=nn.functional.silu)
    feat, orient = torch.randn(12, 5, dtype=torch.float64, requires_grad=True), make_orient(12, 2)
    with pytest.raises(DGLError, match="allow_zero_in_degree"):
        conv(graph, feat, pos, orient)
    conv.set_allow_zero_in_degree(True)
    assert_equals_plain(conv, "isolated", 2)


def test_no_edges_and_no_nodes():
    conv = make_conv(allow_zero_in_degree=True).eval()
    for num_nodes in (3, 0):
        feat = torch.randn(num_nodes, 5, dtype=torch.float64, requires_grad=True)
        graph = dgl.graph(([], []), num_nodes=num_nodes)
        actual = conv(graph, feat, ball(num_nodes), make_orient(num_nodes, 1))
        actual.sum().backward()
        alone = conv.raising_norm(conv.raising(conv.message_norm(feat.new_zeros(num_nodes, 5)).relu()))
        torch.testing.assert_close(actual, alone.relu())


@pytest.mark.parametrize("training", [True, False])
def test_gradcheck(training):
    graph, pos, _ = make_graph("kNN")
    conv = make_conv(2, activation=nn.functional.silu).train(training)
    feat = torch.randn(12, 5, dtype=torch.float64, requires_grad=True)
    inputs = feat, pos.requires_grad_(), make_orient(12, 2)
    assert torch.autograd.gradcheck(lambda *x: conv(graph, *x), inputs)


def test_coincident_points_have_finite_gradients():
    for pos in (duplicates(), torch.ones(10, 3, dtype=torch.float64)):
        conv, orient = make_conv(), make_orient(len(pos), 1)
        feat = torch.randn(len(pos), 5, dtype=torch.float64, requires_grad=True)
        conv(dgl_orient.knn_graph(pos, 5), feat, pos.requires_grad_(), orient).square().sum().backward()
        for value in (pos, feat, orient, *conv.parameters()):
            assert torch.isfinite(value.grad).all()
            assert value.grad.abs().max() < 1e6


def test_copies_and_state_dicts_give_the_same_output():
    graph, src, dst = make_graph("bipartite")
    feat, orient = torch.randn(15, 5, dtype=torch.float64), make_orient(6, 3)
    conv = make_conv(3).eval()
    expected = conv(graph, feat, (src, dst), orient)
    loaded = OrientedRSConv(5, 6, 3).double().eval()
    assert not torch.allclose(loaded(graph, feat, (src, dst), orient), expected)
    loaded.load_state_dict(conv.state_dict())
    synchronised = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(conv))
    assert sum(isinstance(layer, nn.SyncBatchNorm) for layer in synchronised.modules()) == 3
    for other in (loaded, copy.deepcopy(conv), synchronised):
        torch.testing.assert_close(other(graph, feat, (src, dst), orient), expected)


def test_reset_parameters_changes_all_weights():
    conv = make_conv()
    before = copy.deepcopy(conv.state_dict())
    conv.reset_parameters()
    kept = [name for name, value in conv.state_dict().items() if torch.equal(value, before[name])]
    assert all(name.endswith("num_batches_tracked") for name in kept)


@pytest.mark.parametrize("name", ["in_feats", "num_orientations", "hidden_feats"])
def test_bad_sizes_are_refused(name):
    with pytest.raises(DGLError):
        OrientedRSConv(**{**dict(in_feats=5, out_feats=6), name: -1})


def test_wrong_inputs_are_refused():
    graph, pos, _ = make_graph("kNN")
    feat, orient = torch.zeros(12, 5).double(), make_orient(12, 2)
    conv = make_conv(2)
    for inputs in [
        (None, pos, orient),
        (feat[:, :4], pos, orient),
        (feat, None, orient),
        (feat, (pos, pos[:9]), orient),
        (feat, pos, None),
        (feat, pos, orient[:, :1]),
    ]:
        with pytest.raises(DGLError):
            conv(graph, *inputs)
    with pytest.raises(DGLError):
        make_conv(1)(dgl.graph(([0, 0], [0, 0])), feat[:1], pos[:1], orient[:1, :1])
    with pytest.raises(DGLError):
        make_conv(1)(dgl.graph(([0], [0])), feat[:1], pos[:1], orient[:1, :1])
