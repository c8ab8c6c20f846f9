"""Schemas of data sets and models come from signatures and type hints; docstrings only comment."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

import pytest
from pydantic.v1 import Field
from torch import nn

from dgl_orient.config import registry
from dgl_orient.config.recipe import RecipeError, check
from dgl_orient.config.sections import data_section, model_section

if TYPE_CHECKING:
    from nowhere import Nothing

TOP = Path(__file__).parents[2]


class Options(TypedDict, total=False):
    """Options of the encoder."""

    width: int
    norm: Literal["batch", "layer"]


class Model(nn.Module):
    """A model of a user.

    Parameters
    ----------
    widths : sequence of int
        Sizes of the :class:`~torch.nn.Linear` layers. More text.
    """

    def __init__(
        self,
        outputs: int,
        widths: Sequence[int] = (8, 8),
        sizes: Sequence[int | float] = (4, 0.5),
        pair: tuple[float, float] = (0.0, 1.0),
        rate: float | int = 0.5,
        mode: Literal["a", "b"] | None = None,
        flag: bool = False,
        where: str | Path = "x",
        encoder: Options | None = None,
        free: Mapping[str, object] | None = None,
        activation: Callable | None = None,
        unknown: Nothing = None,
        copy: int = 1,
        _hidden: int = 1,
        flavour="plain",
        depth: Annotated[int | None, Field(ge=1, lt=9)] = None,
        depths: Annotated[Sequence[int], Field(ge=1)] = (1,),
        num_points: Sequence[int] = (8,),
        callback: Callable[[int], int] | str = "none",
    ):
        super().__init__()


def checked(**arguments):
    model = {"name": "own", **arguments}
    return check({"pipeline_name": "pointcls", "data": {"name": "shapes"}, "model": model})["model"]


@pytest.fixture(autouse=True)
def registered(own_tables):
    registry.register_model("own", ["pointcls"])(Model)


@pytest.mark.parametrize(
    "arguments",
    [
        {"widths": [3], "sizes": [3, 0.25], "pair": [1, 2.5], "rate": 1},
        {"mode": "a", "flag": True, "where": "folder", "flavour": "other"},
        {"mode": None, "encoder": {"width": 3, "norm": "layer"}, "free": {"a": [1, {"b": None}]}},
        {"copy": 3, "_hidden": 2, "depth": 8, "depths": [0], "num_points": [10**9], "unknown": [1, "a"]},
    ],
)
def test_values_of_the_type_hints_pass_as_they_are(arguments):
    found = checked(**arguments)
    assert found == {"name": "own", **arguments}
    assert type(found.get("rate", 1)) is int and type(found.get("sizes", [1])[0]) is int


@pytest.mark.parametrize(
    "arguments, path, expected",
    [
        ({"widths": 8}, "widths", "a list"),
        ({"widths": [8, "8"]}, "widths[1]", "an integer"),
        ({"widths": [True]}, "widths[0]", "an integer"),
        ({"widths": [8.0]}, "widths[0]", "an integer"),
        ({"sizes": [4, "x"]}, "sizes[1]", "an integer or a number"),
        ({"sizes": [float("inf")]}, "sizes[0]", "finite"),
        ({"pair": [1]}, "pair", "a list of 2"),
        ({"rate": "0.5"}, "rate", "an integer or a number"),
        ({"rate": True}, "rate", "an integer or a number"),
        ({"mode": "c"}, "mode", "one of a, b"),
        ({"mode": ["a"]}, "mode", "a"),
        ({"flag": 1}, "flag", "true or false"),
        ({"where": 3}, "where", "a string"),
        ({"where": "a\nb"}, "where", "printable"),
        ({"encoder": {"width": "3"}}, "encoder.width", "an integer"),
        ({"encoder": {"widht": 3}}, "encoder.widht", "did you mean 'width'"),
        ({"encoder": {"norm": "lair"}}, "encoder.norm", "did you mean 'layer'"),
        ({"encoder": [3]}, "encoder", "a map"),
        ({"free": {"a": float("nan")}}, "free.a", "finite"),
        ({"free": [1]}, "free", "a map"),
        ({"activation": "exit"}, "activation", "there is no such key"),
        ({"unknown": {"a": Model}}, "unknown", "numbers, strings"),
        ({"flavour": 3}, "flavour", "a string"),
        ({"depth": 0}, "depth", "at least 1"),
        ({"depth": 9}, "depth", "less than 9"),
        ({"outputs": 3}, "outputs", "there is no such key"),
    ],
)
def test_other_values_are_refused_at_their_place(arguments, path, expected):
    with pytest.raises(RecipeError) as caught:
        checked(**arguments)
    (problem,) = caught.value.problems
    assert problem.startswith(f"model.{path}: ") and expected in problem


def test_null_of_an_option_is_its_default():
    assert checked(encoder={"width": None, "norm": "batch"})["encoder"] == {"norm": "batch"}


def test_rewording_a_docstring_changes_comments_only():
    reworded = type(
        "Model", (Model,), {"__doc__": "Parameters\n----------\nwidths : {'a'}\n    Other words."}
    )
    registry.register_model("reworded", ["pointcls"])(reworded)
    before, after = (model_section(name, "pointcls").fields() for name in ("own", "reworded"))
    assert before["widths"].field_info.description == "Sizes of the Linear layers."
    assert after["widths"].field_info.description == "Other words."
    for key in before.keys() - {"name"}:
        assert repr(before[key].outer_type_) == repr(after[key].outer_type_)
        assert before[key].default == after[key].default


def test_schemas_and_caches_are_the_same_without_docstrings():
    """``python -OO`` strips docstrings and assertions."""
    code = """
