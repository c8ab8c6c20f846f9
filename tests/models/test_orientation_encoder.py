"""Initial features and orientations of the oriented networks."""

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.geometry import to_local
from dgl_orient.models.orientation_encoder import OrientationEncoder
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball

KINDS = ["canonical", "all_scales", "all_scales+vectors", "constant"]


def encoder(**options):
    return OrientationEncoder(2, (8,), 6, **options).double().eval()


@pytest.mark.parametrize("initial_feats", KINDS)
def test_features_are_invariant_orientations_equivariant_and_sizes_as_declared(initial_feats):
    net = encoder(initial_feats=initial_feats, in_feats=2, in_vectors=3)

    def function(pos, batch_num_nodes, feat, vec):
        points = net(dgl_orient.knn_graph(pos, 6, batch_num_nodes), pos, feat, vec)
        assert points.feat.shape == (len(pos), net.num_feats)
        assert points.orient.shape == (len(pos), net.num_orientations, 3, 3)
        return points.feat, points.orient

    features = dict(scalars={"feat": ball(60)[:, :2]}, vectors={"vec": ball(180).view(60, 3, 3)})
    assert_equivariant(function, ball(), ("invariant", "frames"), [35, 25], **features)


def test_further_features_follow_the_initial_ones():
    pos, feat, vec = ball(30), ball(30, 1)[:, :2], ball(60, 2).view(30, 2, 3)
    graph, net = dgl_orient.knn_graph(pos, 6), encoder(initial_feats="canonical", in_feats=2, in_vectors=2)
    points = net(graph, pos, feat, vec)
    canonical = to_local(points.global_orient.expand(30, 2, 3, 3), (pos - pos.mean(0)).unsqueeze(1))
    torch.testing.assert_close(points.feat[:, :6], canonical.flatten(1))
    assert torch.equal(points.feat[:, 6:8], feat)
    local = torch.einsum("nfji,nvj->nvfi", points.orient, vec)
    torch.testing.assert_close(points.feat[:, 8:], local.flatten(1))


def test_without_features_there_are_none():
    pos = ball(30)
    net = encoder(initial_feats="constant")
    assert net.num_feats == 0 and net(dgl_orient.knn_graph(pos, 6), pos).feat is None


def test_bad_options_are_refused():
    with pytest.raises(DGLError):
        encoder(initial_feats="zero")
    with pytest.raises(DGLError):
        encoder(options=dict(input_features="normal"))
    with pytest.raises(TypeError):
        encoder(options=dict(hidden_size=3))


def test_options_that_are_not_given_are_those_of_equivariant_input_features():
    net = encoder(options=dict(hidden_vectors=4)).net
    assert (net.input_features, net.hidden_vectors, len(net.layers)) == ("covariance+normal", 4, 0)
    assert len(encoder(options=dict(num_layers=2)).net.layers) == 2
