"""Our layers among DGL's: stacked, in its containers, on its kinds of graphs."""

import dgl
import dgl.function as fn
import pytest
import torch
from dgl.nn import EdgeConv, GATConv, GraphConv, HeteroGraphConv, SAGEConv, Sequential

import dgl_orient
from dgl_orient import (
    EquivariantReadout,
    InvariantReadout,
    OrientationNet,
    OrientedConv,
    OrientedEdgeConv,
    OrientedRSConv,
)
from dgl_orient.geometry import random_rotation
from dgl_orient.testing import assert_equivariant
from tests.clouds import SIZES, ball

DGLS = {
    "GraphConv": lambda: GraphConv(8, 8),
    "GATConv": lambda: GATConv(8, 4, 2),
    "SAGEConv": lambda: SAGEConv(8, 8, "mean"),
    "EdgeConv": lambda: EdgeConv(8, 8),
}


@pytest.mark.parametrize("name", DGLS)
def test_stacks_with_dgls_layers_stay_invariant(name):
    net, first = OrientationNet().double(), OrientedEdgeConv(0, 8).double()
    theirs, last = DGLS[name]().double(), OrientedRSConv(8, 6).double().eval()
    labels, vectors = InvariantReadout(6, 4).double(), EquivariantReadout(6, 1).double()

    def network(pos, batch_num_nodes):
        graph = dgl_orient.knn_graph(pos, 8, batch_num_nodes)
        orient = net(graph, pos)
        feat = theirs(graph, first(graph, None, pos, orient)).flatten(1)
        feat = last(graph, feat, pos, orient)
        return labels(graph, feat), vectors(feat, orient)

    assert_equivariant(network, ball(), ("invariant", "vectors"), SIZES)


def test_plain_layers_go_into_dgls_sequential():
    """Its layers get the graph and the features alone: enough for a layer without orientations."""
    graph, feat = dgl_orient.knn_graph(ball(30), 5), torch.randn(30, 8, dtype=torch.float64)
    layers = [
        OrientedEdgeConv(8, 8, 0).double(),
        GraphConv(8, 8).double(),
        OrientedEdgeConv(8, 4, 0).double(),
    ]
    expected = feat
    for layer in layers:
        expected = layer(graph, expected)
    torch.testing.assert_close(Sequential(*layers)(graph, feat), expected)


def two_relations(pos):
    near = dgl_orient.knn_graph(pos, 4).edges()
    far = dgl_orient.knn_graph(-pos, 6).edges()
    return dgl.heterograph({("point", "near", "point"): near, ("point", "far", "point"): far})


def test_layers_go_into_hetero_graph_conv():
    pos, feat = ball(30), torch.randn(30, 8, dtype=torch.float64)
    graph, orient = two_relations(pos), random_rotation(30, torch.float64).unsqueeze(1)
    near, far = OrientedEdgeConv(8, 6).double(), OrientedRSConv(8, 6).double().eval()
    both = HeteroGraphConv({"near": near, "far": far}, aggregate="sum")
    arguments = dict.fromkeys(("near", "far"), (pos, orient))
    actual = both(graph, {"point": feat}, mod_args=arguments)["point"]
    expected = near(graph["near"], feat, pos, orient) + far(graph["far"], feat, pos, orient)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("kind", ["edgeconv", "rsconv", "conv"])
def test_layers_leave_the_graph_as_it_was(kind):
    pos, feat = ball(30), torch.randn(30, 8, dtype=torch.float64)
    graph, orient = dgl_orient.knn_graph(pos, 5), random_rotation(30, torch.float64).unsqueeze(1)
    graph.ndata["h"], graph.edata["e"] = feat, torch.ones(150, 1)
    layer = {
        "edgeconv": OrientedEdgeConv(8, 6).double(),
        "rsconv": OrientedRSConv(8, 6).double(),
        "conv": OrientedConv(lambda h_i, h_j, local: h_j - h_i),
    }[kind]
    layer(graph, feat, pos, orient)
    assert set(graph.ndata) == {"h"} and set(graph.edata) == {"e"}
    graph.update_all(fn.copy_u("h", "m"), fn.mean("m", "n"))
    assert graph.ndata["n"].shape == (30, 8)


def test_layers_run_in_sampled_minibatches():
    """Neighbour sampling gives blocks; with all neighbours they compute what the whole graph does."""
    pos, feat = ball(60), torch.randn(60, 8, dtype=torch.float64)
    graph, orient = dgl_orient.knn_graph(pos, 6), random_rotation(60, torch.float64).unsqueeze(1)
    first, second = OrientedEdgeConv(8, 8).double(), OrientedRSConv(8, 5).double().eval()
    whole = second(graph, first(graph, feat, pos, orient), pos, orient)
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(2)
    for seeds in torch.arange(60).split(25):
        inputs, outputs, blocks = sampler.sample_blocks(graph, seeds)
        middle = blocks[0].dstdata[dgl.NID]
        part = first(blocks[0], feat[inputs], pos[inputs], orient[middle])
        part = second(blocks[1], part, pos[middle], orient[outputs])
        torch.testing.assert_close(part, whole[outputs])
