import dgl
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn import VGConv
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, ball, duplicates, plane

VARIANTS = [
    dict(message_from=message, edges=edges, message_layers=layers)
    for message in ("both", "sender", "receiver")
    for edges in ("radial", "relative", "plain")
    for layers in (1, 2, 3)
] + [
    dict(vector_gate=False, vector_activation=torch.sigmoid, message_layers=2),
    dict(activation=None, vector_activation=None),
]


def plain_edges(x_i, neighbours, kind):
    """Scalars and vectors of the edges to one point, from the definition."""
    result = []
    mean = torch.stack([(x_i - x_j).norm() for x_j in neighbours]).mean()
    mean = mean if mean > 0 else torch.ones_like(mean)
    for x_j in neighbours:
        vec = x_i - x_j
        distance = vec.norm()
        if kind == "plain":
            result.append((distance.view(1), vec))
        elif kind == "relative":
            result.append(((distance / mean).view(1), vec / mean))
        else:
            centres = torch.linspace(0, 2, 16, dtype=vec.dtype)
            radial = torch.exp(-0.5 * ((distance / mean - centres) / (2 / 15)) ** 2)
            result.append((radial, vec / distance))
    return result


def plain_vgconv(conv, graph, feats, vecs, pos):
    """Eqs. 25 to 27, edge by edge; inputs are (source, destination) pairs."""
    out_feat, out_vec = [], []
    for i in range(graph.num_dst_nodes()):
        near = graph.in_edges(i)[0].tolist()
        messages = []
        for j, (edge_feat, edge_vec) in zip(near, plain_edges(pos[1][i], pos[0][near], conv.messages.edges)):
            nodes = {"receiver": (feats[1][i], vecs[1][i]), "sender": (feats[0][j], vecs[0][j])}
            feat = torch.cat([*(nodes[endpoint][0] for endpoint in conv.endpoints), edge_feat])
            vec = torch.cat([*(nodes[endpoint][1] for endpoint in conv.endpoints), edge_vec.unsqueeze(0)])
            for gvp in conv.messages.gvps:
                feat, vec = gvp(feat, vec)
            messages.append((feat, vec))
        feat, vec = (torch.stack(part).mean(0) for part in zip(*messages))
        if conv.feat_residual is not None:
            feat = feat + conv.feat_residual(feats[1][i])
        if conv.vec_residual is not None:
            vec = vec + conv.vec_residual(vecs[1][i].T).T
        update = conv.update(feat, vec)
        out_feat.append(feat + update[0])
        out_vec.append(vec + update[1])
    return torch.stack(out_feat), torch.stack(out_vec)


def assert_equal_with_gradients(fast, plain, inputs):
    for a, b in zip(fast, plain):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)
    gradients = [torch.autograd.grad(s.square().sum() + v.pow(3).sum(), inputs) for s, v in (fast, plain)]
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "variant",
    VARIANTS,
    ids=lambda each: ", ".join(f"{k}={getattr(v, '__name__', v)}" for k, v in each.items()),
)
def test_equals_the_formula_in_values_and_gradients(variant):
    pos = ball(12).requires_grad_()
    graph = dgl_orient.knn_graph(pos, 4)
    feat = torch.randn(12, 5, dtype=torch.float64, requires_grad=True)
    vec = torch.randn(12, 3, 3, dtype=torch.float64, requires_grad=True)
    conv = VGConv((5, 3), (6, 4), **variant).double()
    plain = plain_vgconv(conv, graph, (feat, feat), (vec, vec), (pos, pos))
    assert_equal_with_gradients(conv(graph, feat, vec, pos), plain, (pos, feat, vec, *conv.parameters()))


