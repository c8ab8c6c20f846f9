"""Heads of networks on farthest-point hierarchies: the mean of logits, and outputs of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from .._segment import segment_mean
from ..nn.pointwise_mlp import PointwiseMLP
from .blocks import Level
from .segmentation import PointOutput, PointReadout, one_hot_category

__all__ = ["LevelClassifier", "LevelSegmentation"]


class LevelClassifier(nn.Module):
    """An MLP of each remaining point, and the mean of their logits.

    Parameters
    ----------
    in_feats : int
        Number of features of a point.
    num_classes : int
        Number of classes.
    head_feats : sequence of int
        Sizes of the MLP's hidden layers.
    dropout : float
        Dropout after the last of them.
    activation : callable
        Makes the activation of a layer.
    """

    def __init__(
        self,
        in_feats: int,
        num_classes: int,
        head_feats: Sequence[int],
        dropout: float,
        activation: Callable[[], nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        self.hidden = PointwiseMLP(in_feats, *head_feats, activation=activation)
        self.dropout = nn.Dropout(dropout)
        self.logits = nn.Linear(self.hidden.out_feats, num_classes)

    def forward(self, level: Level) -> Tensor:
        """Logits ``(B, num_classes)``."""
        logits = self.logits(self.dropout(self.hidden(level.feat)))
        return segment_mean(level.num_nodes.to(logits.device), logits)


class LevelSegmentation(nn.Module):
    """An MLP of each point's features and its point cloud's category.

    Parameters
    ----------
    in_feats : int
        Number of features of a point.
    num_outputs, out, num_categories
        As in :class:`~dgl_orient.models.DGCNNSeg`.
    head_feats : sequence of int
        Sizes of the MLP's hidden layers.
    dropout : float
        Dropout after the last of them.
    activation : callable
        Makes the activation of a layer.
    """

    def __init__(
        self,
        in_feats: int,
        num_outputs: int,
        out: PointOutput,
        num_categories: int,
        head_feats: Sequence[int],
        dropout: float,
        activation: Callable[[], nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        self.num_categories = num_categories
        self.hidden = PointwiseMLP(in_feats + num_categories, *head_feats, activation=activation)
        self.dropout = nn.Dropout(dropout)
        self.readout = PointReadout(self.hidden.out_feats, num_outputs, out)

    def forward(self, feat: Tensor, category: Tensor | None, batch_num_nodes: Tensor) -> Tensor:
        """Logits ``(N, num_outputs)`` or vectors ``(N, num_outputs, 3)``."""
        classes = one_hot_category(category, self.num_categories, len(batch_num_nodes), feat)
        if classes:
            feat = self.hidden.forward_with_global(feat, classes[0], batch_num_nodes)
        else:
            feat = self.hidden(feat)
        return self.readout(self.dropout(feat))
