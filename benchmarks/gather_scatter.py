"""Reference implementations of the layers by gather and scatter, which materialise features on all edges.

Each function replaces the forward of a layer and uses its parameters.
"""

from __future__ import annotations

from contextlib import contextmanager
from unittest.mock import patch

import dgl
import torch
from torch import Tensor

from dgl_orient import OrientedEdgeConv, OrientedRSConv
from dgl_orient.geometry import to_local
from dgl_orient.nn import VGConv
from dgl_orient.nn.edge_features import edge_features
from dgl_orient.nn.edge_ops import GraphEdges


@contextmanager
def gather_scatter_layers():
    """Context in which all layers compute by gather and scatter."""
    with (
        patch.object(OrientedEdgeConv, "forward", _edgeconv),
        patch.object(OrientedRSConv, "forward", _rsconv),
        patch.object(VGConv, "forward", _vgconv),
    ):
        yield


def _pair(value: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Values of source and destination nodes."""
    return value if isinstance(value, tuple) else (value, value)


def _local(graph, pos, orient) -> Tensor:
    src, dst = graph.edges()
    pos = _pair(pos)
    return to_local(orient[dst], (pos[0][src] - pos[1][dst]).unsqueeze(1)).flatten(1)  # (E, 3F)


def _edgeconv(self, graph, feat=None, pos=None, orient=None):
    src, dst = graph.edges()
    inputs, weights = [], []
    if self.in_feats:
        inputs += [feat[dst], feat[src] - feat[dst]]
        weights += [self.phi.weight, self.theta.weight]
    if orient is not None and self.num_orientations:
        inputs.append(_local(graph, pos, orient))
        weights.append(self.psi.weight)
    message = torch.nn.functional.linear(torch.cat(inputs, 1), torch.cat(weights, 1), self.bias)
    if self.norms:
        message = self.norms[0](message)
    return dgl.ops.copy_e_max(graph, self.activation(message))


def _rsconv(self, graph, feat, pos, orient):
    src, dst = graph.edges()
    positions = _pair(pos)
    vec = positions[0][src] - positions[1][dst]
    local = vec if orient is None else _local(graph, pos, orient)
    relation = torch.cat([_norm(vec, -1).unsqueeze(1), local], 1)
    weight = self.mapping(torch.relu(self.relation_norm(self.relation(relation))))
    message = dgl.ops.copy_e_max(graph, weight * _pair(feat)[0][src])
    message = self.activation(self.message_norm(message))
    return self.activation(self.raising_norm(self.raising(message)))


def _norm(vec: Tensor, dim: int) -> Tensor:
    """The norm with a finite gradient at zero."""
    return vec.square().sum(dim).clamp_min(torch.finfo(vec.dtype).tiny).sqrt()


def _gvp(self, feat, vec):
    """A GVP with the layout of its authors, ``(E, C, 3)``."""
    hidden = self.hidden(vec.transpose(-1, -2))  # (E, 3, C)
    feat = self.scalar(torch.cat([feat, _norm(hidden, -2)], -1))
    vec = self.vector(hidden)
    if self.activation is not None:
        feat = self.activation(feat)
    if self.gate is not None:
        vec = vec * self.vector_activation(self.gate(feat)).unsqueeze(-2)
    return feat, vec.transpose(-1, -2)


def _vgconv(self, graph, feat, vec, pos):
    src, dst = graph.edges()
    positions = _pair(pos)
    edges = GraphEdges(graph)
    edge_feat, edge_vec = edge_features(edges, positions[1][dst] - positions[0][src], self.messages.edges)
    feats, vecs = [edge_feat], [edge_vec.unsqueeze(1)]
    index = {"receiver": (1, dst), "sender": (0, src)}
    for number, party in enumerate(self.endpoints):
        side, rows = index[party]
        if feat is not None:
            feats.insert(number, _pair(feat)[side][rows])
        if vec is not None:
            vecs.insert(number, _pair(vec)[side][rows])
    message = torch.cat(feats, 1), torch.cat(vecs, 1)
    for gvp in self.messages.gvps:
        message = _gvp(gvp, *message)
    new_feat, new_vec = (dgl.ops.copy_e_mean(graph, part.contiguous()) for part in message)
    if self.feat_residual is not None:
        new_feat = new_feat + self.feat_residual(_pair(feat)[1])
    if self.vec_residual is not None:
        new_vec = new_vec + self.vec_residual(_pair(vec)[1].transpose(1, 2)).transpose(1, 2)
    update_feat, update_vec = _gvp(self.update, new_feat, new_vec)
    return new_feat + update_feat, new_vec + update_vec