def test_bipartite_graphs_and_blocks_equal_the_formula():
    src, dst = ball(15).requires_grad_(), ball(6, seed=1).requires_grad_()
    graph = bipartite_knn_graph(src, dst, 4)
    feats = tuple(torch.randn(n, 5, dtype=torch.float64, requires_grad=True) for n in (15, 6))
    vecs = tuple(torch.randn(n, 3, 3, dtype=torch.float64, requires_grad=True) for n in (15, 6))
    conv = VGConv((5, 3), (5, 3)).double()
    fast = conv(graph, feats, vecs, (src, dst))
    plain = plain_vgconv(conv, graph, feats, vecs, (src, dst))
    assert_equal_with_gradients(fast, plain, (src, dst, *feats, *vecs))

    # A block's destinations are its first sources, and one tensor serves both.
    block = dgl.to_block(dgl.in_subgraph(dgl_orient.knn_graph(src, 4), [0, 3, 7]), [0, 3, 7])
    rows = block.srcdata[dgl.NID]
    inputs = [value[rows] for value in (feats[0], vecs[0], src)]
    whole = conv(dgl_orient.knn_graph(src, 4), feats[0], vecs[0], src)
    for a, b in zip(conv(block, *inputs), whole):
        torch.testing.assert_close(a, b[[0, 3, 7]])


def test_no_input_features_and_absent_residual():
    pos = ball(12).requires_grad_()
    graph = dgl_orient.knn_graph(pos, 4)
    conv = VGConv((0, 0), (6, 4)).double()
    empty = pos.new_zeros(12, 0), pos.new_zeros(12, 0, 3)
    plain = plain_vgconv(conv, graph, (empty[0],) * 2, (empty[1],) * 2, (pos, pos))
    assert_equal_with_gradients(conv(graph, None, None, pos), plain, (pos,))


def test_a_node_without_neighbours_receives_nothing():
    feat, vec = torch.randn(1, 5, dtype=torch.float64), torch.randn(1, 3, 3, dtype=torch.float64)
    for message_layers in (1, 2):
        conv = VGConv((5, 3), (5, 3), message_layers=message_layers).double()
        torch.nn.init.ones_(conv.messages.gvps[-1].scalar.bias)
        actual = conv(dgl_orient.knn_graph(ball(1), 4), feat, vec, ball(1))
        for a, b, c in zip(actual, (feat, vec), conv.update(feat, vec)):
            torch.testing.assert_close(a, b + c)


@pytest.mark.parametrize("cloud", ORDINARY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("edges", ["radial", "relative", "plain"])
def test_equivariant(cloud, dtype, edges):
    pos = ORDINARY[cloud](dtype)
    conv = VGConv((5, 3), (6, 4), edges=edges).to(dtype)

    def layer(pos, batch_num_nodes, feat, vec):
        return conv(dgl_orient.knn_graph(pos, 6, batch_num_nodes), feat, vec, pos)

    assert_equivariant(
        layer,
        pos,
        ("invariant", "vectors"),
        SIZES,
        scalars={"feat": torch.randn(60, 5, dtype=dtype)},
        vectors={"vec": torch.randn(60, 3, 3, dtype=dtype)},
    )


@pytest.mark.parametrize("make", ["dgl.knn_graph", "dgl.segmented_knn_graph", "dgl.radius_graph", "random"])
def test_graphs_that_others_made(make):
    pos = ball(40)
    graph = {
        "dgl.knn_graph": lambda: dgl.knn_graph(pos, 5, algorithm="kd-tree"),
        "dgl.segmented_knn_graph": lambda: dgl.segmented_knn_graph(pos, 5, [30, 10]),
        "dgl.radius_graph": lambda: dgl.radius_graph(pos, 1.2),
        "random": lambda: dgl.rand_graph(40, 200),
    }[make]()
    graph = dgl.add_self_loop(dgl.remove_self_loop(graph))  # a point may well be its own neighbour
    conv = VGConv((0, 0), (6, 4), edges="relative").double()
    empty = pos.new_zeros(40, 0), pos.new_zeros(40, 0, 3)
    plain = plain_vgconv(conv, graph, (empty[0],) * 2, (empty[1],) * 2, (pos, pos))
    for a, b in zip(conv(graph, None, None, pos), plain):
        torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-11)


