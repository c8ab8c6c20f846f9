"""The command line ``dgl-orient``: dglgo's commands and flags, for our pipelines and for dglgo's own.

Nothing here imports torch until a command has work to do. Annotations are evaluated, for typer reads them.
"""

import gc
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from .._extras import to_install
from ..config import registry
from ..weights import DEFAULT, DEFAULT_PARTS, DEFAULT_UPRIGHT, pretrained_models
from . import recipes, view
from .console import (
    COLUMNS_HELP,
    OptionalStr,
    Plugins,
    Quiet,
    column_numbers,
    echo,
    echo_configured,
    echo_error,
)
from .environment import is_main_process

__all__ = ["app", "run"]

# Its errors and help are plain: no colours or boxes in a log file.
_PLAIN = dict(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


def _examples(*commands: str) -> str:
    """Examples at the end of a help page; the mark keeps their lines apart."""
    return "\n".join(["\b", "Examples:", *(f"  dgl-orient {command}" for command in commands)])


app = typer.Typer(
    **_PLAIN,
    pretty_exceptions_enable=False,
    help="Predict point clouds in any pose, and train rotation-equivariant networks from recipes, with the "
    "commands of dglgo.",
    epilog=_examples(
        "apply chair.ply",
        "configure pointcls --data shapes --model oriented-dgcnn --cfg cfg.yaml",
        "train --cfg cfg.yaml",
        "apply --cpt results scans --out predictions",
    ),
)
configure_app = typer.Typer(**_PLAIN, help="Generate a configuration file")
configure_apply_app = typer.Typer(**_PLAIN, help="Generate a configuration file for inference")
recipe_app = typer.Typer(**_PLAIN, help="Get example recipes")
app.add_typer(configure_app, name="configure")
app.add_typer(configure_apply_app, name="configure-apply")
app.add_typer(recipe_app, name="recipe")

_CHECKPOINT = f"checkpoint, folder of a training, or pretrained model: {', '.join(pretrained_models())}"
_APPLIED = f"{_CHECKPOINT}; not given, {DEFAULT}, or {DEFAULT_PARTS} with --category"

_SIZE = "small, for few files and cores, or full, as published; not given, small for folder and else full"

_OUT = "folder of the predictions; not given, a new one: apply_results, apply_results_2, …"
_CATEGORY = "of all files, for partseg; not given, the folder's name or what the pretrained classifier says"


class UserError(Exception):
    """A sentence for the user."""


def _print_version(asked: bool) -> None:
    if asked:
        from .. import __version__

        echo(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version")
    ] = False,
) -> None:
    """Options that need no command."""


