"""Metrics of predictions and of orientations."""

from .orientation import (
    CORRUPTIONS,
    OrientationSample,
    degenerate_fraction,
    frame_angles,
    orientation_agreement,
    orientation_quality,
    orientation_smoothness,
)

__all__ = [
    "CORRUPTIONS",
    "OrientationSample",
    "degenerate_fraction",
    "frame_angles",
    "orientation_agreement",
    "orientation_quality",
    "orientation_smoothness",
]
