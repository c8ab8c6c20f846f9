"""Data sets, readers of files, and transforms."""

from dgl.transforms import Compose

from .charged import ChargedParticles
from .charged_files import ChargedParticleFiles
from .clouds import CloudDataset, Clouds
from .files import read_cloud, write_cloud
from .folder import FolderDataset
from .loading import CloudLoader, cloud_loader
from .modelnet import ModelNet10, ModelNet40
from .protocols import PROTOCOLS, Protocol, protocol
from .shapenetpart import ShapeNetPart
from .shapes import Shapes
from .simulation import Physics, energy, simulate
from .transforms import DropPoints, Jitter, Resample, Rotate, Scale, Shift, UnitSphere

__all__ = [
    "PROTOCOLS",
    "ChargedParticleFiles",
    "ChargedParticles",
    "CloudDataset",
    "CloudLoader",
    "Clouds",
    "Compose",
    "DropPoints",
    "FolderDataset",
    "Jitter",
    "ModelNet10",
    "ModelNet40",
    "Physics",
    "Protocol",
    "Resample",
    "Rotate",
    "Scale",
    "ShapeNetPart",
    "Shapes",
    "Shift",
    "UnitSphere",
    "cloud_loader",
    "energy",
    "protocol",
    "read_cloud",
    "simulate",
    "write_cloud",
]