@app.command(epilog=_examples("train --cfg cfg.yaml", "train --cfg cfg.yaml --resume"))
def train(
    cfg: Annotated[str, typer.Option(help="config yaml file name")] = "cfg.yaml",
    resume: Annotated[bool, typer.Option("--resume", help="Continue the last training")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out files that cannot be read")] = False,
    allow_plugins: Plugins = False,
    quiet: Quiet = False,
) -> None:
    """Launch training"""
    from . import commands

    commands.train(cfg, resume, skip_bad, allow_plugins, progress=not quiet)


@app.command(
    epilog=_examples(
        "apply chair.ply",
        "apply --cpt results scans mug.ply --out predictions",
        "apply --category chair scan.ply",
        "apply --upright scan.ply",
        "apply table.csv --columns x,y,z --votes 8",
        "apply --cfg apply.yaml",
    )
)
def apply(
    ctx: typer.Context,
    inputs: Annotated[list[str] | None, typer.Argument(help="Files and folders, without --cfg")] = None,
    cfg: Annotated[OptionalStr, typer.Option(help="config yaml file name")] = None,
    cpt: Annotated[OptionalStr, typer.Option(help=_APPLIED)] = None,
    out: Annotated[OptionalStr, typer.Option(help=_OUT)] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace results that exist")] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:0")] = "cpu",
    batch_size: Annotated[int, typer.Option(min=1, help="clouds predicted at once")] = 32,
    file_format: Annotated[
        OptionalStr, typer.Option("--format", help="of clouds to write: ply or npz")
    ] = None,
    category: Annotated[OptionalStr, typer.Option(help=_CATEGORY)] = None,
    upright: Annotated[bool, typer.Option("--upright", help="Write the clouds set upright, z up")] = False,
    columns: Annotated[OptionalStr, typer.Option(help=COLUMNS_HELP)] = None,
    seed: Annotated[int, typer.Option(help="of the points sampled from a file")] = 0,
    votes: Annotated[int, typer.Option(min=1, help="samples of a cloud to average over, for classes")] = 1,
    keep_outliers: Annotated[
        bool, typer.Option("--keep-outliers", help="Do not remove points that are far from all others")
    ] = False,
    no_unknown: Annotated[
        bool, typer.Option("--no-unknown", help="Name the nearest class of clouds unlike the training data")
    ] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out files that cannot be read")] = False,
    allow_plugins: Plugins = False,
    quiet: Quiet = False,
) -> None:
    """Launch inference on files, or by a recipe"""
    if cfg is not None:
        _check_only_cfg(ctx)
    elif not inputs:
        raise UserError("Name files or folders to predict, or give --cfg FILE.")
    elif upright and (cpt, category) != (None, None):
        raise UserError("--upright names a network itself; leave it out, or --cpt and --category.")
    elif cpt is None:
        cpt = DEFAULT_UPRIGHT if upright else DEFAULT if category is None else DEFAULT_PARTS
        if not quiet:
            flag = "--cpt in its place" if upright else "--cpt"
            echo(f"Predicting with the pretrained model {cpt}; {flag} names another.")
    from . import commands

    if cfg is not None:
        applied = commands.apply_recipe(cfg, allow_plugins, progress=not quiet)
    else:
        options = dict(batch_size=batch_size, file_format=file_format, category=category)
        options |= dict(columns=column_numbers(columns), seed=seed, votes=votes, skip_bad=skip_bad)
        options |= dict(remove_outliers=not keep_outliers, allow_unknown=not no_unknown, overwrite=overwrite)
        applied = commands.apply_files(cpt, inputs, out, device, allow_plugins, not quiet, **options)
    if applied is not None and not quiet:
        from .report import print_report

        print_report(applied)


def _check_only_cfg(ctx: typer.Context) -> None:
    """Refuse flags that a recipe would leave without effect."""
    kept = ("cfg", "allow_plugins", "quiet")
    given = [name for name in ctx.params if ctx.get_parameter_source(name).name == "COMMANDLINE"]
    extra = [name for name in given if name not in kept]
    if extra:
        flags = ", ".join(name.replace("_", "-") for name in extra)
        raise UserError(f"With --cfg the recipe says {flags}; write it there.")


app.command(epilog=_examples(*view.EXAMPLES))(view.view)


@app.command(epilog=_examples("export --cfg cfg.yaml --output script.py"))
def export(
    cfg: Annotated[str, typer.Option(help="config yaml file name")] = "cfg.yaml",
    output: Annotated[str, typer.Option(help="output python file name")] = "script.py",
    allow_plugins: Plugins = False,
) -> None:
    """Export a runnable python script"""
    from . import commands

    commands.export(cfg, output, allow_plugins)
    echo(f"The python script is generated at {Path(output).absolute()}, based on {Path(cfg).absolute()}")


@recipe_app.command("list", epilog=_examples("recipe list"))
def list_recipes() -> None:
    """List all available example recipes"""
    echo(recipes.recipe_table())


@recipe_app.command("get", epilog=_examples("recipe get nodepred_cora_gcn.yaml"))
def get_recipe(
    recipe_name: Annotated[OptionalStr, typer.Argument(help="The recipe's filename; none lists all")] = None,
) -> None:
    """Copy the recipe to current directory"""
    if recipe_name is None:
        echo(recipes.recipe_table())
        return
    try:
        echo(f"Recipe is copied to {recipes.copy_recipe(recipe_name, Path.cwd())}")
    except ValueError as error:
        raise UserError(str(error)) from error


