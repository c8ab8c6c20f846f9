"""Figures of matplotlib: made without a window, encoded to the same bytes every time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from dgl import DGLError

from .._extras import to_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["escape", "figure_bytes", "new_figure", "require_matplotlib", "simplify_axes"]

_DPI = 300
# Without dates and random names the same picture is the same file.
_METADATA = {
    "png": {"Software": "dgl_orient"},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": "dgl_orient"},
    "svg": {"Date": None, "Creator": "dgl_orient"},
}
_STYLE = {"svg.hashsalt": "dgl_orient", "pdf.fonttype": 42}


_FONTS = ("Helvetica", "Arial", "Liberation Sans", "DejaVu Sans")  # the last comes with matplotlib


def require_matplotlib() -> None:
    """Raise unless matplotlib is installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ModuleNotFoundError as error:
        raise DGLError(f"Pictures need the package {error.name}; {to_install('plot')}.") from error


def new_figure(inches: tuple[float, float], layout: str | None = "constrained") -> Figure:
    """An empty figure that no window shows."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=inches, layout=layout)


def figure_bytes(figure: Figure, suffix: str, dpi: int = _DPI) -> bytes:
    """Encode a figure in the format of a suffix such as ``".png"``, with tight margins."""
    from matplotlib import font_manager, rc_context

    fonts = [name for name in _FONTS if name in font_manager.get_font_names()]
    kind, buffer = suffix.lower().removeprefix("."), io.BytesIO()
    with rc_context(_STYLE | {"font.sans-serif": fonts}):
        figure.savefig(
            buffer, format=kind, dpi=dpi, bbox_inches="tight", pad_inches=0.05, metadata=_METADATA[kind]
        )
    return buffer.getvalue()


def escape(name: str) -> str:
    """A string that matplotlib writes as it is: no formula, no character that cannot be printed."""
    name = name.encode("utf-8", "replace").decode("utf-8").replace("$", r"\$")
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in name)


def simplify_axes(axes: Axes) -> None:
    """Small tick labels, and no frame at the top and right."""
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
