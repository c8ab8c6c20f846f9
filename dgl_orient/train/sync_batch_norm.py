"""Synchronised batch norm, on any device."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ..nn.edge_batch_norm import Moments, affine

__all__ = ["SyncBatchNorm", "convert_sync_batch_norm"]


class SyncBatchNorm(nn.SyncBatchNorm):
    """As :class:`torch.nn.SyncBatchNorm`, which takes tensors of a GPU only.

    In training all processes must call it equally often. Their batches may differ in size.
    """

    def forward(self, input: Tensor) -> Tensor:
        if not self.training:
            return _BatchNorm.forward(self, input)
        scale, shift = affine(self, _moments(input))
        shape = (-1, *[1] * (input.ndim - 2))  # channels come second
        return (input * scale.view(shape) + shift.view(shape)).to(input.dtype)


def convert_sync_batch_norm(model: nn.Module) -> nn.Module:
    """The network with every batch norm synchronised; its weights keep their names."""
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    for module in model.modules():
        if type(module) is nn.SyncBatchNorm:
            # Parameters and statistics are the same; only the forward pass differs.
            module.__class__ = SyncBatchNorm
    return model


def _moments(values: Tensor) -> Moments:
    # Sums of thousands of numbers need more digits than bfloat16 has.
    rows = (
        values.to(torch.promote_types(values.dtype, torch.float32)).transpose(0, 1).flatten(1)
    )  # (C, count)
    mean = rows.mean(1)
    squares = (rows - mean.unsqueeze(1)).square().sum(1)
    return Moments(rows.new_tensor(float(rows.shape[1])), mean, squares)
