"""Training and its measurements."""

from .loop import Splits, fit
from .settings import Settings
from .tasks import NBody, NormalEstimation, PartSegmentation, PointClassification, Task

__all__ = [
    "NBody",
    "NormalEstimation",
    "PartSegmentation",
    "PointClassification",
    "Settings",
    "Splits",
    "Task",
    "fit",
]
