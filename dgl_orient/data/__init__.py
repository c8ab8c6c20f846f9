"""Data sets, readers and writers of files, transforms and loaders."""

from dgl.transforms import Compose

from .charged_particle_files import ChargedParticleFiles
from .charged_particles import ChargedParticles
from .dataset import PointCloudDataset, PointClouds
from .folder import FolderDataset
from .io import CloudWarning, read_cloud, write_cloud
from .loader import PointCloudLoader, point_cloud_loader
from .modelnet import ModelNet10, ModelNet40
from .molecule_files import read_molecules
from .molecule_folder import MoleculeFiles
from .molecules import MoleculeDataset
from .protocols import PROTOCOLS, Protocol, protocol
from .qm9 import QM9
from .shapenetpart import ShapeNetPart
from .shapes import Shapes
from .simulation import Physics, energy, simulate
from .transforms import (
    AddUp,
    FixedPoints,
    NormalizeScale,
    RandomDensity,
    RandomJitter,
    RandomPointDropout,
    RandomRotate,
    RandomScale,
    RandomTranslate,
    RandomView,
    RemoveOutliers,
    find_outliers,
)

__all__ = [
    "PROTOCOLS",
    "QM9",
    "AddUp",
    "ChargedParticleFiles",
    "ChargedParticles",
    "CloudWarning",
    "PointCloudDataset",
    "PointCloudLoader",
    "PointClouds",
    "Compose",
    "RandomDensity",
    "RandomPointDropout",
    "FolderDataset",
    "RandomJitter",
    "ModelNet10",
    "ModelNet40",
    "MoleculeDataset",
    "MoleculeFiles",
    "Physics",
    "Protocol",
    "FixedPoints",
    "RandomRotate",
    "RandomScale",
    "ShapeNetPart",
    "Shapes",
    "RandomTranslate",
    "RandomView",
    "RemoveOutliers",
    "NormalizeScale",
    "point_cloud_loader",
    "energy",
    "find_outliers",
    "protocol",
    "read_cloud",
    "read_molecules",
    "simulate",
    "write_cloud",
]
