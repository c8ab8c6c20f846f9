"""Building blocks of the networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._segment import segment_max, segment_mean
from .._validation import (
    check_coordinates,
    check_dtype,
    check_finite,
    check_integer_lists,
    check_integers,
    check_k,
    check_probability,
    check_shape,
)
from ..graph import knn_graph
from ..nn import OrientedEdgeConv
from ..nn.pointwise_mlp import PointwiseMLP

__all__ = [
    "CloudClassifier",
    "EdgeConvs",
    "Level",
    "ModelInputs",
    "PointwiseMLP",
    "check_head",
    "feature_vectors",
    "global_pool",
    "model_inputs",
    "point_channels",
    "point_features",
    "raw_features",
]


class ModelInputs(NamedTuple):
    """The inputs of a network from the node data of a graph."""

    pos: Tensor  #: (N, 3)
    batch_num_nodes: Tensor  #: (B,) number of points of each point cloud
    feat: Tensor | None  #: (N, in_feats) of ``ndata["feat"]``; None where in_feats is 0
    vec: Tensor | None  #: (N, in_vectors, 3) of ``ndata["vec"]``; None where in_vectors is 0


class Level(NamedTuple):
    """Points of a hierarchy with features."""

    pos: Tensor  #: (M, 3)
    num_nodes: Tensor  #: (B,) number of points of each point cloud, on the CPU
    feat: Tensor | None  #: (M, C)
    orient: Tensor | None = None  #: (M, 3, 3)


def model_inputs(graph: DGLGraph, network: nn.Module, in_feats: int = 0, in_vectors: int = 0) -> ModelInputs:
    """Read and check the inputs of a network: the only place of a forward pass where values are checked."""
    if not isinstance(graph, DGLGraph) or "pos" not in graph.ndata:
        raise DGLError(
            'Expected a graph with the points in ndata["pos"]; make one with '
            "dgl_orient.point_cloud(pos, batch_num_nodes)."
        )
    pos = graph.ndata["pos"]
    check_coordinates(graph, pos)
    features = point_features(graph, in_feats, in_vectors)
    check_dtype(network, pos, *features.values())
    check_finite(pos, **features)
    return ModelInputs(pos, graph.batch_num_nodes(), features.get("feat"), features.get("vec"))


def point_features(graph: DGLGraph, in_feats: int, in_vectors: int) -> dict[str, Tensor]:
    """``ndata["feat"]`` and ``ndata["vec"]``, as far as a network takes them."""
    features = {}
    for name, size, shape in (
        ("feat", in_feats, (graph.num_nodes(), in_feats)),
        ("vec", in_vectors, (graph.num_nodes(), in_vectors, 3)),
    ):
        if size and name not in graph.ndata:
            option = "in_feats" if name == "feat" else "in_vectors"
            raise DGLError(
                f"This network has {option}={size}; put the features of the points, of shape {shape}, into "
                f'graph.ndata["{name}"].'
            )
        if size:
            features[name] = graph.ndata[name]
            check_shape(f'ndata["{name}"]', features[name], shape)
    return features


def point_channels(inputs: ModelInputs) -> Tensor | None:
    """Features and vectors of the points, concatenated; they depend on the rotation. None without any."""
    feats = [] if inputs.feat is None else [inputs.feat]
    feats += [] if inputs.vec is None else [inputs.vec.flatten(1)]
    return torch.cat(feats, 1) if feats else None


def feature_vectors(inputs: ModelInputs, centered: Tensor) -> list[Tensor]:
    """Features and vectors of the points as equivariant vectors ``(N, C, 3)``: a feature multiplies the
    offset from the centroid."""
    vectors = [] if inputs.feat is None else [inputs.feat.unsqueeze(2) * centered.unsqueeze(1)]
    return vectors if inputs.vec is None else [*vectors, inputs.vec]


def raw_features(inputs: ModelInputs) -> Tensor:
    """Coordinates, features and vectors of the points, concatenated; they depend on the rotation."""
    feats = point_channels(inputs)
    return inputs.pos if feats is None else torch.cat([inputs.pos, feats], 1)


def check_head(head_feats: Sequence[int], dropout: float, **sizes: int) -> None:
    """Raise unless a head can be made with these hidden layers, this dropout and these named sizes."""
    check_integers(**sizes)
    check_integer_lists(head_feats=head_feats)
    check_probability(dropout=dropout)


def global_pool(batch_num_nodes: Tensor, feat: Tensor) -> Tensor:
    """The maximum and the mean over each point cloud, concatenated, ``(B, 2C)``; 0 for an empty one."""
    # DGL has no sums of segments in bfloat16 on the CPU.
    feat = feat.to(torch.promote_types(feat.dtype, torch.float32))
    return torch.cat([segment_max(batch_num_nodes, feat), segment_mean(batch_num_nodes, feat)], 1)


class EdgeConvs(nn.Module):
    """DGCNN's stack of EdgeConv layers, Eqs. 13 to 15: the first on the kNN graph of the coordinates, with
    orientations where there are any, each further one on the kNN graph of the features before it.

    Parameters
    ----------
    in_feats : int
        Number of input features of a point; may be 0 with orientations.
    widths : sequence of int
        Sizes of the layers' features.
    k : int
        Number of neighbours.
    num_orientations : int
        Number of orientations of a point; 0 for the plain layers.
    dynamic : bool
        Whether each further layer has the kNN graph of its input features; otherwise all have that of the
        coordinates.
    oriented_layers : int
        Number of layers with orientations, the first ones; more than there are means all.
    """

    def __init__(
        self,
        in_feats: int,
        widths: Sequence[int],
        k: int,
        num_orientations: int = 0,
        dynamic: bool = True,
        oriented_layers: int = 1,
    ) -> None:
        super().__init__()
        check_integer_lists(1, widths=widths)
        check_integers(oriented_layers=oriented_layers)
        self.k, self.dynamic = check_k(k), dynamic
        options = dict(batch_norm=True, allow_zero_in_degree=True)
        sizes = zip([in_feats, *widths], widths)
        self.convs = nn.ModuleList(
            OrientedEdgeConv(*size, num_orientations if number < oriented_layers else 0, **options)
            for number, size in enumerate(sizes)
        )

    def forward(
        self, graph: DGLGraph, feat: Tensor | None, pos: Tensor, orient: Tensor | None = None
    ) -> Tensor:
        """The features of all layers, concatenated, ``(N, sum(widths))``.

        Parameters
        ----------
        graph : DGLGraph
            The kNN graph of the coordinates with :attr:`k` neighbours.
        feat : Tensor, optional
            Features ``(N, in_feats)``.
        pos : Tensor
            Coordinates ``(N, 3)``.
        orient : Tensor, optional
            Orientations ``(N, num_orientations, 3, 3)``.
        """
        batch_num_nodes = graph.batch_num_nodes()
        outputs = [self.convs[0](graph, feat, pos, orient)]
        for conv in self.convs[1:]:
            if self.dynamic:
                graph = knn_graph(outputs[-1], self.k, batch_num_nodes)
            outputs.append(conv(graph, outputs[-1], pos, orient))
        return torch.cat(outputs, 1)


class CloudClassifier(nn.Module):
    """DGCNN's head: an embedding of each point, its maximum and mean over the point cloud, and an MLP.

    Parameters
    ----------
    in_feats : int
        Number of features of a point.
    num_classes : int
        Number of outputs.
    embed_feats : int
        Size of the embedding.
    head_feats : sequence of int
        Sizes of the MLP's hidden layers.
    dropout : float
        Dropout in the MLP.
    """

    def __init__(
        self, in_feats: int, num_classes: int, embed_feats: int, head_feats: Sequence[int], dropout: float
    ) -> None:
        super().__init__()
        check_head(head_feats, dropout, num_classes=num_classes, embed_feats=embed_feats)
        self.embed = PointwiseMLP(in_feats, embed_feats)
        self.hidden = PointwiseMLP(2 * embed_feats, *head_feats, dropout=dropout)
        self.logits = nn.Linear(self.hidden.out_feats, num_classes)

    def forward(self, batch_num_nodes: Tensor, feat: Tensor) -> Tensor:
        """Logits ``(B, num_classes)`` from the features of points ``(N, in_feats)``."""
        return self.logits(self.hidden(global_pool(batch_num_nodes, self.embed(feat))))
