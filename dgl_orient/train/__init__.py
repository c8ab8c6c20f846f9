"""Training: settings, tasks, the loop and its checkpoints."""

from .loop import fit
from .molecule_tasks import MoleculeProperties, MoleculeTensors
from .settings import Settings
from .splits import Splits
from .tasks import NBody, NormalEstimation, PartSegmentation, PointClassification, Task
from .upright_task import UprightEstimation

__all__ = [
    "MoleculeProperties",
    "MoleculeTensors",
    "NBody",
    "NormalEstimation",
    "PartSegmentation",
    "PointClassification",
    "Settings",
    "Splits",
    "Task",
    "UprightEstimation",
    "fit",
]
