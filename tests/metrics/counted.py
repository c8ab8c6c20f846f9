"""What the tests of metrics have in common."""

from __future__ import annotations

import torch

#: Three categories of 2, 3 and 1 parts.
PARTS = [(0, 1), (2, 3, 4), (5,)]


def counted(metric, *arguments):
    """A metric that was updated with values."""
    metric.update(*map(torch.as_tensor, arguments))
    return metric
