"""What the networks are put together from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn.functional import linear

from .._checks import check_k
from ..graph import knn_graph
from ..nn import OrientedEdgeConv
from ..nn.inputs import check_coordinates, check_positive, check_probability, check_sizes, check_types
from ..nn.pooling import largest_of_clouds, mean_of_clouds

__all__ = ["CloudClassifier", "EdgeConvs", "PointwiseMLP", "check_head", "clouds_of", "pool"]


def clouds_of(graph: DGLGraph, network: nn.Module) -> tuple[Tensor, Tensor]:
    """The points ``(N, 3)`` that a graph carries for a network, and how many each cloud has."""
    if not isinstance(graph, DGLGraph) or "pos" not in graph.ndata:
        raise DGLError(
            'Expected a graph whose ndata["pos"] holds the points; make one with '
            "dgl_orient.point_cloud(pos, batch_num_nodes)."
        )
    pos = graph.ndata["pos"]
    check_coordinates(graph, pos)
    check_types(network, pos)
    return pos, graph.batch_num_nodes()


def check_head(head_feats: Sequence[int], dropout: float, **sizes: int) -> None:
    """Raise unless a head can be made with these hidden layers, this dropout and these named sizes."""
    check_positive(**sizes)
    check_sizes(head_feats=head_feats)
    check_probability(dropout=dropout)


def pool(sizes: Tensor, feat: Tensor) -> Tensor:
    """The maximum and the mean of each cloud's features side by side, ``(B, 2C)``; 0 without points."""
    # DGL has no sums of segments in bfloat16 on the CPU.
    feat = feat.to(torch.promote_types(feat.dtype, torch.float32))
    return torch.cat([largest_of_clouds(sizes, feat), mean_of_clouds(sizes, feat)], 1)


class EdgeConvs(nn.Module):
    """DGCNN's stack of EdgeConv layers, Eqs. 13 to 15: the first on the coordinates' graph, with
    orientations where there are any, each further one on the graph of the features before it.

    Parameters
    ----------
    in_feats : int
        Size of the points' first features; may be 0 with orientations.
    widths : sequence of int
        Sizes of the layers' features.
    k : int
        Neighbours of a point.
    num_orientations : int
        Orientations of a point; 0 for none.
    dynamic : bool
        Whether neighbours are looked for among the features anew; otherwise they stay those in space.
    oriented_layers : int
        How many layers, the first ones, see neighbours in orientations; more than there are means all.
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
        check_sizes(1, widths=widths)
        check_positive(oriented_layers=oriented_layers)
        self.k, self.dynamic = check_k(k), dynamic
        style = dict(batch_norm=True, allow_zero_in_degree=True)
        sizes = zip([in_feats, *widths], widths)
        self.convs = nn.ModuleList(
            OrientedEdgeConv(*size, num_orientations if number < oriented_layers else 0, **style)
            for number, size in enumerate(sizes)
        )

    def forward(
        self,
        pos: Tensor,
        sizes: Tensor,
        feat: Tensor | None,
        orient: Tensor | None = None,
        graph: DGLGraph | None = None,
    ) -> Tensor:
        """The features of all layers side by side, ``(N, sum(widths))``; the points' graph may be given."""
        graph = knn_graph(pos, self.k, sizes) if graph is None else graph
        outputs = [self.convs[0](graph, feat, pos, orient)]
        for conv in self.convs[1:]:
            if self.dynamic:
                graph = knn_graph(outputs[-1], self.k, sizes)
            outputs.append(conv(graph, outputs[-1], pos, orient))
        return torch.cat(outputs, 1)


class PointwiseMLP(nn.Sequential):
    """Linear maps with batch norm, LeakyReLU(0.2) and dropout.

    Parameters
    ----------
    *sizes : int
        The input's size and then those of the layers.
    dropout : float
        Probability of dropping a feature after a layer.
    """

    def __init__(self, *sizes: int, dropout: float = 0.0) -> None:
        layers = []
        for before, after in zip(sizes, sizes[1:]):
            layers += [
                nn.Linear(before, after, bias=False),
                nn.BatchNorm1d(after),
                nn.LeakyReLU(0.2),
                nn.Dropout(dropout),
            ]
        super().__init__(*layers)
        self.out_feats = sizes[-1]

    def of_points_in_clouds(self, feat: Tensor, of_cloud: Tensor, sizes: Tensor) -> Tensor:
        """What it makes of points' features ``(N, C)`` with those of their clouds ``(B, D)`` beside them.

        The first map's part for a cloud is the same for all of its points, and is computed once.
        """
        if len(self) == 0:
            return torch.cat([feat, of_cloud.repeat_interleave(sizes, 0)], 1)
        first, *others = self
        own, common = first.weight.split([feat.shape[1], of_cloud.shape[1]], 1)
        feat = linear(feat, own) + linear(of_cloud, common).repeat_interleave(sizes, 0)
        for layer in others:
            feat = layer(feat)
        return feat


class CloudClassifier(nn.Module):
    """DGCNN's head: an embedding of each point, its maximum and mean over the cloud, and an MLP of them.

    Parameters
    ----------
    in_feats : int
        Size of the points' features.
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

    def forward(self, sizes: Tensor, feat: Tensor) -> Tensor:
        """Logits ``(B, num_classes)`` from the points' features ``(N, in_feats)``."""
        return self.logits(self.hidden(pool(sizes, self.embed(feat))))
