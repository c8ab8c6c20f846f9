"""Metrics: accuracy, mean intersection over union of parts, errors of normals and positions.

A metric accumulates sums and counts in its tensor ``totals``, a batch at a time. Every sample has the same
weight however it was batched, and the totals of several processes are summed::

    torch.distributed.all_reduce(metric.totals)
"""

from .accuracy import Accuracy
from .segmentation import PartIoU, restrict_to_class
from .vectors import MeanSquaredError, NormalError

__all__ = ["Accuracy", "MeanSquaredError", "NormalError", "PartIoU", "restrict_to_class"]
