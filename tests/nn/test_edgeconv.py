import copy
import itertools

import dgl
import pytest
import torch
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient import OrientationNet, OrientedEdgeConv
from dgl_orient.geometry import random_rotation, to_local
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, ball, duplicates, generator

PARTS = [(5, 0), (0, 1), (0, 3), (5, 1), (5, 3)]  # in_feats, num_orientations


def plain_edgeconv(conv, norms, graph, feats, pos, orient):
    """The formula on gathered edges, with batch norm modules of its own."""
    src, dst = graph.edges()
    message = 0
    if conv.in_feats:
        difference = feats[0][src] - feats[1][dst]
        message = message + conv.theta(difference) + conv.phi(feats[1][dst])
    if conv.num_orientations and orient is not None:
        local = to_local(orient[dst], (pos[0][src] - pos[1][dst]).unsqueeze(1))  # (E, F, 3)
        message = message + conv.psi(local.flatten(1))
    if conv.bias is not None:
        message = message + conv.bias
    for number in range(len(conv.layers) + 1):
        if number:
            message = conv.layers[number - 1](message)
        message = norms[number](message) if len(norms) else message
        message = conv.activation(message)
    result = [message[dst == i].amax(0) for i in range(graph.num_dst_nodes())]
    return torch.stack(result)


def negative_scales(conv):
    """Batch norms with negative weights in some channels, as training may give."""
    for norm in conv.norms:
        nn.init.normal_(norm.weight, generator=generator(5))
        nn.init.normal_(norm.bias, generator=generator(6))
    return conv


def inputs(n, in_feats, num_orientations, m=None):
    feats = [torch.randn(size, in_feats, dtype=torch.float64, requires_grad=True) for size in (n, m or n)]
    pos = [ball(size, seed).requires_grad_() for seed, size in enumerate((n, m or n))]
    orient = random_rotation((m or n) * num_orientations, torch.float64).view(m or n, num_orientations, 3, 3)
    if m is None:
        feats, pos = [feats[0]] * 2, [pos[0]] * 2
    return tuple(feats), tuple(pos), orient.requires_grad_()


def assert_same(conv, graph, feats, pos, orient, feed):
    norms = copy.deepcopy(conv.norms)
    fast, plain = feed(conv), plain_edgeconv(conv, norms, graph, feats, pos, orient)
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-10)
    weights = torch.randn(fast.shape, dtype=torch.float64, generator=generator())
    shared = [*feats, *pos, orient, *(p for name, p in conv.named_parameters() if "norms" not in name)]
    options = dict(allow_unused=True, materialize_grads=True)
    for a, b in zip(
        torch.autograd.grad((fast * weights).sum(), [*shared, *conv.norms.parameters()], **options),
        torch.autograd.grad((plain * weights).sum(), [*shared, *norms.parameters()], **options),
    ):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)
    for a, b in zip(conv.norms.buffers(), norms.buffers()):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("hidden_feats", [(), (7,), (7, 6)])
@pytest.mark.parametrize("activation", [None, nn.SiLU()], ids=["monotone", "not monotone"])
def test_equals_the_formula_in_values_gradients_and_statistics(parts, batch_norm, hidden_feats, activation):
    (in_feats, num_orientations) = parts
    feats, pos, orient = inputs(14, in_feats, num_orientations)
    graph = dgl_orient.knn_graph(pos[0], 5, [9, 5])
    conv = OrientedEdgeConv(in_feats, 8, num_orientations, hidden_feats, batch_norm, activation).double()
    negative_scales(conv)
    feat = feats[0] if in_feats else None
    for training, _ in itertools.product((True, False), range(2)):
        conv.train(training)
        assert_same(conv, graph, feats, pos, orient, lambda conv: conv(graph, feat, pos[0], orient))


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("track", [True, False])
def test_running_statistics_follow_the_modules_settings(momentum, track):
    feats, pos, orient = inputs(20, 5, 1)
    graph = dgl_orient.knn_graph(pos[0], 6)
    conv = OrientedEdgeConv(5, 8, batch_norm=True).double()
    conv.norms[0] = nn.BatchNorm1d(8, momentum=momentum, track_running_stats=track, affine=track).double()
    for training in (True, True, True, False):
        conv.train(training)
        assert_same(conv, graph, feats, pos, orient, lambda conv: conv(graph, feats[0], pos[0], orient))


