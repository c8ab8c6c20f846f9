"""What the networks for points share: their outputs, and the category of a point cloud."""

from __future__ import annotations

from typing import Literal

import torch
from dgl import DGLError
from torch import Tensor, nn

from .._validation import check_choice, check_integers, check_shape

__all__ = ["PointOutput", "PointReadout", "one_hot_category"]

PointOutput = Literal["labels", "vectors"]


class PointReadout(nn.Linear):
    """Logits ``(N, num_outputs)`` of labels or vectors ``(N, num_outputs, 3)``, three numbers each.

    Parameters
    ----------
    in_feats : int
        Number of features of a point.
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    """

    def __init__(self, in_feats: int, num_outputs: int, out: PointOutput) -> None:
        check_choice("out", out, PointOutput)
        check_integers(num_outputs=num_outputs)
        super().__init__(in_feats, num_outputs * (3 if out == "vectors" else 1))
        self.out = out

    def forward(self, feat: Tensor) -> Tensor:
        """The outputs from features ``(N, in_feats)``."""
        result = super().forward(feat)
        return result.unflatten(1, (-1, 3)) if self.out == "vectors" else result


def one_hot_category(
    category: Tensor | None, num_categories: int, batch_size: int, like: Tensor
) -> list[Tensor]:
    """The categories of point clouds as features ``(B, num_categories)``; none where there are none.

    Parameters
    ----------
    category : Tensor, optional
        The category of each point cloud, ``(B,)``.
    num_categories : int
        On how many the network is conditioned; 0 for none.
    batch_size : int
        Number of point clouds.
    like : Tensor
        The features are on its device and of its dtype.
    """
    if num_categories == 0:
        if category is not None:
            raise DGLError("This network has num_categories=0, but a category was given; omit it.")
        return []
    check_shape("category, an integer for each point cloud,", category, (batch_size,))
    if category.is_floating_point() or not bool(((category >= 0) & (category < num_categories)).all()):
        raise DGLError(f"Expected categories to be integers from 0 to {num_categories - 1}.")
    return [torch.nn.functional.one_hot(category.long(), num_categories).to(like.dtype)]
