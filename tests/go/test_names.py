"""The table of names agrees with the classes, with dglgo and with itself."""

import pytest

from dgl_orient.config import names, registry
from dgl_orient.config.names import nearest
from dgl_orient.data import PointCloudDataset


def test_names_are_those_that_users_are_promised():
    assert list(names.PIPELINES) == ["pointcls", "partseg", "normals", "nbody"]
    assert set(names.DATA) == {"shapes", "modelnet40", "modelnet10", "shapenetpart", "charged", "folder"}
    models = "oriented-dgcnn oriented-rscnn dgcnn rscnn oriented-nbody egnn gnn linear"
    assert set(names.MODELS) == set(models.split())


@pytest.mark.parametrize("name", names.DATA)
def test_data_names_lead_to_data_sets_with_the_arguments_that_the_pipeline_gives(name):
    assert issubclass(registry.data_class(name), PointCloudDataset)
    arguments = registry.data_arguments(name)
    assert not set(arguments) & set(names.GIVEN_TO_DATA)
    assert set(names.DATA[name].per_split) <= set(arguments)
    assert all(argument.help for argument in arguments.values()), "each is explained by a docstring"


@pytest.mark.parametrize("name, pipeline", [(n, p) for n, e in names.MODELS.items() for p in e.pipelines])
def test_model_names_lead_to_networks_whose_arguments_are_explained(name, pipeline):
    arguments = registry.model_arguments(name, pipeline)
    assert not set(arguments) & set(names.GIVEN_TO_MODELS)
    assert all(argument.help for argument in arguments.values())


def test_dglgo_has_the_pipelines_that_the_table_says():
    from dgl_orient.go.factories import ApplyPipelineFactory, PipelineFactory

    assert set(PipelineFactory.registry) - set(names.PIPELINES) == set(names.DGLGO_PIPELINES)
    assert set(ApplyPipelineFactory.registry) - set(names.PIPELINES) == set(names.DGLGO_APPLY)


@pytest.mark.parametrize(
    "word, answer",
    [
        ("Oriented_DGCNN", "did you mean 'oriented-dgcnn'?"),
        ("modelnet", "expected one of oriented-dgcnn, rscnn."),
        (["rscnn"], "did you mean 'rscnn'?"),
        ("x" * 10**6, "expected one of oriented-dgcnn, rscnn."),
    ],
)
def test_nearest(word, answer):
    assert nearest(word, ["oriented-dgcnn", "rscnn"]) == answer
