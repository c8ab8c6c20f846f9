"""Generated pages of the site: the recipes from the schema, the API from ``__all__``."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic.v1.fields import ModelField

from dgl_orient._schema import Schema
from dgl_orient.config import registry, schema
from dgl_orient.config.sections import data_section, model_section
from dgl_orient.train import settings

RECIPES = Path(__file__).parents[1] / "recipes"

#: The public modules, each with its own page.
MODULES = (
    "dgl_orient.nn",
    "dgl_orient.models",
    "dgl_orient.geometry",
    "dgl_orient.graph",
    "dgl_orient.data",
    "dgl_orient.train",
    "dgl_orient.metrics",
    "dgl_orient.plot",
    "dgl_orient.robust",
    "dgl_orient.sklearn",
    "dgl_orient.testing",
    "dgl_orient.weights",
    "dgl_orient.zoo",
    "dgl_orient.config.registry",
    "dgl_orient.config.plugins",
)
#: The modules of a package whose names are public, though the package does not have them.
PARTS = {
    "dgl_orient.nn": (
        "cell_conv",
        "edge_features",
        "input_features",
        "local_frames",
        "orientation_head",
        "pose_conv",
        "projection",
        "xconv",
    ),
    "dgl_orient.models": (
        "atom_orientation",
        "molecule_readout",
        "orientation_encoder",
        "particle_orientation",
        "tracing",
        "tensor_field",
        "upright",
    ),
    "dgl_orient.train": ("finetune", "part_loss", "settings"),
    "dgl_orient.zoo": (
        "any_clouds",
        "calibration",
        "novelty",
        "predictions",
        "pretrained",
        "trained_model",
    ),
}

#: Bounds of numbers in the schema, by pydantic's names.
_BOUNDS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))


def write(folder: Path) -> None:
    """Write all pages; those that have not changed keep their time, and are not built again."""
    pages = {"recipes": recipes_page(), "api": api_page()}
    pages |= {f"api_{_stem(name)}": module_page(name) for name in MODULES}
    folder.mkdir(exist_ok=True)
    for stale in {path.stem for path in folder.glob("*.md")} - set(pages):
        (folder / f"{stale}.md").unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def api_page() -> str:
    """All public modules, and what the top package re-exports."""
    import dgl_orient

    names = [name for name in dgl_orient.__all__ if not name.startswith("_")]
    exported = [name for name in names if not inspect.ismodule(getattr(dgl_orient, name))]
    lines = [
        "# API",
        "",
        "Every public name, from its docstring. `dgl_orient` itself has, of the modules below,",
    ]
    lines += [", ".join(f"`{name}`" for name in exported) + ".", "", "```{toctree}", ":maxdepth: 2", ""]
    lines += [f"api_{_stem(name)}" for name in MODULES]
    return "\n".join([*lines, "```", ""])


def module_page(name: str) -> str:
    """The names in the ``__all__`` of a module."""
    lines = [f"# {name}", "", "```{eval-rst}", f".. automodule:: {name}", "   :no-members:", ""]
    for where in (name, *(f"{name}.{part}" for part in PARTS.get(name, ()))):
        for public in _public_names(where):
            lines += [*_directive(where, public), ""]
    return "\n".join([*lines, "```", ""])


def _public_names(where: str) -> list[str]:
    module = import_module(where)
    return [name for name in getattr(module, "__all__", ()) if not inspect.ismodule(getattr(module, name))]


def _directive(where: str, name: str) -> list[str]:
    value = getattr(import_module(where), name)
    if inspect.isroutine(value):
        return [f".. autofunction:: {where}.{name}"]
    if not inspect.isclass(value):
        return [f".. py:data:: {where}.{name}", "", *(f"   {line}" for line in _about_constant(where, name))]
    lines = [f".. autoclass:: {where}.{name}", "   :show-inheritance:"]
    if issubclass(value, Schema):  # its fields are in the reference of recipes
        return lines
    # scikit-learn makes them of every estimator, with links into its own pages.
    made = [each for each in dir(value) if re.fullmatch(r"set_\w+_request", each)]
    return [*lines, "   :members:", *([f"   :exclude-members: {', '.join(made)}"] if made else [])]


def _about_constant(where: str, name: str) -> list[str]:
    """The comment that documents a constant, where it is assigned; the choices of a type."""
    assigned = re.compile(rf"((?:^#:.*\n)*)^{name}\b[^\n=]* = ", re.MULTILINE)
    below = [module for module in sorted(sys.modules) if f"{module}.".startswith(f"{where}.")]
    found = (assigned.search(inspect.getsource(sys.modules[module])) for module in below)
    comment = next((match[1] for match in found if match), "")
    value = getattr(import_module(where), name)
    if not comment and get_origin(value) is Literal:
        return [f"One of {', '.join(f'``{choice!r}``' for choice in get_args(value))}."]
    return [line.removeprefix("#:").strip() for line in comment.splitlines()]


def recipes_page() -> str:
    """What recipes may say, and those that are available."""
    lines = [
        "# Recipes reference",
        "",
        "All that a recipe may say, generated from the schema against which it is checked. The command "
        "`dgl-orient configure` writes a recipe with every setting; [recipes](../recipes.md) explains the "
        "commands.",
        "",
        "## Top level",
        "",
        *_table(schema.TrainingRecipe),
        "",
        "## general_pipeline",
        "",
        *_table(settings.Settings),
        "",
    ]
    choices = (settings.Adam, settings.AdamW, settings.SGD, settings.Cosine, settings.Step, settings.Plateau)
    for section in (*choices, settings.EarlyStop, settings.Augmentation):
        lines += [f"### {section.__name__}", "", section.__doc__.split("\n\n")[0], "", *_table(section), ""]
    lines += ["## data", ""]
    for name, entry in registry.DATA.items():
        lines += _section(name, entry.pipelines, registry.data_class(name), data_section(name))
    lines += ["## model", ""]
    for name, entry in registry.MODELS.items():
        by_class: dict[type, list[str]] = {}
        for pipeline in entry.pipelines:
            by_class.setdefault(registry.model_class(name, pipeline), []).append(pipeline)
        for cls, pipelines in by_class.items():
            title = name if len(by_class) == 1 else f"{name}, {cls.__name__}"
            lines += _section(title, pipelines, cls, model_section(name, pipelines[0]))
    lines += ["## Recipes for inference", "", "### Files", "", *_table(schema.FileInferenceSettings), ""]
    lines += ["### A data set", "", *_table(schema.InferenceSettings), ""]
    lines += ["## All recipes", "", "| recipe | data | model | epochs |", "|---|---|---|---|"]
    for path in sorted(RECIPES.glob("*.yaml")):
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
        names = [
            recipe["data"]["name"],
            recipe["model"]["name"],
            recipe["general_pipeline"].get("num_epochs", ""),
        ]
        lines.append(f"| `{path.name}` | {' | '.join(map(str, names))} |")
    return "\n".join([*lines, ""])


def _section(title: str, pipelines: Sequence[str], cls: type, section: type[Schema]) -> list[str]:
    described = f"{{py:class}}`{cls.__name__} <{_public_module(cls)}.{cls.__name__}>`"
    return [f"### {title}", "", f"{described}, for {', '.join(pipelines)}.", "", *_table(section), ""]


def _public_module(cls: type) -> str:
    return ".".join(cls.__module__.split(".")[:2])


def _table(section: type[Schema]) -> Iterator[str]:
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for key, field in section.fields().items():
        described = _cell(field.field_info.description or "")
        yield f"| `{key}` | {_cell(_type_of(field))} | {_cell(_default_of(field))} | {described} |"


def _type_of(field: ModelField) -> str:
    shown = str(field._type_display()) if field.outer_type_ is not Any else "any"
    shown = re.sub(r"\b(?:dgl_orient|pydantic|typing)[\w.]*\.", "", shown)
    for constrained, plain in (("ConstrainedIntValue", "int"), ("ConstrainedFloatValue", "float")):
        shown = shown.replace(constrained, plain)
    return shown + "".join(
        f", {sign} {getattr(field.type_, name):g}" for name, sign in _BOUNDS if _has(field, name)
    )


def _has(field: ModelField, bound: str) -> bool:
    return getattr(field.type_, bound, None) is not None


def _default_of(field: ModelField) -> str:
    if field.required:
        return "required"
    value = field.get_default()
    if isinstance(value, Schema):
        value = value.as_dict()
    if value == "not given":
        return ""
    return f"`{yaml.safe_dump(_plain(value), default_flow_style=True).split(chr(10))[0]}`"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, (list, tuple)) else value


def _cell(text: str) -> str:
    """In a table, without what Markdown would read as markup."""
    return text.replace("|", r"\|").replace("\n", " ").replace("<", "&lt;")


def _stem(name: str) -> str:
    return name.removeprefix("dgl_orient.").replace(".", "_")
