"""Names of recipes: those of this package, and those that users register."""

import subprocess
import sys
from pathlib import Path

import pytest
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from dgl_orient.config import registry
from dgl_orient.config.sections import data_section, model_section
from dgl_orient.data import PointCloudDataset, Shapes
from dgl_orient.go.export import script_of
from dgl_orient.models import DGCNN
from tests.go import tiny


def test_decorators_give_names_and_arguments():
    register = registry.register_data("chairs", pipelines=["pointcls"], per_split=["num_shapes"])
    cls = register(type("Chairs", (Shapes,), {}))
    assert registry.data_class("chairs") is cls
    assert "chairs" in registry.data_names("pointcls") and "chairs" not in registry.data_names("nbody")
    assert data_section("chairs").fields().keys() == data_section("shapes").fields().keys()


def test_names_are_those_that_users_rely_on():
    pipelines = "pointcls partseg normals upright nbody molprop moltensor"
    assert list(registry.PIPELINES) == pipelines.split()
    data = "shapes modelnet40 modelnet10 shapenetpart charged charged-files qm9 molecules folder"
    assert set(registry.DATA) == set(data.split())
    models = "oriented-dgcnn oriented-rscnn canonical-dgcnn dgcnn rscnn oriented-nbody egnn gnn linear"
    models += " pointnet pointnet2 oriented-pointnet2 vn-pointnet vn-dgcnn riconv riframework shellnet"
    models += " pointcnn gcconv tfn se3-transformer oriented-mol schnet painn upright-net"
    assert set(registry.MODELS) == set(models.split())
    for name in registry.DATA:
        assert issubclass(registry.data_class(name), PointCloudDataset)


def test_names_are_known_without_importing_torch():
    code = "import sys, dgl_orient.config.registry; assert not {'torch', 'dgl', 'pydantic'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)


@pytest.mark.parametrize(
    "name, pipelines",
    [
        ("net; import os", ["pointcls"]),
        ("net", ["pointclz"]),
        ("net", "pointcls"),
        ("net", []),
        (["net"], ["pointcls"]),
    ],
)
def test_decorators_refuse(name, pipelines):
    with pytest.raises(DGLError):
        registry.register_model(name, pipelines)(type("Net", (DGCNN,), {}))


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(DGLError, match="dgl_orient.models:DGCNN"):
        registry.register_model("dgcnn", ["pointcls"])(type("Net", (DGCNN,), {}))


class _OfPoints(nn.Module):
    """A network of a user with an output for every point."""

    def __init__(self, outputs: int, width: int = 8):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, width), nn.Linear(width, outputs))

    def forward(self, clouds: DGLGraph) -> Tensor:
        return self.inner(clouds.ndata["pos"])


class _Vectors(_OfPoints):
    def forward(self, clouds: DGLGraph) -> Tensor:
        return self.inner(clouds.ndata["pos"]) * clouds.ndata["pos"]


class _OfParts(_OfPoints):
    def forward(self, clouds: DGLGraph, category: Tensor) -> Tensor:
        assert len(category) == clouds.batch_size
        return super().forward(clouds)


class _OfKnownParts(_OfParts):
    def __init__(self, parts: int, num_categories: int, width: int = 8):
        super().__init__(parts, width)
        assert num_categories > 1

    @classmethod
    def light(cls, parts: int, width: int = 4):
        return cls(parts, 2, width)


class _Out(_Vectors):
    def __init__(self, out: int, width: int = 8):
        super().__init__(out, width)


@pytest.mark.parametrize(
    "pipeline, cls, preset, given",
    [
        ("normals", _Vectors, {}, "1, width=4"),
        ("normals", _Out, {}, "1, width=4"),
        ("partseg", _OfParts, {}, "train_set.num_parts, width=4"),
        (
            "partseg",
            _OfKnownParts,
            {"preset": "full"},
            "train_set.num_parts, num_categories=train_set.num_classes, width=4",
        ),
        ("partseg", _OfKnownParts, {"preset": "light"}, "train_set.num_parts, width=4"),
    ],
)
def test_a_network_of_ones_own_is_given_what_it_takes(pipeline, cls, preset, given, tmp_path):
    name = f"own-{cls.__name__}".replace("_", "")
    registry.register_model(name, [pipeline])(cls)
    assert set(model_section(name, pipeline).fields()) == {"name", "width", *preset}
    recipe = tiny.recipe(pipeline, model={"name": name, "width": 4} | preset)
    assert tiny.train(recipe, tmp_path / "results")["metrics"]["test"]
    method = ".light" if preset == {"preset": "light"} else ""
    assert f"return {cls.__name__}{method}({given})" in script_of(recipe)