@pytest.mark.parametrize("parts", PARTS)
def test_bipartite_graphs_and_blocks(parts):
    in_feats, num_orientations = parts
    feats, pos, orient = inputs(15, in_feats, num_orientations, m=6)
    graph = bipartite_knn_graph(*pos, 4)
    conv = negative_scales(OrientedEdgeConv(in_feats, 8, num_orientations, batch_norm=True).double())
    pair = feats if in_feats else None
    assert_same(conv, graph, feats, pos, orient, lambda conv: conv(graph, pair, pos, orient))

    whole = dgl_orient.knn_graph(pos[0], 4)
    orient = random_rotation(15 * num_orientations, torch.float64).view(15, num_orientations, 3, 3)
    conv.eval()
    block = dgl.to_block(dgl.in_subgraph(whole, [0, 3, 7]), [0, 3, 7])
    rows = block.srcdata[dgl.NID]
    feat = feats[0] if in_feats else None
    actual = conv(block, feat[rows] if in_feats else None, pos[0][rows], orient[[0, 3, 7]])
    torch.testing.assert_close(actual, conv(whole, feat, pos[0], orient)[[0, 3, 7]])


def test_is_dgls_edgeconv_without_orientations():
    """DGL computes theta(h_i - h_j) + phi(h_i), whatever its documentation says."""
    graph, feat = dgl_orient.knn_graph(ball(30), 5), torch.randn(30, 4, dtype=torch.float64)
    theirs = dgl.nn.EdgeConv(4, 6).double()
    ours = OrientedEdgeConv(4, 6, 0, activation=nn.Identity()).double()
    with torch.no_grad():
        ours.theta.weight.copy_(-theirs.theta.weight)
        ours.phi.weight.copy_(theirs.phi.weight)
        ours.bias.copy_(theirs.theta.bias + theirs.phi.bias)
    torch.testing.assert_close(ours(graph, feat), theirs(graph, feat))


def test_a_batch_norm_of_weight_zero_has_the_gradient_of_its_edges():
    feats, pos, orient = inputs(14, 5, 1)
    graph = dgl_orient.knn_graph(pos[0], 5)
    conv = OrientedEdgeConv(5, 8, batch_norm=True).double()
    torch.nn.init.zeros_(conv.norms[0].weight)
    result = conv(graph, feats[0] + 1e4, pos[0], orient)
    (gradient,) = torch.autograd.grad(result.sum(), conv.norms[0].weight)
    assert gradient.abs().max() < 14 * 10  # of normalised values, and not of what was subtracted


