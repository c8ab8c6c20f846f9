"""dglgo's factories, with our data sets and networks registered beside its own."""

from __future__ import annotations

import importlib
import inspect
import sys

# ogb, which dglgo imports, asks PyPI for its newest version unless it cannot import this.
_known = "outdated" in sys.modules
sys.modules.setdefault("outdated", None)
for _name in ("pipeline", "apply_pipeline", "model"):  # they register dglgo's own
    importlib.import_module(f"dglgo.{_name}")
if not _known:
    del sys.modules["outdated"]

from dglgo.utils.factory import (  # noqa: E402
    ApplyPipelineFactory,
    DataFactory,
    ModelFactory,
    PipelineBase,
    PipelineFactory,
)

from ..config import registry  # noqa: E402
from ..config.arguments import REQUIRED  # noqa: E402
from ..config.names import PIPELINES  # noqa: E402
from .yaml_comments import blank_comments, comments, defaults  # noqa: E402

__all__ = [
    "MODEL_FACTORIES",
    "ApplyPipelineFactory",
    "DataFactory",
    "PipelineBase",
    "PipelineFactory",
    "PointModelFactory",
    "register_names",
]


class PointModelFactory(ModelFactory):
    """dglgo's factory of networks, for those of one of our pipelines.

    Parameters
    ----------
    pipeline_name : str
        The pipeline.
    """

    def __init__(self, pipeline_name: str) -> None:
        super().__init__()
        self.pipeline_name = pipeline_name

    def get_constructor_default_args(self, model_name: str) -> dict[str, object]:
        """What a recipe may say of a network, and the defaults; blank where a preset decides."""
        arguments = registry.model_arguments(model_name, self.pipeline_name)
        if "preset" in arguments:
            return dict.fromkeys(arguments) | {"preset": arguments["preset"].default}
        return defaults(arguments)

    def get_constructor_doc_dict(self, name: str) -> dict[str, str]:
        """The comment of each argument."""
        arguments = registry.model_arguments(name, self.pipeline_name)
        if "preset" not in arguments:
            return comments(arguments, defaults(arguments))
        blank = {key: each for key, each in arguments.items() if key != "preset"}
        texts = comments(arguments, dict.fromkeys(arguments))
        return texts | blank_comments(blank)


#: The networks of each of our pipelines, as dglgo has a factory of networks for nodes, edges and graphs.
MODEL_FACTORIES = {name: PointModelFactory(name) for name in PIPELINES}


def register_names() -> None:
    """Register all data sets and networks that are not in dglgo's factories yet, plugins' included."""
    for pipeline_name, factory in MODEL_FACTORIES.items():
        for name in registry.model_names(pipeline_name):
            if name not in factory.registry:
                _register_model(factory, name)
    for name in registry.data_names():
        if name not in DataFactory.registry:
            _register_data(name)


def _register_model(factory: PointModelFactory, name: str) -> None:
    cls = registry.model_class(name, factory.pipeline_name)
    try:
        inspect.getfile(cls)
    except (TypeError, OSError):  # defined where there is no file, of which dglgo would keep the text
        factory.registry[name], factory.code_registry[name] = cls, ""
        return
    factory.register(name)(cls)


def _register_data(name: str) -> None:
    cls = registry.data_class(name)
    arguments = registry.data_arguments(name)
    DataFactory.register(
        name,
        import_code=f"from {cls.__module__} import {cls.__name__}",
        class_name=cls.__name__ + "({})",
        allowed_pipeline=list(registry.data_entry(name).pipelines),
        extra_args={
            key: (str, ...) if each.default is REQUIRED else each.default for key, each in arguments.items()
        },
    )
