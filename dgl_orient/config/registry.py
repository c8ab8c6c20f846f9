"""From the names of a recipe to classes; and how to add names of one's own.

A network or data set of one's own is registered by a decorator. The module in which that happens is imported

- if its package names it as an entry point of the group ``dgl_orient.plugins``, or
- if a recipe names it under ``plugins`` and the command line says ``--allow-plugins``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from dgl import DGLError

from .._init_args import record_init_args
from . import names
from .arguments import Argument, arguments_of
from .names import DataName, ModelName

__all__ = [
    "NAME",
    "data_arguments",
    "data_class",
    "data_entry",
    "data_names",
    "following_options",
    "import_plugins",
    "import_plugins_of",
    "imported_plugins",
    "model_arguments",
    "model_class",
    "model_maker",
    "model_names",
    "model_pipelines",
    "register_data",
    "register_model",
]

_GROUP = "dgl_orient.plugins"
#: What a name may be; it may stand in that of a file.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")

_data: dict[str, DataName] = dict(names.DATA)
_models: dict[str, ModelName] = dict(names.MODELS)
_imported: set[str] = set()

_PRESET = Argument(
    "preset",
    str,
    "full",
    "full as published, or light, for small data and few cores; what is blank below is the preset's.",
    ("full", "light"),
)


def register_data(
    name: str, pipelines: Sequence[str], per_split: Sequence[str] = ()
) -> Callable[[type], type]:
    """Give a data set a name for recipes.

    Its constructor is like that of :class:`dgl_orient.data.Shapes`: it takes ``split``, ``transform`` and
    ``seed`` from the pipeline, and from the recipe whatever else its signature has.

    Parameters
    ----------
    name : str
        The name.
    pipelines : sequence of str
        For which of ``pointcls``, ``partseg``, ``normals`` and ``nbody`` it serves.
    per_split : sequence of str
        Arguments that a recipe may give for each split.

    Examples
    --------
    >>> from dgl_orient.data import Shapes
    >>> from dgl_orient.config.registry import data_class, register_data
    >>> @register_data("doctest-chairs", pipelines=["pointcls"])
    ... class Chairs(Shapes):
    ...     pass
    >>> data_class("doctest-chairs").__name__
    'Chairs'
    """

    def register(cls: type) -> type:
        _check(name, pipelines, cls, _data.get(name) and _data[name].where)
        _data[name] = DataName(cls, tuple(pipelines), tuple(per_split))
        return cls

    return register


def register_model(name: str, pipelines: Sequence[str]) -> Callable[[type], type]:
    """Give a network a name for recipes.

    Its first argument is the number of outputs, as that of :class:`dgl_orient.models.DGCNN`; for ``nbody``
    there is none. It is given a batch of clouds, for ``partseg`` also their categories ``(B,)``, and answers
    for ``pointcls`` with logits ``(B, outputs)``, for ``partseg`` with logits ``(N, outputs)``, for
    ``normals`` with vectors ``(N, 3)`` or ``(N, 1, 3)``, and for ``nbody`` with positions ``(N, 3)``. An
    argument ``num_categories`` (of ``partseg``) or ``out`` (of ``normals``, which is ``"vectors"``) is
    filled in if there is one. If it has a method ``light``, recipes can say ``preset``.

    Parameters
    ----------
    name : str
        The name.
    pipelines : sequence of str
        For which of ``pointcls``, ``partseg``, ``normals`` and ``nbody`` it serves.

    Examples
    --------
    >>> from dgl_orient.config.registry import model_class, register_model
    >>> from dgl_orient.models import DGCNN
    >>> @register_model("doctest-net", pipelines=["pointcls"])
    ... class Net(DGCNN):
    ...     pass
    >>> model_class("doctest-net", "pointcls").__name__
    'Net'
    """

    def register(cls: type) -> type:
        _check(name, pipelines, cls, None)
        where = dict(_models[name].where) if name in _models else {}
        for pipeline in pipelines:
            _check(name, pipelines, cls, where.get(pipeline))
            where[pipeline] = cls
        _models[name] = ModelName(where)
        return record_init_args(cls)

    return register


def _check(name: str, pipelines: Sequence[str], cls: type, before: str | type | None) -> None:
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        raise DGLError(f"Expected a name of letters, digits, -, _ and . to register, got {name!r}.")
    if not isinstance(cls, type):
        raise DGLError(f"Expected a class to register as {name!r}, got {cls!r}.")
    unknown = [each for each in pipelines if each not in names.PIPELINES]
    if unknown or isinstance(pipelines, str) or not pipelines:
        listed = ", ".join(names.PIPELINES)
        raise DGLError(f"Expected pipelines of {name!r} to be a list of some of {listed}, got {pipelines!r}.")
    # A module that is imported anew brings the same class again.
    if before is not None and _identity(before) != _identity(cls):
        raise DGLError(
            f"The name {name!r} is taken by {_identity(before)}; choose another for {cls.__name__}."
        )


def _identity(where: str | type) -> str:
    return where if isinstance(where, str) else f"{where.__module__}:{where.__qualname__}"


@cache
def _load_entry_points() -> None:
    """Import what installed packages bring; one that fails takes nothing from the others."""
    for point in importlib.metadata.entry_points(group=_GROUP):
        try:
            point.load()
        except Exception as error:  # whatever a stranger's module raises
            warnings.warn(
                f"The plugin {point.name!r} ({point.value}) cannot be loaded: {error}", stacklevel=2
            )


def import_plugins(modules: Iterable[str]) -> None:
    """Import the modules that a recipe names: only after the user has allowed it, for it runs their code.

    They are looked for as Python looks for modules, and in the current folder.

    Raises
    ------
    DGLError
        If one cannot be imported.
    """
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    for module in modules:
        if not (isinstance(module, str) and all(part.isidentifier() for part in module.split("."))):
            raise DGLError(
                f"Expected the name of a module in plugins, got {module!r}; write it as for import."
            )
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a stranger's module raises
            raise DGLError(
                f"The plugin {module} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        _imported.add(module)


def import_plugins_of(recipe: object) -> None:
    """Import the modules that a recipe names, if it is one that names some; the rest its check tells."""
    plugins = recipe.get("plugins") if isinstance(recipe, Mapping) else None
    if isinstance(plugins, list):
        import_plugins(plugins)


def imported_plugins() -> frozenset[str]:
    """The modules that :func:`import_plugins` has imported."""
    return frozenset(_imported)


def data_names(pipeline: str | None = None) -> list[str]:
    """The data sets of a pipeline, or all."""
    _load_entry_points()
    return [name for name, entry in _data.items() if pipeline is None or pipeline in entry.pipelines]


def model_names(pipeline: str | None = None) -> list[str]:
    """The networks of a pipeline, or all."""
    _load_entry_points()
    return [name for name, entry in _models.items() if pipeline is None or pipeline in entry.where]


def data_class(name: str) -> type:
    """The class of a data set."""
    return _resolve(data_entry(name).where)


def data_entry(name: str) -> DataName:
    """What is known of a data set without importing it."""
    _load_entry_points()
    return _data[name]


def model_class(name: str, pipeline: str) -> type:
    """The class of a network, which for one name may depend on the pipeline."""
    _load_entry_points()
    return _resolve(_models[name].where[pipeline])


def model_maker(section: Mapping[str, object], pipeline: str) -> Callable:
    """What makes the network that a recipe's ``model`` describes: its class, or its method for a preset."""
    cls = model_class(section["name"], pipeline)
    return cls.light if section.get("preset") == "light" else cls