def test_statistics_of_neighbours_that_are_alike_in_float32():
    pos = torch.rand(2000, 3, generator=generator())
    graph, feat = dgl_orient.knn_graph(pos, 8), 100 * pos
    conv = OrientedEdgeConv(3, 8, 0, batch_norm=True)
    torch.nn.init.zeros_(conv.phi.weight)  # then only differences of neighbours count
    conv.norms[0].momentum = 1.0
    double = copy.deepcopy(conv).double()
    conv(graph, feat), double(graph, feat.double())
    torch.testing.assert_close(
        conv.norms[0].running_var.double(), double.norms[0].running_var, rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("activation", [nn.LeakyReLU(-1.0), nn.ELU(-1.0), nn.Hardtanh()])
def test_unusual_activations_are_computed_on_edges(activation):
    feats, pos, orient = inputs(14, 5, 1)
    graph = dgl_orient.knn_graph(pos[0], 5)
    conv = OrientedEdgeConv(5, 8, batch_norm=True, activation=activation).double()
    assert_same(conv, graph, feats, pos, orient, lambda conv: conv(graph, feats[0], pos[0], orient))


def test_statistics_survive_a_large_common_offset_in_float32():
    graph, feat = dgl_orient.knn_graph(ball(200), 8), torch.randn(200, 16)
    conv = OrientedEdgeConv(16, 8, 0, batch_norm=True)
    offset = OrientedEdgeConv(16, 8, 0, batch_norm=True)
    offset.load_state_dict(conv.state_dict())
    with torch.no_grad():
        conv.phi.weight.zero_(), offset.phi.weight.zero_()  # then an offset of all features changes nothing
    torch.testing.assert_close(offset(graph, feat + 100), conv(graph, feat), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("cloud", ORDINARY)
@pytest.mark.parametrize("batch_norm", [False, True])
def test_invariant_in_float64(cloud, batch_norm):
    net = OrientationNet(2).double()
    first = OrientedEdgeConv(0, 8, 2, batch_norm=batch_norm).double()
    second = OrientedEdgeConv(8, 8, 2, batch_norm=batch_norm).double()

    def network(pos, batch_num_nodes=None):
        graph = dgl_orient.knn_graph(pos, 8, batch_num_nodes)
        orient = net(graph, pos)
        return second(graph, first(graph, None, pos, orient), pos, orient)

    pos = ORDINARY[cloud](torch.float64)
    # In training batch norm sees the whole batch: then clouds are not what they are alone.
    assert_equivariant(network, pos, symmetries=("rotation", "translation", "permutation"))
    first.eval(), second.eval()
    assert_equivariant(network, pos, "invariant", SIZES)


def test_invariant_in_float32():
    net, conv = OrientationNet(2), OrientedEdgeConv(0, 8, 2, batch_norm=True)

    def network(pos):
        graph = dgl_orient.knn_graph(pos, 8)
        return conv(graph, None, pos, net(graph, pos))

    assert_equivariant(network, ball(dtype=torch.float32))


def test_gradcheck():
    graph, conv = dgl_orient.knn_graph(ball(6), 3), OrientedEdgeConv(3, 4, 1, batch_norm=True).double()
    feats, pos, orient = inputs(6, 3, 1)

    def function(*inputs):
        return copy.deepcopy(conv)(graph, *inputs)

    assert torch.autograd.gradcheck(function, (feats[0], pos[0], orient))


def test_second_derivatives_in_training():
    pos, feat = ball(12).requires_grad_(), torch.randn(12, 4, dtype=torch.float64, generator=generator(1))
    graph = dgl_orient.knn_graph(pos.detach(), 4)
    orient = random_rotation(12, torch.float64, generator(2)).unsqueeze(1)
    conv = OrientedEdgeConv(4, 3, batch_norm=True).double().train()
    inputs = (pos, feat.requires_grad_())
    assert torch.autograd.gradgradcheck(lambda pos, feat: conv(graph, feat, pos, orient), inputs)


def test_nodes_without_neighbours():
    graph = dgl.graph(([0, 1], [1, 0]), num_nodes=3)
    feat, pos, orient = torch.randn(3, 5), torch.randn(3, 3), random_rotation(3).unsqueeze(1)
    conv = OrientedEdgeConv(5, 8, batch_norm=True)
    with pytest.raises(DGLError):
        conv(graph, feat, pos, orient)
    conv.set_allow_zero_in_degree(True)
    result = conv(graph, feat.requires_grad_(), pos, orient)
    assert torch.equal(result[2], torch.zeros(8)) and result[:2].abs().sum() > 0
    result.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in conv.parameters())
    assert torch.equal(feat.grad[2], torch.zeros(5))
    lonely = conv(dgl.graph(([], []), num_nodes=3), feat, pos, orient)
    assert torch.equal(lonely, torch.zeros(3, 8))
    lonely.sum().backward()
    with pytest.raises(DGLError):
        conv(dgl.graph(([], []), num_nodes=3), feat[:2], pos, orient)
    assert conv(dgl_orient.knn_graph(torch.empty(0, 3), 4), feat[:0], pos[:0], orient[:0]).shape == (0, 8)


def test_coincident_points_have_finite_gradients():
    pos = duplicates(dtype=torch.float32).requires_grad_()
    graph = dgl_orient.knn_graph(pos, 5)
    conv = OrientedEdgeConv(0, 8, batch_norm=True)
    conv(graph, None, pos, OrientationNet()(graph, pos)).sum().backward()
    assert torch.isfinite(pos.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in conv.parameters())
    equal = OrientedEdgeConv(3, 8, 0, batch_norm=True)  # no variance at all
    assert torch.isfinite(equal(graph, torch.ones(60, 3))).all()


def test_autocast_rounds_features_and_not_geometry():
    pos = ball(dtype=torch.float32)
    graph = dgl_orient.knn_graph(pos, 8)
    orient, conv = random_rotation(60).unsqueeze(1), OrientedEdgeConv(8, 8, batch_norm=True)
    feat = torch.randn(60, 8)
    exact = conv(graph, feat, pos, orient)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = conv(graph, feat, pos, orient)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, exact, rtol=0, atol=0.1)
    geometry = OrientedEdgeConv(0, 8, batch_norm=True)
    exact = geometry(graph, None, pos, orient)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(geometry(graph, None, pos, orient), exact)


