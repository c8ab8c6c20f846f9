"""Plugins: modules of users that register data sets and models.

Such a module is imported

- if its package names it as an entry point of the group ``dgl_orient.plugins``, or
- if a recipe names it under ``plugins`` and the command line says ``--allow-plugins``.

Importing this module does not import torch.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NoReturn

__all__ = ["import_plugins", "import_plugins_of", "imported_plugins"]

_GROUP = "dgl_orient.plugins"
_imported: set[str] = set()


@cache
def load_entry_points() -> None:
    """Import the plugins of installed packages; one that fails does not affect the others."""
    from importlib.metadata import entry_points  # a third of the time that --help takes

    for point in entry_points(group=_GROUP):
        try:
            point.load()
        except Exception as error:  # whatever a stranger's module raises
            warnings.warn(
                f"The plugin {point.name!r} ({point.value}) cannot be loaded: {error}", stacklevel=2
            )


def import_plugins(modules: Iterable[str]) -> None:
    """Import the modules that a recipe names: only after the user has allowed it, for it runs their code.

    They are searched for on Python's path and in the current folder.

    Raises
    ------
    DGLError
        If one cannot be imported.
    """
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())
    for module in modules:
        if not (isinstance(module, str) and all(part.isidentifier() for part in module.split("."))):
            refuse(f"Expected the name of a module in plugins, got {module!r}; write it as for import.")
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a stranger's module raises
            refuse(f"The plugin {module} cannot be imported: {type(error).__name__}: {error}", error)
        _imported.add(module)


def import_plugins_of(recipe: object) -> None:
    """Import the modules that a recipe names; whether they are names is left to its check."""
    plugins = recipe.get("plugins") if isinstance(recipe, Mapping) else None
    if isinstance(plugins, list):
        import_plugins(plugins)


def imported_plugins() -> frozenset[str]:
    """The modules that :func:`import_plugins` has imported."""
    return frozenset(_imported)


def refuse(sentence: str, cause: Exception | None = None) -> NoReturn:
    """Raise a :class:`dgl.DGLError`."""
    from dgl import DGLError  # which imports torch

    raise DGLError(sentence) from cause
