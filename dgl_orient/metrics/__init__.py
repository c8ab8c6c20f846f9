"""Metrics of predictions and of orientations.

A metric of predictions accumulates sums and counts in its tensor ``totals``, a batch at a time. Every sample
has the same weight however it was batched, and the totals of several processes are summed::

    torch.distributed.all_reduce(metric.totals)
"""

from .accuracy import Accuracy
from .molecules import PropertyError, TensorError
from .orientation import (
    CORRUPTIONS,
    OrientationSample,
    degenerate_fraction,
    frame_angles,
    orientation_agreement,
    orientation_quality,
    orientation_smoothness,
)
from .segmentation import PartIoU, restrict_to_class
from .upright import UpError, chosen_direction
from .vectors import MeanSquaredError, NormalError

__all__ = [
    "CORRUPTIONS",
    "Accuracy",
    "MeanSquaredError",
    "NormalError",
    "OrientationSample",
    "PartIoU",
    "PropertyError",
    "TensorError",
    "UpError",
    "chosen_direction",
    "degenerate_fraction",
    "frame_angles",
    "orientation_agreement",
    "orientation_quality",
    "orientation_smoothness",
    "restrict_to_class",
]