def test_bad_input_is_refused():
    graph, orient = dgl_orient.knn_graph(ball(10), 3), random_rotation(10, torch.float64).unsqueeze(1)
    pos, feat, conv = ball(10), torch.zeros(10, 5).double(), OrientedEdgeConv(5, 8).double()
    for arguments in [
        (None, pos, orient),
        (feat[:, :4], pos, orient),
        (feat, pos[:9], orient),
        (feat, None, orient),
        (feat, pos, orient.repeat(1, 2, 1, 1)),
        (feat.float(), pos, orient),
    ]:
        with pytest.raises(DGLError):
            conv(graph, *arguments)
    for in_feats in (0, 5):
        with pytest.raises(DGLError):
            OrientedEdgeConv(in_feats, 8).double()(graph, feat if in_feats else None, pos)
    with pytest.raises(DGLError):
        OrientedEdgeConv(0, 8, 0)
    for options in ({}, {"hidden_feats": [4]}, {"activation": torch.nn.SiLU()}):
        with pytest.raises(DGLError):
            single = OrientedEdgeConv(1, 8, 0, batch_norm=True, allow_zero_in_degree=True, **options)
            single(dgl.graph(([0], [1])), torch.ones(2, 1))


@pytest.mark.parametrize("threshold", [1.0, 20.0])
def test_softplus_is_right_even_where_it_falls(threshold):
    pos = ball(50)
    graph, feat = dgl_orient.knn_graph(pos, 8), torch.randn(50, 5, dtype=torch.float64)
    activation = nn.Softplus(threshold=threshold)
    conv = OrientedEdgeConv(5, 4, num_orientations=0, activation=activation).double()
    expected = plain_edgeconv(conv, [], graph, (feat, feat), (pos, pos), None)
    torch.testing.assert_close(conv(graph, feat), expected)


def test_what_no_edges_give_can_be_written_into():
    conv = OrientedEdgeConv(4, 8, num_orientations=0, allow_zero_in_degree=True)
    result = conv(dgl.graph(([], []), num_nodes=3), torch.randn(3, 4)).detach()
    result[0] = 1.0
    assert result.sum() == 8


def test_gradients_may_be_asked_for_within_autocast():
    pos = ball(60, dtype=torch.float32)
    graph, feat = dgl_orient.knn_graph(pos, 8), torch.randn(60, 4)
    orient = OrientationNet()(graph, pos).detach()
    conv, actual = OrientedEdgeConv(4, 8, batch_norm=True), []
    for inside in (False, True):
        given = feat.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            result = conv(graph, given, pos, orient).float().square().sum()
            if inside:
                result.backward()
        if not inside:
            result.backward()
        actual.append(given.grad)
    torch.testing.assert_close(*actual, rtol=0.05, atol=0.05 * float(actual[0].abs().max()))
