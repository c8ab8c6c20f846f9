"""Signatures: all public ones have type hints that can be resolved without source text or docstrings."""

import importlib
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterator

import pytest
from torch import nn

import dgl_orient
from dgl_orient import geometry, graph, metrics, models, testing
from dgl_orient import nn as layers
from dgl_orient.models.nbody import ParticleOrientationOptions
from dgl_orient.models.orientation_encoder import OrientationOptions
from dgl_orient.models.particle_orientation import ParticleOrientation

MODULES = (geometry, graph, metrics, models, layers, testing)
PUBLIC = {f"{module.__name__}.{name}": getattr(module, name) for module in MODULES for name in module.__all__}
FUNCTIONS = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}
CLASSES = {name: value for name, value in PUBLIC.items() if inspect.isclass(value)}
FUNCTIONS |= {
    f"{name}.{method}": value
    for name, cls in CLASSES.items()
    if issubclass(cls, nn.Module)
    for method, value in vars(cls).items()
    if inspect.isfunction(value) and (method == "__init__" or not method.startswith("_"))
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_parameters_of_public_functions_have_resolvable_type_hints(name):
    function = FUNCTIONS[name]
    hints = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.name != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    assert not [p.name for p in named if p.name not in hints]
    assert "return" in hints


def public_functions() -> Iterator[tuple[str, Callable]]:
    """The functions, and methods of the classes, that the modules of the package export."""
    for found in pkgutil.walk_packages(dgl_orient.__path__, "dgl_orient."):
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            members = vars(value) if inspect.isclass(value) else {"": value}
            for member, function in members.items():
                is_public = member == "__init__" or not member.startswith("_")
                if (
                    is_public
                    and inspect.isfunction(function)
                    and function.__module__.startswith("dgl_orient")
                ):
                    yield f"{found.name}.{name}.{member}", function


def test_no_public_signature_lacks_a_type_hint():
    functions, without = dict(public_functions()), []
    for name, function in functions.items():
        signature = inspect.signature(inspect.unwrap(function))
        named = [
            each
            for each in signature.parameters.values()
            if each.name not in ("self", "cls") and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]
        hints = [each.annotation for each in named] + [signature.return_annotation]
        without += [name] if inspect.Signature.empty in hints else []
    assert len(functions) > 500 and without == []


@pytest.mark.parametrize(
    "options, function, fixed, losses",
    [
        (
            OrientationOptions,
            layers.GlobalOrientation.__init__,
            {"num_orientations", "level_sizes", "k", "in_feats", "in_vectors"},
            {"agreement": float, "smoothness": float},
        ),
        (
            ParticleOrientationOptions,
            ParticleOrientation.__init__,
            {"num_orientations", "velocities", "in_feats", "in_vectors"},
            {},
        ),
    ],
)
def test_orientation_options_are_those_of_the_orientation_network(options, function, fixed, losses):
    hints = typing.get_type_hints(function)
    del hints["return"]
    assert typing.get_type_hints(options) == {k: v for k, v in hints.items() if k not in fixed} | losses


@pytest.mark.parametrize("name", [name for name in CLASSES if name.startswith("dgl_orient.nn.")])
def test_layers_print_their_sizes(name):
    assert "extra_repr" in vars(CLASSES[name])
