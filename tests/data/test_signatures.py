"""The annotations of the data sets' constructors, from which recipes are validated."""

import inspect
import typing

import pytest

from dgl_orient import data

DATASETS = [
    data.ChargedParticleFiles,
    data.ChargedParticles,
    data.FolderDataset,
    data.ModelNet10,
    data.ModelNet40,
    data.MoleculeFiles,
    data.QM9,
    data.ShapeNetPart,
    data.Shapes,
]


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_argument_has_a_resolvable_type_and_splits_are_choices(dataset):
    hints = typing.get_type_hints(dataset.__init__)
    names = [name for name in inspect.signature(dataset.__init__).parameters if name != "self"]
    assert set(names) <= set(hints) and hints["return"] is type(None)
    assert typing.get_origin(hints["split"]) is typing.Literal
    assert {"train", "val", "test"} <= set(typing.get_args(hints["split"]))


@pytest.mark.parametrize(
    "function", [data.read_cloud, data.write_cloud, data.protocol, data.read_molecules, data.simulate]
)
def test_public_functions_have_resolvable_types(function):
    assert set(inspect.signature(function).parameters) <= set(typing.get_type_hints(function))
