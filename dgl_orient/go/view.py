"""The command ``dgl-orient view``. Annotations are evaluated, for typer reads them."""

from pathlib import Path
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

# The arguments that have an effect, by what is drawn; those of every kind are the last.
_CLOUD_ARGUMENTS = "source cpt arrows length level orientation show_global color poses points category"
_ARGUMENTS = {
    "a point cloud": f"{_CLOUD_ARGUMENTS} columns camera up seed",
    "the folder of a training": "source",
    "--quality": "quality cpt seed clouds",
}
_ALWAYS = "out allow_plugins quiet"

_CPT_HELP = f"checkpoint or pretrained model: {', '.join(pretrained_models())}; default: an untrained network"
OptionalStr = str | None


def view(
    ctx: typer.Context,
    source: Annotated[OptionalStr, typer.Argument(help="File of a point cloud, or folder of a run")] = None,
    cpt: Annotated[OptionalStr, typer.Option(help=_CPT_HELP)] = None,
    out: Annotated[OptionalStr, typer.Option(help="picture .png .pdf .svg, or page .html")] = None,
    arrows: Annotated[int, typer.Option(min=0, help="number of points with arrows")] = 150,
    length: Annotated[float, typer.Option(help="of arrows, as a fraction of the cloud's radius")] = 0.14,
    level: Annotated[str, typer.Option(help="levels of the hierarchy, such as 0,2, or all")] = "0",
    orientation: Annotated[str, typer.Option(help="which of several, such as 0,1, or all")] = "0",
    show_global: Annotated[bool, typer.Option("--global", help="Show the whole cloud's orientation")] = False,
    color: Annotated[OptionalStr, typer.Option(help="class, part, error, normal or distance")] = None,
    poses: Annotated[int, typer.Option(min=1, help="number of random poses, at most 16")] = 1,
    points: Annotated[int | None, typer.Option(min=1, help="number of points to sample")] = None,
    category: Annotated[OptionalStr, typer.Option(help="category of the file, for partseg")] = None,
    columns: Annotated[OptionalStr, typer.Option(help=COLUMNS_HELP)] = None,
    camera: Annotated[tuple[float, float], typer.Option(help="elevation and azimuth, degrees")] = (20, 35),
    up: Annotated[OptionalStr, typer.Option(help="vertical axis: x, y or z")] = None,
    seed: Annotated[int, typer.Option(help="of points, poses and an untrained network")] = 0,
    quality: Annotated[bool, typer.Option("--quality", help="Measure the orientations' quality")] = False,
    clouds: Annotated[int, typer.Option(min=1, help="test clouds to measure on, with --quality")] = 20,
    allow_plugins: Annotated[
        bool, typer.Option("--allow-plugins", help="Run the modules that the recipe names")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors")] = False,
) -> None:
    """Draw orientations, or the results of a training"""
    kind = _kind(source, cpt, quality)
    _check_arguments(ctx, kind)
    from ..plot import Camera, PlotOptions
    from .view_cloud import view_cloud
    from .view_run import view_quality, view_run

    if kind == "a point cloud":
        options = PlotOptions(
            color=color,
            num_arrows=arrows,
            arrow_length=length,
            show_global=show_global,
            camera=Camera(*camera, up=up or "z"),
        )
        chosen = dict(levels=level, orientations=orientation, num_poses=poses, num_points=points)
        chosen |= dict(category=category, columns=column_numbers(columns), seed=seed)
        chosen["allow_plugins"] = allow_plugins
        written = [view_cloud(source, cpt, out, options, use_gravity=up is None, **chosen)]
    elif kind == "--quality":
        written = view_quality(cpt, out, clouds, seed, not quiet, allow_plugins)
    else:
        written = [view_run(source, out, not quiet, allow_plugins)]
    if not quiet:
        echo("\n".join(f"Written to {path}" for path in written))


def _kind(source: OptionalStr, checkpoint: OptionalStr, quality: bool) -> str:
    from dgl import DGLError

    if quality:
        if checkpoint is None:
            raise DGLError("Name the network to measure: --quality --cpt FILE.")
        return "--quality"
    if source is None:
        raise DGLError(
            "Name the file of a point cloud or the folder of a training, or use --quality --cpt FILE."
        )
    return "the folder of a training" if Path(source).is_dir() else "a point cloud"


def _check_arguments(ctx: typer.Context, kind: str) -> None:
    """Refuse arguments that would be without effect."""
    from dgl import DGLError

    known = f"{_ARGUMENTS[kind]} {_ALWAYS}".split()
    given = [name for name in ctx.params if ctx.get_parameter_source(name).name == "COMMANDLINE"]
    extra = [name.replace("_", "-") for name in given if name not in known]
    if extra:
        raise DGLError(f"These have no effect for {kind}, leave them out: {', '.join(extra)}.")
