"""Pictures and interactive pages of point clouds with their orientations, of trainings and of metrics.

matplotlib and plotly, the extra ``plot``, are imported when something is drawn.
"""

from .camera import Camera
from .cloud_figure import cloud_figure
from .cloud_page import cloud_page
from .colors import Coloring, by_category, by_direction, by_value, own_colors, plain
from .saving import save, save_figure
from .scene import OrientedCloud, PlotOptions, arrows, oriented_cloud

__all__ = [
    "Camera",
    "Coloring",
    "OrientedCloud",
    "PlotOptions",
    "arrows",
    "by_category",
    "by_direction",
    "by_value",
    "cloud_figure",
    "cloud_page",
    "oriented_cloud",
    "own_colors",
    "plain",
    "save",
    "save_figure",
]
