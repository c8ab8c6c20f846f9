"""MLPs with batch norm, the same for every row."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

__all__ = ["PointwiseMLP"]


class PointwiseMLP(nn.Sequential):
    """Linear maps with batch norm, activation and dropout.

    Parameters
    ----------
    *sizes : int
        The size of the input and then those of the layers.
    dropout : float
        Probability of dropping a feature after a layer.
    bias : bool
        Whether the linear maps have a bias, which batch norm removes; published networks may have one.
    activation : callable, optional
        Makes the activation of a layer; LeakyReLU(0.2) by default.
    """

    def __init__(
        self,
        *sizes: int,
        dropout: float = 0.0,
        bias: bool = False,
        activation: Callable[[], nn.Module] | None = None,
    ) -> None:
        layers = []
        for in_size, out_size in zip(sizes, sizes[1:]):
            layers += [
                nn.Linear(in_size, out_size, bias=bias),
                nn.BatchNorm1d(out_size),
                nn.LeakyReLU(0.2) if activation is None else activation(),
                nn.Dropout(dropout),
            ]
        super().__init__(*layers)
        self.out_feats = sizes[-1]

    def forward_with_global(self, feat: Tensor, global_feat: Tensor, batch_num_nodes: Tensor) -> Tensor:
        """The output for features ``(N, C)`` of points concatenated with those of point clouds ``(B, D)``.

        The part of the first map that acts on a point cloud's features is computed once per point cloud.
        """
        if len(self) == 0:
            return torch.cat([feat, global_feat.repeat_interleave(batch_num_nodes, 0)], 1)
        weight, global_weight = self[0].weight.split([feat.shape[1], global_feat.shape[1]], 1)
        once = linear(global_feat, global_weight, self[0].bias)
        return self.forward_from(linear(feat, weight) + once.repeat_interleave(batch_num_nodes, 0))

    def forward_from(self, mapped: Tensor) -> Tensor:
        """The output, given that of the first linear map."""
        for layer in list(self)[1:]:
            mapped = layer(mapped)
        return mapped
