"""Our pipelines, data sets and networks in dglgo's factories, and the recipes that they write.

Importing this module registers them, so that dglgo's own functions know them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer
from dgl import DGLError

from .._validation import is_plain
from . import registry
from .apply_recipe import FILES, apply_arguments, apply_script, check_apply
from .factories import (
    MODEL_FACTORIES,
    ApplyPipelineFactory,
    DataFactory,
    PipelineBase,
    PipelineFactory,
    register_names,
)
from .names import PIPELINES, nearest
from .recipe import VERSION, check, settings_arguments
from .released import checkpoint_path
from .saying import say
from .yaml_comments import comments, defaults, write_yaml

__all__ = ["configure", "configure_apply"]

_DEVICE_COMMENT = "Torch device name, e.g., cpu or cuda or cuda:0"


class PointPipeline(PipelineBase):
    """What our four training pipelines have in common."""

    name: str

    def __init__(self) -> None:
        self.pipeline = {"name": self.name, "mode": "train"}

    def get_cfg_func(self):
        """The function that dglgo makes into the command ``configure``."""
        data_enum = DataFactory.filter(self.name).get_dataset_enum()
        model_enum = MODEL_FACTORIES[self.name].get_model_enum()

        def config(data, model, cfg=None):
            _say(configure(self.name, data.value, model.value, cfg))

        # In place of annotations in the signature, of which typer could not look up the enumerations.
        config.__annotations__ = {
            "data": Annotated[data_enum, typer.Option(help="input data name")],
            "model": Annotated[model_enum, typer.Option(help="Model name")],
            "cfg": Annotated[Optional[str], typer.Option(help="output configuration path")],  # noqa: UP045
        }
        return config

    @staticmethod
    def gen_script(user_cfg_dict: dict) -> str:
        """A training script for a recipe, once it is checked."""
        from .export import script_of

        return script_of(check(user_cfg_dict))

    @classmethod
    def get_description(cls) -> str:
        return PIPELINES[cls.name]


class PointApplyPipeline(PointPipeline):
    """What our four inference pipelines have in common."""

    def __init__(self) -> None:
        self.pipeline = {"name": self.name, "mode": "apply"}

    def get_cfg_func(self):
        def config(
            cpt: Annotated[str, typer.Option(help="input checkpoint file path")],
            data: Annotated[str, typer.Option(help="input data name")] = FILES,
            cfg: Annotated[Optional[str], typer.Option(help="output configuration file path")] = None,  # noqa: UP045
        ):
            _say(configure_apply(self.name, cpt, data, cfg))

        return config

    @staticmethod
    def gen_script(user_cfg_dict: dict) -> str:
        """A script that predicts files, once the recipe is checked."""
        return apply_script(check_apply(user_cfg_dict))


def configure(
    pipeline_name: str,
    data: str,
    model: str,
    cfg: str | Path | None = None,
    plugins: Sequence[str] = (),
) -> Path:
    """Write a recipe for training.

    Parameters
    ----------
    pipeline_name, data, model : str
        The names of one of our pipelines, of a data set and of a network for it.
    cfg : str or Path, optional
        The file; by default named after the three.
    plugins : sequence of str
        Modules that the recipe needs, imported already.

    Returns
    -------
    Path
        The file.
    """
    register_names()
    factory = MODEL_FACTORIES[pipeline_name]
    _check_name("data", data, DataFactory.filter(pipeline_name).registry, pipeline_name)
    _check_name("model", model, factory.registry, pipeline_name)
    of_data, of_settings = registry.data_arguments(data), settings_arguments(pipeline_name)
    settings = _default_settings(pipeline_name)
    recipe = {
        **_head(pipeline_name, "train", "cpu", plugins),
        "data": {"name": data} | defaults(of_data),
        "model": {"name": model} | factory.get_constructor_default_args(model),
        "general_pipeline": settings,
    }
    texts = {
        "device": _DEVICE_COMMENT,
        "data": comments(of_data, recipe["data"]),
        "model": factory.get_constructor_doc_dict(model),
        "general_pipeline": comments(of_settings, settings),
    }
    path = Path(cfg or f"{pipeline_name}_{data}_{model}.yaml")
    write_yaml(path, recipe, texts)
    return path


def configure_apply(
    pipeline_name: str, cpt: str | Path, data: str = FILES, cfg: str | Path | None = None
) -> Path:
    """Write a recipe for inference.

    Parameters
    ----------
    pipeline_name : str
        The name of one of our pipelines.
    cpt : str or Path
        The checkpoint of a training, or the name of a network that comes with this package.
    data : str
        ``"folder"`` for files, or the name of a data set. That of the training is taken with the arguments it
        had there.
    cfg : str or Path, optional
        The file; by default named after the pipeline and the network.

    Returns
    -------
    Path
        The file.
    """
    from ..train import checkpoint

    trained = checkpoint.load(checkpoint_path(cpt)).get("recipe")
    if not _is_recipe(trained):
        raise DGLError(f"{cpt} holds no recipe of ours; give a checkpoint of a training, such as run_0.pth.")
    if trained["pipeline_name"] != pipeline_name:
        raise DGLError(f"{cpt} is of the pipeline {trained['pipeline_name']!r}, not {pipeline_name!r}.")
    of_data, data_texts = _data_of_inference(pipeline_name, data, trained.get("data"))
    arguments = apply_arguments(data)
    recipe = {
        **_head(pipeline_name, "apply", trained.get("device", "cpu"), trained.get("plugins", ())),
        "data": {"name": data} | of_data,
        "cpt_path": str(cpt),
        "general_pipeline": defaults(arguments)
        | {"batch_size": trained["general_pipeline"].get("eval_batch_size", 32)},
    }
    texts = {
        "device": _DEVICE_COMMENT,
        "data": data_texts,
        "cpt_path": "Path to the checkpoint file, or the name of a network that comes with dgl-orient",
        "general_pipeline": comments(arguments, recipe["general_pipeline"]),
    }
    path = Path(cfg or f"apply_{pipeline_name}_{data}_{trained['model']['name']}.yaml")
    write_yaml(path, recipe, texts)
    return path


def _is_recipe(given: object) -> bool:
    """Whether a checkpoint's recipe has what is taken from it here; the rest is checked when it is used."""
    sections = ("model", "general_pipeline")
    if not isinstance(given, dict) or not all(isinstance(given.get(name), dict) for name in sections):
        return False
    name = given["model"].get("name")
    is_name = isinstance(name, str) and registry.NAME.fullmatch(name)
    if not is_plain(given) or not isinstance(given.get("plugins", []), list):
        return False
    return bool(is_name) and given.get("pipeline_name") in list(PIPELINES)


