"""Pictures of clouds and their orientations, of trainings and of measurements.

matplotlib is imported when a picture is drawn; pages need nothing.
"""

from .camera import Camera
from .cloud_figure import cloud_figure
from .colors import Coloring, by_category, by_direction, by_value
from .page import cloud_page
from .saving import save_figure
from .scene import Look, OrientedCloud, arrows, oriented_cloud
from .seen import OrientationTrace, trace_orientations
from .show import save

__all__ = [
    "Camera",
    "Coloring",
    "Look",
    "OrientedCloud",
    "OrientationTrace",
    "arrows",
    "by_category",
    "by_direction",
    "by_value",
    "cloud_figure",
    "cloud_page",
    "trace_orientations",
    "oriented_cloud",
    "save",
    "save_figure",
]
