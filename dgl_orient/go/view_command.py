"""The arguments of the command ``dgl-orient view``. Annotations are evaluated, for typer reads them."""

from typing import Annotated

import typer

from ..zoo.catalog import pretrained_models
from .console import COLUMNS_HELP, column_numbers, echo

__all__ = ["EXAMPLES", "view"]

EXAMPLES = (
    "view mug.ply --cpt results/run_0.pth --out mug.png --poses 4",
    "view mug.ply --cpt results/run_0.pth --out mug.html",
    "view results --out training.pdf",
    "view --quality --cpt results/run_0.pth --out quality.png",
)

Text = str | None
_CPT_HELP = (
    f"checkpoint file, or the name of a pretrained model: {', '.join(pretrained_models())}; without it an "
    f"untrained network"
)


def view(
    ctx: typer.Context,
    source: Annotated[Text, typer.Argument(help="A cloud's file, or a training's folder")] = None,
    cpt: Annotated[Text, typer.Option(help=_CPT_HELP)] = None,
    out: Annotated[Text, typer.Option(help="picture .png .pdf .svg, or interactive page .html")] = None,
    arrows: Annotated[int, typer.Option(min=0, help="how many points have arrows")] = 150,
    length: Annotated[float, typer.Option(help="of arrows, as a share of the cloud's radius")] = 0.14,
    level: Annotated[str, typer.Option(help="levels of the hierarchy, such as 0,2, or all")] = "0",
    orientation: Annotated[str, typer.Option(help="which of several, such as 0,1, or all")] = "0",
    show_global: Annotated[bool, typer.Option("--global", help="Show the whole cloud's orientation")] = False,
    color: Annotated[Text, typer.Option(help="class, part, error, normal or distance")] = None,
    poses: Annotated[
        int, typer.Option(min=1, help="show it in so many poses, at most 16, and turned back")
    ] = 1,
    points: Annotated[int | None, typer.Option(min=1, help="how many points to take of the file")] = None,
    category: Annotated[Text, typer.Option(help="category of the file, for partseg")] = None,
    columns: Annotated[Text, typer.Option(help=COLUMNS_HELP)] = None,
    camera: Annotated[tuple[float, float], typer.Option(help="elevation and azimuth, degrees")] = (20, 35),
    up: Annotated[Text, typer.Option(help="vertical axis: x, y or z")] = None,
    seed: Annotated[int, typer.Option(help="of points, poses and a fresh network")] = 0,
    quality: Annotated[bool, typer.Option("--quality", help="Measure the orientations' quality")] = False,
    clouds: Annotated[int, typer.Option(min=1, help="test clouds to measure on, with --quality")] = 20,
    allow_plugins: Annotated[
        bool, typer.Option("--allow-plugins", help="Run the modules that the recipe names")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors")] = False,
) -> None:
    """Draw orientations, or how a training went"""
    from .view import CloudOptions
    from .view import view as draw

    given = [name for name in ctx.params if ctx.get_parameter_source(name).name == "COMMANDLINE"]
    options = CloudOptions(
        num_arrows=arrows,
        arrow_length=length,
        level=level,
        orientation=orientation,
        show_global=show_global,
        color=color,
        num_poses=poses,
        points=points,
        category=category,
        camera=camera,
        up=up,
        seed=seed,
        columns=column_numbers(columns),
    )
    written = draw(source, cpt, out, options, quality, clouds, allow_plugins, not quiet, given)
    if not quiet:
        echo("\n".join(f"Written to {path}" for path in written))