def following_options(make: Callable, options: Mapping[str, object]) -> dict[str, object]:
    """Those of the arguments that follow from the task which the network takes: one of a user need not.

    Parameters
    ----------
    make : callable
        What makes the network. Its first argument is the number of outputs, whatever it is called.
    options : mapping
        The arguments.
    """
    takes = list(inspect.signature(make).parameters.values())[1:]
    if any(each.kind is each.VAR_KEYWORD for each in takes):
        return dict(options)
    taken = {each.name for each in takes}
    return {option: value for option, value in options.items() if option in taken}


def model_pipelines(name: str) -> tuple[str, ...]:
    """The pipelines for which a network serves."""
    return _models[name].pipelines


def data_arguments(name: str) -> dict[str, Argument]:
    """What a recipe may say under ``data``, beside the name."""
    return arguments_of(data_class(name), names.GIVEN_TO_DATA)


def model_arguments(name: str, pipeline: str) -> dict[str, Argument]:
    """What a recipe may say under ``model``, beside the name."""
    cls = model_class(name, pipeline)
    # A network of a user may call its number of outputs as it likes.
    outputs = () if pipeline == "nbody" else tuple(arguments_of(cls))[:1]
    found = arguments_of(cls, (*names.GIVEN_TO_MODELS, *outputs))
    for name, argument in found.items():
        if argument.nested:
            known = names.GIVEN_TO_ORIENTATION
            held = {key: each for key, each in argument.nested.items() if key not in known}
            found[name] = argument._replace(nested=held)
    return ({"preset": _PRESET} if hasattr(cls, "light") else {}) | found


def _resolve(where: str | type) -> type:
    if isinstance(where, type):
        return where
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module), name)