def _data_of_inference(
    pipeline_name: str, data: str, of_training: object
) -> tuple[dict[str, object], dict[str, object]]:
    """What a recipe for inference says of its data beside the name, and the comments."""
    if data == FILES:
        return {"raw_dir": None}, {"raw_dir": "A file or folder, or a list of them"}
    own = of_training if isinstance(of_training, dict) and of_training.get("name") == data else None
    known = registry.data_names(pipeline_name)
    if own is None:
        _check_name("data", data, [FILES, *(name for name in known if name != FILES)], pipeline_name)
    # A plugin's, which was not imported, is known only by what the training said.
    arguments = registry.data_arguments(data) if data in known else {}
    given = {} if own is None else {key: value for key, value in own.items() if key != "name"}
    values = {"split": "test"} | defaults(arguments) | given
    return values, {"split": "train, val or test"} | comments(arguments, values)


def _default_settings(pipeline_name: str) -> dict[str, object]:
    """The settings of a recipe that says nothing of them."""
    from ..train.settings import Settings

    known = settings_arguments(pipeline_name)
    return {name: value for name, value in Settings().as_dict().items() if name in known}


def _say(path: Path) -> None:
    say(f"Configuration file is generated at {path.absolute()}")


def _head(pipeline_name: str, mode: str, device: str, plugins: Sequence[str]) -> dict[str, object]:
    head = {"version": VERSION, "pipeline_name": pipeline_name, "pipeline_mode": mode, "device": device}
    return head | ({"plugins": list(plugins)} if plugins else {})


def _check_name(what: str, name: str, known: Iterable[str], pipeline_name: str) -> None:
    if name not in known:
        raise DGLError(f"--{what} {name!r} is not known for {pipeline_name}; {nearest(name, known)}")


def _register_pipelines() -> None:
    for name in PIPELINES:
        PipelineFactory.register(name)(type(f"Train_{name}", (PointPipeline,), {"name": name}))
        ApplyPipelineFactory.register(name)(type(f"Apply_{name}", (PointApplyPipeline,), {"name": name}))


register_names()
_register_pipelines()
