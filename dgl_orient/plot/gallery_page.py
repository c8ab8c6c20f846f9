"""Galleries of point clouds: a grid of panels, or a page of pictures that open as interactive plots."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from .cloud_figure import cloud_figure
from .cloud_page import CONFIG, page_figure, require_plotly
from .figure import escape, figure_bytes
from .scene import OrientedCloud, PlotOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["gallery_figure", "gallery_page"]

_THUMBNAIL_DPI = 110
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
* {{ box-sizing: border-box; }}
body {{ margin: 0; padding: 20px 28px; font: 15px system-ui, sans-serif; color: #222; }}
h1 {{ font-size: 18px; font-weight: 600; margin: 0 0 16px; }}
main {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 14px; }}
.card {{ display: flex; flex-direction: column; padding: 12px; border: 1px solid #e4e6ea; border-radius: 8px;
  background: #fff; font: inherit; color: inherit; cursor: pointer; }}
.card:hover, .card:focus-visible {{ border-color: #6b7f9e; outline: none; }}
.card img {{ width: 100%; height: 170px; object-fit: contain; margin-bottom: 8px; }}
.card span {{ overflow-wrap: anywhere; }}
.card small {{ color: #667; font-size: 13px; }}
#viewer {{ position: fixed; inset: 0; background: #fff; display: none; }}
#viewer.open {{ display: block; }}
#plot {{ position: absolute; inset: 0; }}
#viewer nav {{ position: absolute; bottom: 12px; left: 16px; z-index: 1; display: flex; gap: 6px; }}
#viewer nav button {{ font: inherit; padding: 5px 12px; border: 1px solid #ccd; border-radius: 6px;
  background: #fff; cursor: pointer; }}
</style>
<script>{plotly}</script></head>
<body><h1>{title}</h1>
<main>
{cards}
</main>
<div id="viewer"><nav><button id="close">Gallery</button><button id="back">Previous</button>
<button id="next">Next</button></nav><div id="plot"></div></div>
{figures}
<script>
const viewer = document.getElementById("viewer"), plot = document.getElementById("plot");
const figures = [...document.querySelectorAll("script.figure")];
let shown = -1;
const show = (number) => {{
  shown = (number + figures.length) % figures.length;
  const {{ data, layout }} = JSON.parse(figures[shown].textContent);
  viewer.classList.add("open");
  Plotly.newPlot(plot, data, layout, {config});
}};
const close = () => {{ viewer.classList.remove("open"); Plotly.purge(plot); shown = -1; }};
document.querySelectorAll(".card").forEach((card, i) => card.addEventListener("click", () => show(i)));
document.getElementById("close").addEventListener("click", close);
document.getElementById("back").addEventListener("click", () => show(shown - 1));
document.getElementById("next").addEventListener("click", () => show(shown + 1));
document.addEventListener("keydown", ({{ key }}) => {{
  if (shown < 0) return;
  if (key === "Escape") close();
  if (key === "ArrowLeft") show(shown - 1);
  if (key === "ArrowRight") show(shown + 1);
}});
</script></body></html>
"""
_CARD = (
    '<button class="card"><img alt="" src="data:image/png;base64,{image}"><span>{name}</span>'
    "<small>{rest}</small></button>"
)
_FIGURE = '<script class="figure" type="application/json">{content}</script>'


def gallery_figure(clouds: Sequence[OrientedCloud], options: Sequence[PlotOptions]) -> Figure:
    """Draw point clouds of any scales in a grid of panels, all equally large.

    Parameters
    ----------
    clouds : sequence of OrientedCloud
        The point clouds, with their titles.
    options : sequence of PlotOptions
        What is drawn of each.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.plot import PlotOptions, oriented_cloud
    >>> from dgl_orient.plot.gallery_page import gallery_figure
    >>> clouds = [oriented_cloud(scale * torch.rand(50, 3)) for scale in (1, 1000)]
    >>> len(gallery_figure(clouds, [PlotOptions()] * 2).axes)
    2
    """
    columns = math.ceil(math.sqrt(1.5 * len(clouds)))
    starts = range(0, len(clouds), columns)
    panels = [[_of_unit_size(each) for each in clouds[start : start + columns]] for start in starts]
    figure = cloud_figure(panels, [list(options[start : start + columns]) for start in starts])
    for axes, cloud in zip(figure.axes, clouds):
        name, *rest = cloud.title.split("\n")
        points = 72 * figure.get_figwidth() * axes.get_position().width
        axes.title.set_text(escape("\n".join([_without_middle(name, points, axes.title.get_size()), *rest])))
    return figure


def gallery_page(clouds: Sequence[OrientedCloud], options: Sequence[PlotOptions], title: str = "") -> str:
    """A page of pictures of point clouds, each of which opens as an interactive plot.

    Parameters
    ----------
    clouds : sequence of OrientedCloud
        The point clouds; the first line of a title is a cloud's name.
    options : sequence of PlotOptions
        What is drawn of each.
    title : str
        Title of the page.

    Returns
    -------
    str
        The content of an .html file. It embeds plotly.js, about 5 MB.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.plot import PlotOptions, oriented_cloud
    >>> from dgl_orient.plot.gallery_page import gallery_page
    >>> clouds = [oriented_cloud(torch.rand(50, 3), title=name) for name in ("mug.ply", "cup.ply")]
    >>> page = gallery_page(clouds, [PlotOptions()] * 2, "cups")
    >>> page.count('class="card"'), page.count('class="figure"')
    (2, 2)
    """
    require_plotly()
    from plotly.offline import get_plotlyjs

    cards, figures = [], []
    for cloud, each in zip(clouds, options):
        name, _, rest = cloud.title.partition("\n")
        picture = cloud_figure([[replace(cloud, title="")]], each)
        image = base64.b64encode(figure_bytes(picture, ".png", _THUMBNAIL_DPI)).decode()
        cards.append(_CARD.format(image=image, name=html.escape(name), rest=html.escape(rest)))
        heading = ": ".join(filter(None, [name, rest]))
        content = json.dumps(page_figure([replace(cloud, title="")], each, heading))
        figures.append(_FIGURE.format(content=content.replace("<", r"\u003c")))
    return _PAGE.format(
        title=html.escape(title),
        plotly=get_plotlyjs(),
        cards="\n".join(cards),
        figures="\n".join(figures),
        config=json.dumps(CONFIG),
    )


def _without_middle(name: str, points: float, font_size: float) -> str:
    """A name of at most this width; of a longer one the beginning and the end."""
    from matplotlib.textpath import TextPath

    short, kept = name, len(name)
    while kept > 2 and TextPath((0, 0), escape(short), size=font_size).get_extents().width > points:
        kept -= 1
        short = f"{name[: kept - kept // 2]}…{name[-(kept // 2) :]}"
    return short


def _of_unit_size(cloud: OrientedCloud) -> OrientedCloud:
    """The cloud with its centroid at the origin and a radius of 1."""
    pos, arrow_pos = ((each - cloud.center) / cloud.radius for each in (cloud.pos, cloud.arrow_pos))
    return replace(cloud, pos=pos, arrow_pos=arrow_pos)