from dgl_orient.config import registry, sections
from dgl_orient.config.recipe import RecipeError, check
from dgl_orient.data import Shapes
from dgl_orient.train.settings import Settings
import tempfile
with tempfile.TemporaryDirectory() as folder:
    shapes = [Shapes("val", 16, 10, save_dir=folder) for _ in range(2)]
    print(len(shapes[1]), shapes[1].has_cache())
for name in registry.DATA:
    print({key: repr(field.outer_type_) for key, field in sections.data_section(name).fields().items()})
for name, entry in registry.MODELS.items():
    for pipeline in entry.pipelines:
        fields = sections.model_section(name, pipeline).fields()
        print({key: (repr(field.outer_type_), field.default) for key, field in fields.items()})
print({key: field.field_info.description for key, field in Settings.fields().items()})
model = {"name": "dgcnn", "k": "8", "widht": 3}
try:
    check({"pipeline_name": "pointcls", "data": {"name": "shape"}, "model": model})
except RecipeError as error:
    print(error)
"""
    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(code, {})
    environment = {**os.environ, "DGLBACKEND": "pytorch"}
    command = [sys.executable, "-OO", "-c", code]
    stripped = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=True)
    assert stripped.stdout == here.getvalue() and stripped.stdout.startswith("10 True\n")
    assert "model.k: expected an integer, got '8'." in stripped.stdout


@pytest.mark.parametrize("name", registry.DATA)
def test_data_names_lead_to_the_arguments_that_the_pipeline_does_not_give(name):
    arguments = data_section(name).fields()
    assert not set(arguments) & set(registry.GIVEN_TO_DATA)
    assert set(registry.DATA[name].per_split) <= set(arguments)


@pytest.mark.parametrize("name, pipeline", [(n, p) for n, e in registry.MODELS.items() for p in e.pipelines])
def test_model_names_lead_to_arguments_with_plain_types(name, pipeline):
    arguments = model_section(name, pipeline).fields()
    assert not set(arguments) & set(registry.GIVEN_TO_MODELS)
    assert all(not isinstance(field.default, (type, Callable)) for field in arguments.values())