def test_gradcheck():
    pos = ball(6)
    graph = dgl_orient.knn_graph(pos, 3)
    conv = VGConv((2, 2), (2, 2)).double()
    inputs = torch.randn(6, 2, dtype=torch.float64), torch.randn(6, 2, 3, dtype=torch.float64), pos
    assert torch.autograd.gradcheck(lambda *x: conv(graph, *x), tuple(x.requires_grad_() for x in inputs))


@pytest.mark.parametrize("edges", ["radial", "relative", "plain"])
def test_coincident_points_have_finite_gradients(edges):
    for pos in (duplicates(), torch.ones(10, 3, dtype=torch.float64), plane(3)):
        pos.requires_grad_()
        conv = VGConv((0, 0), (6, 4), edges=edges).double()
        feat, vec = conv(dgl_orient.knn_graph(pos, 5), None, None, pos)
        (feat.sum() + vec.sum()).backward()
        assert torch.isfinite(pos.grad).all()
        assert pos.grad.abs().max() < 1e6
        assert all(torch.isfinite(p.grad).all() for p in conv.parameters())


def test_dropout_takes_scalars_and_whole_vectors_of_message_and_update():
    pos = ball(50, dtype=torch.float32)
    graph = dgl_orient.knn_graph(pos, 5)
    conv = VGConv((0, 0), (6, 8), dropout=1 - 1e-9)  # all goes
    feat, vec = conv(graph, None, None, pos)
    assert torch.equal(feat, torch.zeros(50, 6)) and torch.equal(vec, torch.zeros(50, 8, 3))
    torch.nn.init.zeros_(conv.update.vector.weight), torch.nn.init.zeros_(conv.update.scalar.weight)
    conv.dropout.p = 0.5
    with torch.random.fork_rng():
        feat, vec = conv(graph, None, None, pos)
    conv.eval()
    whole_feat, whole_vec = conv(graph, None, None, pos)
    assert torch.equal(whole_vec, conv(graph, None, None, pos)[1])
    torch.testing.assert_close(torch.where(feat == 0, feat, whole_feat * 2), feat)
    kept = (vec != 0).all(2, keepdim=True)
    torch.testing.assert_close(vec, torch.where(kept, whole_vec * 2, 0.0))
    for fraction in (kept, feat != 0):
        assert 0.3 < fraction.float().mean() < 0.7


@pytest.mark.parametrize(
    "arguments",
    [
        dict(message_from="none"),
        dict(edges="none"),
        dict(message_layers=0),
        dict(out_sizes=(6, 0)),
        dict(in_sizes=(-1, 0)),
        dict(out_sizes=(2.5, 4)),
        dict(in_sizes=3),
        dict(out_sizes=(3, 4, 5)),
    ],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(DGLError):
        VGConv(**(dict(in_sizes=(0, 0), out_sizes=(6, 4)) | arguments))


def test_wrong_inputs_are_refused():
    pos = ball(10)
    graph = dgl_orient.knn_graph(pos, 3)
    conv = VGConv((5, 3), (6, 4)).double()
    feat, vec = torch.zeros(10, 5).double(), torch.zeros(10, 3, 3).double()
    with pytest.raises(DGLError):
        conv(graph, None, vec, pos)
    with pytest.raises(DGLError):
        conv(graph, feat, vec[:, :2], pos)
    with pytest.raises(DGLError):
        conv(graph, feat, vec, pos[:9])
    with pytest.raises(DGLError):
        conv(graph, feat.float(), vec, pos)
    with pytest.raises(DGLError):
        conv(graph, [[1.0] * 5] * 10, vec, pos)


def test_nan_in_coordinates_propagates_to_the_neighbourhood():
    pos = ball(30)
    graph, broken = dgl_orient.knn_graph(pos, 4), pos.clone()
    broken[3] = torch.nan
    feat, vec = VGConv((0, 0), (6, 4)).double()(graph, None, None, broken)
    reached = torch.zeros(30, dtype=torch.bool)
    reached[torch.cat([torch.tensor([3]), graph.successors(3)])] = True
    assert torch.equal(feat.isnan().any(1), reached) and torch.equal(vec.isnan().flatten(1).any(1), reached)
