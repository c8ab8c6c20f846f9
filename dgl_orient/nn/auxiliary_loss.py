"""Terms that a network adds to the loss of its training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["AuxiliaryLoss", "take_auxiliary_loss"]


class AuxiliaryLoss(nn.Module):
    """Adds a term to the loss of training: a network that holds this module calls it with the term.

    :mod:`dgl_orient.train` adds the terms of the last forward pass to the mean loss of a batch; a training
    loop of one's own gets them from :func:`take_auxiliary_loss`. Outside of training mode and without
    gradients nothing is kept.

    Parameters
    ----------
    weight : float
        Factor of the term.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn.auxiliary_loss import AuxiliaryLoss, take_auxiliary_loss
    >>> class Net(torch.nn.Linear):
    ...     def __init__(self):
    ...         super().__init__(2, 1)
    ...         self.sparsity = AuxiliaryLoss(weight=0.1)
    ...
    ...     def forward(self, feat):
    ...         self.sparsity(self.weight.abs().sum())
    ...         return super().forward(feat)
    >>> net = Net()
    >>> output = net(torch.ones(3, 2))
    >>> bool(take_auxiliary_loss(net) > 0), take_auxiliary_loss(net)
    (True, None)
    """

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = weight
        self.term: Tensor | None = None

    def __getstate__(self) -> dict[str, object]:
        # A tensor with a history can be neither copied nor pickled.
        return self.__dict__ | {"term": None}

    def extra_repr(self) -> str:
        return f"weight={self.weight}"

    def forward(self, value: Tensor) -> None:
        """Keep a term, a number, for the loss of this batch."""
        self.term = self.weight * value if self.training and torch.is_grad_enabled() else None


def take_auxiliary_loss(model: nn.Module) -> Tensor | None:
    """The sum of the terms that the modules of a network have kept, which then forget them; None without."""
    total = None
    for module in model.modules():
        if isinstance(module, AuxiliaryLoss) and module.term is not None:
            total = module.term if total is None else total + module.term
            module.term = None
    return total
