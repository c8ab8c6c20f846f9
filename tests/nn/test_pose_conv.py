import dgl
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.geometry import random_rotation
from dgl_orient.graph import bipartite_knn_graph
from dgl_orient.nn import PoseConv
from dgl_orient.nn.pose_conv import modulated_max, relative_pose
from dgl_orient.testing import assert_equivariant
from tests.clouds import ORDINARY, SIZES, UGLY, ball, generator


def orientations(n, num=2, seed=0):
    return random_rotation(n * num, torch.float64, generator(seed)).view(n, num, 3, 3)


def settled(layer):
    """In evaluation mode, with statistics that are not those of the start."""
    for module in layer.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            torch.nn.init.uniform_(module.running_mean)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
    return layer.eval()


def reference(layer, graph, feat, pos, orient, edge=None):
    """The formula, edge by edge."""
    src, dst = graph.edges(order="eid")
    offset = pos[src] - pos[dst]
    rows = []
    for node in range(graph.num_nodes()):
        own = (dst == node).nonzero().flatten().tolist()
        mean = offset[own].norm(dim=1).mean()
        messages = []
        for e in own:
            axes = [torch.cat([offset[e, :, None] / mean, *orient[src[e], :, :, :2]], 1)]
            seen = [orient[node, f].T @ axes[0] for f in range(orient.shape[1])]  # (3, 1 + 2 F)
            pose = torch.cat([torch.cat(seen, 0).T.flatten(), offset[e].norm()[None] / mean])
            pose = pose if edge is None else torch.cat([pose, edge[e]])
            messages.append(layer.kernel(layer.hidden(pose[None]))[0] * layer.src(feat[src[e]]))
        rows.append(torch.stack(messages).amax(0))
    return layer.activation(layer.norm(torch.stack(rows) + layer.dst(feat)))


@pytest.mark.parametrize("edge_feats", [0, 2])
def test_it_equals_its_formula_edge_by_edge(edge_feats):
    pos, feat, orient = ball(20), torch.randn(20, 3).double(), orientations(20)
    graph = dgl_orient.knn_graph(pos, k=5)
    edge = torch.randn(graph.num_edges(), edge_feats).double() if edge_feats else None
    layer = settled(PoseConv(3, 6, num_orientations=2, edge_feats=edge_feats).double())
    expected = reference(layer, graph, feat, pos, orient, edge)
    torch.testing.assert_close(layer(graph, feat, pos, orient, edge), expected, rtol=1e-12, atol=1e-12)


def test_poses_determine_the_relative_orientations():
    pos, orient = ball(20), orientations(20)
    graph = dgl_orient.knn_graph(pos, k=5)
    src, dst = graph.edges(order="eid")
    pose = relative_pose(graph, pos, orient)
    axes = pose[:, :-1].view(-1, 5, 2, 3)[:, 1:3, 1]  # of the source's first orientation in the second
    expected = orient[dst, 1].transpose(1, 2) @ orient[src, 0]
    torch.testing.assert_close(axes, expected[:, :, :2].transpose(1, 2))


@pytest.mark.parametrize("regular", [True, False])
def test_maximum_and_its_gradients_equal_those_over_stored_messages(regular):
    pos = ball(50)
    graph = dgl_orient.knn_graph(pos, k=6)
    if not regular:
        graph.remove_edges([0, 7, 8])
    src = torch.randn(50, 4, dtype=torch.float64, requires_grad=True)
    hidden = torch.randn(graph.num_edges(), 3, dtype=torch.float64, requires_grad=True)
    kernel = torch.nn.Linear(3, 4).double()
    sources, destinations = graph.edges(order="eid")
    index = destinations[:, None].expand(-1, 4)
    stored = torch.full((50, 4), -torch.inf, dtype=torch.float64)
    expected = stored.scatter_reduce(0, index, src[sources] * kernel(hidden), "amax")
    result = modulated_max(graph, src, hidden, kernel)
    torch.testing.assert_close(result, expected)
    weight, inputs = torch.randn(50, 4).double(), (src, hidden, *kernel.parameters())
    for one, other in zip(*(torch.autograd.grad((x * weight).sum(), inputs) for x in (result, expected))):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("cloud", ORDINARY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_features_are_invariant(cloud, dtype):
    torch.manual_seed(0)
    net, layer = dgl_orient.OrientationNet().to(dtype).eval(), settled(PoseConv(2, 8).to(dtype))

    def features(pos, feat, batch_num_nodes=None):
        graph = dgl_orient.knn_graph(pos, 8, batch_num_nodes)
        return layer(graph, feat, pos, net(graph, pos))

    feat = torch.rand(60, 2, dtype=dtype, generator=generator(3))
    assert_equivariant(features, ORDINARY[cloud](dtype), "invariant", SIZES, scalars={"feat": feat}, trials=1)


@pytest.mark.parametrize("cloud", UGLY)
def test_ugly_clouds_give_finite_features_and_gradients(cloud):
    pos = UGLY[cloud](torch.float64)
    graph = dgl_orient.knn_graph(pos, k=4)
    feat = torch.rand(len(pos), 2).double().requires_grad_()
    layer = PoseConv(2, 8, allow_zero_in_degree=True).double().eval()
    result = layer(graph, feat, pos, orientations(len(pos), 1))
    assert torch.isfinite(result).all()
    if graph.num_edges():  # without any the result is constant
        result.sum().backward()
        assert torch.isfinite(feat.grad).all()


def test_bipartite_graphs_take_pairs():
    pos, centres = ball(30), ball(6, seed=1)
    graph = bipartite_knn_graph(pos, centres, 5)
    layer = settled(PoseConv(3, 4).double())
    feat, orient = torch.randn(36, 3).double(), orientations(36, 1)
    result = layer(graph, (feat[:30], feat[30:]), (pos, centres), (orient[:30], orient[30:]))
    both = torch.cat([pos, centres])
    src, dst = graph.edges(order="eid")
    expected = reference(layer, _homogeneous(src, dst + 30, 36), feat, both, orient)
    torch.testing.assert_close(result, expected[30:])


def _homogeneous(src, dst, num_nodes):
    graph = dgl.graph((src, dst), num_nodes=num_nodes)
    return dgl.add_edges(graph, range(30), range(30))  # none without a neighbour


def test_nodes_without_neighbours_are_refused_unless_allowed():
    graph, pos = dgl_orient.knn_graph(ball(1), k=3), ball(1)
    arguments = (graph, torch.ones(1, 2).double(), pos, orientations(1, 1))
    with pytest.raises(DGLError):
        PoseConv(2, 4).double()(*arguments)
    layer = PoseConv(2, 4, allow_zero_in_degree=True).double().eval()
    assert not layer(*arguments).any()


@pytest.mark.parametrize(
    "change",
    [
        {"orient": orientations(20, 1).squeeze(1)},
        {"orient": orientations(20, 3)},
        {"orient": orientations(19)},
        {"orient": None},
        {"feat": torch.rand(20, 3)},
        {"feat": torch.rand(20, 4).double()},
        {"edge": torch.rand(100, 2).double()},
    ],
    ids=["orient 3 3", "other F", "few rows", "no orient", "float32", "other width", "edge"],
)
def test_inputs_that_do_not_fit_are_refused(change):
    pos = ball(20)
    arguments = {"feat": torch.rand(20, 3).double(), "pos": pos, "orient": orientations(20)}
    with pytest.raises(DGLError):
        PoseConv(3, 6, num_orientations=2).double()(dgl_orient.knn_graph(pos, k=5), **(arguments | change))
