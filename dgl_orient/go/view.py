"""The command ``dgl-orient view``. Annotations are evaluated, for typer reads them."""

from pathlib import Path
from typing import Annotated

import typer

from .._training_folders import newest_training
from ..weights import DEFAULT, pretrained_models
from .console import COLUMNS_HELP, OptionalStr, Plugins, Quiet, column_numbers, echo

__all__ = ["EXAMPLES", "view"]

EXAMPLES = (
    "view mug.ply",
    "view scans --out gallery.html",
    "view mug.ply --cpt results --out mug.pdf --poses 4",
    "view results --out training.pdf",
    "view --quality --cpt results --out quality.png",
)

# The arguments that have an effect, by what is drawn; those of every kind are the last.
_FOLDER_ARGUMENTS = "source cpt arrows length show_global color points category columns camera up seed"
_ARGUMENTS = {
    "a point cloud": f"{_FOLDER_ARGUMENTS} level orientation poses",
    "a folder of point clouds": _FOLDER_ARGUMENTS,
    "the folder of a training": "source",
    "--quality": "quality cpt seed clouds",
}
_ALWAYS = "out allow_plugins quiet"

_CPT_HELP = (
    f"checkpoint, pretrained model ({', '.join(pretrained_models())}) or untrained; default: {DEFAULT}"
)


def view(
    ctx: typer.Context,
    source: Annotated[
        OptionalStr, typer.Argument(help="File of a point cloud, folder of such files, or of a run")
    ] = None,
    cpt: Annotated[OptionalStr, typer.Option(help=_CPT_HELP)] = None,
    out: Annotated[OptionalStr, typer.Option(help="picture .png .pdf .svg, or page .html")] = None,
    arrows: Annotated[int, typer.Option(min=0, help="number of points with arrows")] = 40,
    length: Annotated[float, typer.Option(help="of arrows, as a fraction of the cloud's radius")] = 0.16,
    level: Annotated[str, typer.Option(help="levels of the hierarchy, such as 0,2, or all")] = "0",
    orientation: Annotated[str, typer.Option(help="which of several, such as 0,1, or all")] = "0",
    show_global: Annotated[bool, typer.Option("--global", help="Show the whole cloud's orientation")] = False,
    color: Annotated[OptionalStr, typer.Option(help="plain, color, part, error, normal or distance")] = None,
    poses: Annotated[int, typer.Option(min=1, help="number of random poses, at most 16")] = 1,
    points: Annotated[int | None, typer.Option(min=1, help="number of points to draw, at most")] = None,
    category: Annotated[OptionalStr, typer.Option(help="category of the file, for partseg")] = None,
    columns: Annotated[OptionalStr, typer.Option(help=COLUMNS_HELP)] = None,
    camera: Annotated[tuple[float, float], typer.Option(help="elevation and azimuth, degrees")] = (20, 35),
    up: Annotated[
        OptionalStr,
        typer.Option(help="vertical axis: x, y or z; default: of the format or the training data"),
    ] = None,
    seed: Annotated[int, typer.Option(help="of points, poses and an untrained network")] = 0,
    quality: Annotated[bool, typer.Option("--quality", help="Measure the orientations' quality")] = False,
    clouds: Annotated[int, typer.Option(min=1, help="test clouds to measure on, with --quality")] = 20,
    allow_plugins: Plugins = False,
    quiet: Quiet = False,
) -> None:
    """Draw orientations, or the results of a training"""
    kind = _kind(source, cpt, quality)
    _check_arguments(ctx, kind)
    from ..plot import Camera, PlotOptions
    from .view_cloud import view_cloud, view_folder
    from .view_run import view_quality, view_run

    if "point cloud" in kind:
        options = PlotOptions(
            color=color,
            num_arrows=arrows,
            arrow_length=length,
            show_global=show_global,
            camera=Camera(*camera, up=up or "z"),
        )
        chosen = dict(num_points=points, category=category, columns=column_numbers(columns), seed=seed)
        chosen |= dict(is_upright=up is None, allow_plugins=allow_plugins)
        if kind == "a point cloud":
            chosen |= dict(levels=level, orientations=orientation, num_poses=poses)
            written = [view_cloud(source, cpt, out, options, **chosen)]
        else:
            written = [view_folder(source, cpt, out, options, progress=not quiet, **chosen)]
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
            "Name the file of a point cloud, a folder of such files or the folder of a training, or use "
            "--quality --cpt FILE."
        )
    if not Path(source).is_dir():
        return "a point cloud"
    is_run = any(newest_training(Path(source)).glob("run_*")) or not any(Path(source).iterdir())
    return "the folder of a training" if is_run else "a folder of point clouds"


def _check_arguments(ctx: typer.Context, kind: str) -> None:
    """Refuse arguments that would be without effect."""
    from dgl import DGLError

    known = f"{_ARGUMENTS[kind]} {_ALWAYS}".split()
    given = [name for name in ctx.params if ctx.get_parameter_source(name).name == "COMMANDLINE"]
    extra = [name.replace("_", "-") for name in given if name not in known]
    if extra:
        raise DGLError(f"These have no effect for {kind}, leave them out: {', '.join(extra)}.")
