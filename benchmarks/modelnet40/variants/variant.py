"""What the variants of oriented DGCNN have in common."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod

from torch import nn

from dgl_orient.models import OrientedDGCNN
from dgl_orient.models.blocks import EdgeConvs

__all__ = ["Variant"]


class Variant(OrientedDGCNN, ABC):
    """Oriented DGCNN with other layers in its backbone, made by :meth:`_changed`; arguments are the same."""

    # The signature is what a recipe's arguments are checked against.
    @functools.wraps(OrientedDGCNN.__init__)
    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.backbone = self._changed(self.backbone)

    @abstractmethod
    def _changed(self, backbone: EdgeConvs) -> nn.Module:
        """A backbone of the same sizes; it is called as the given one."""