def _add_configure(pipeline: str) -> None:
    data = [name for name, entry in registry.DATA.items() if pipeline in entry.pipelines]
    sets = ", ".join(name for name in data if name != "folder")
    models = [name for name, entry in registry.MODELS.items() if pipeline in entry.pipelines]

    @configure_app.command(
        pipeline,
        help=registry.PIPELINES[pipeline],
        epilog=_examples(f"configure {pipeline} --data {data[0]} --model {models[0]}"),
    )
    def configure(
        data: Annotated[str, typer.Option(help=f"input data name: {', '.join(data)}")],
        model: Annotated[OptionalStr, typer.Option(help=f"model name: {', '.join(models)}")] = None,
        size: Annotated[OptionalStr, typer.Option(help=_SIZE)] = None,
        init_from: Annotated[OptionalStr, typer.Option(help=f"fine-tune: {_CHECKPOINT}")] = None,
        cfg: Annotated[OptionalStr, typer.Option(help="output configuration path")] = None,
        plugins: Annotated[
            list[str] | None,
            typer.Option("--plugin", help="module to import, that registers data or models"),
        ] = None,
    ) -> None:
        from . import commands

        if (model is None) == (init_from is None):
            raise UserError("Name the network in --model, or the one to fine-tune in --init-from.")
        path = commands.configure(pipeline, data, model, cfg, plugins or [], size=size, init_from=init_from)
        echo_configured(path)

    @configure_apply_app.command(
        pipeline,
        help=registry.PIPELINES[pipeline],
        epilog=_examples(f"configure-apply {pipeline} --cpt results --cfg apply.yaml"),
    )
    def configure_apply(
        cpt: Annotated[str, typer.Option(help=f"input {_CHECKPOINT}")],
        data: Annotated[str, typer.Option(help=f"folder for your files, or a data set: {sets}")] = "folder",
        cfg: Annotated[OptionalStr, typer.Option(help="output configuration file path")] = None,
        allow_plugins: Plugins = False,
    ) -> None:
        from . import commands

        path = commands.configure_apply(pipeline, cpt, data, cfg, allow_plugins)
        echo_configured(path)


def _add_dglgo(group: typer.Typer, pipeline: str, command: str) -> None:
    """A command of dglgo, which is imported only when it is called."""
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @group.command(
        pipeline,
        help=registry.DGLGO_PIPELINES[pipeline],
        add_help_option=False,
        context_settings=anything,
    )
    def run_dglgo(ctx: typer.Context) -> None:
        from .dglgo_bridge import run_dglgo_command

        run_dglgo_command(command, pipeline, ctx.args, ctx.command_path)


for _pipeline in registry.PIPELINES:
    _add_configure(_pipeline)
for _pipeline in registry.DGLGO_PIPELINES:
    _add_dglgo(configure_app, _pipeline, "configure")
for _pipeline in registry.DGLGO_APPLY:
    _add_dglgo(configure_apply_app, _pipeline, "configure-apply")


def run(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Those of the command; by default the process's.

    Returns
    -------
    int
        The exit code: 0, 2 for an error that a user can fix, 130 after Ctrl-C. Anything else is raised.
    """
    if "WORLD_SIZE" in os.environ:
        # torchrun ends the other processes by this signal when one has died.
        signal.signal(signal.SIGTERM, _end)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return app(arguments, prog_name="dgl-orient", standalone_mode=False) or 0
    except (KeyboardInterrupt, typer.Abort):
        echo_error("Stopped.")
        return 130
    except BrokenPipeError:  # the reader of the output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # a flag that typer refuses
            if is_main_process():
                error.show()
            return error.exit_code
        sentence = _sentence(error)
        if sentence is None:
            raise
        echo_error(sentence)
        return 2
    finally:
        if "WORLD_SIZE" in os.environ:
            # Networks in reference cycles hold the group of processes, whose threads may crash an
            # interpreter that ends before them.
            gc.collect()


def _show_warning(message: Warning | str, *_: object) -> None:
    """Print a warning without the line of code that Python would show."""
    if is_main_process():
        echo_error(f"Warning: {message}")


def _end(number: int, frame: object) -> None:
    echo_error("Ended by a signal to terminate, which torchrun sends when another process has ended.")
    raise SystemExit(128 + number)


def _sentence(error: Exception) -> str | None:
    """The message of an error that a user can fix; None for a bug."""
    dgl = sys.modules.get("dgl")
    if isinstance(error, UserError):
        return str(error)
    if dgl is not None and isinstance(error, dgl.DGLError):
        return str(error)
    if isinstance(error, ModuleNotFoundError) and error.name in ("dglgo", "ruamel", "ruamel.yaml", "jinja2"):
        return f"This needs {error.name}; {to_install('recipes')}."
    if isinstance(error, OSError) and error.strerror:
        return f"Cannot use {error.filename or 'a file'}: {error.strerror.lower()}."
    if isinstance(error, OSError):  # of the network, such as a download of dglgo's
        return f"Cannot go on: {(str(error) or type(error).__name__).splitlines()[0].rstrip('.')}."
    if isinstance(error, MemoryError):
        return "Out of memory; use fewer or smaller clouds, or a smaller batch size."
    return None
