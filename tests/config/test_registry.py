"""Names of recipes: those of this package, and those that users register."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from dgl_orient.config import registry
from dgl_orient.config.recipe import RecipeError, check
from dgl_orient.config.sections import data_section, model_section
from dgl_orient.data import PointCloudDataset, Shapes
from dgl_orient.go.export import script_of
from dgl_orient.models import DGCNN
from tests.go import tiny

PLUGIN = """
from dgl_orient.data import Shapes
from dgl_orient.config.registry import register_data, register_model
from dgl_orient.models import DGCNN

@register_data("my-shapes", pipelines=["pointcls"])
class MyShapes(Shapes):
    pass

@register_model("my-net", pipelines=["pointcls"])
class MyNet(DGCNN):
    def __init__(self, outputs, depth: int = 3, flavour="plain"):
        '''.

        Parameters
        ----------
        depth : int
            How deep it is.
        '''
        super().__init__(outputs)
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """The name of a module that registers a data set and a network, not imported yet."""
    (tmp_path / "my_plugin_module.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_plugin_module"
    sys.modules.pop("my_plugin_module", None)


RECIPE = {
    "pipeline_name": "pointcls",
    "plugins": ["my_plugin_module"],
    "data": {"name": "my-shapes", "num_points": 64},
    "model": {"name": "my-net", "depth": 4},
}


def test_decorators_give_names_and_arguments():
    register = registry.register_data("chairs", pipelines=["pointcls"], per_split=["num_shapes"])
    cls = register(type("Chairs", (Shapes,), {}))
    assert registry.data_class("chairs") is cls
    assert "chairs" in registry.data_names("pointcls") and "chairs" not in registry.data_names("nbody")
    assert data_section("chairs").fields().keys() == data_section("shapes").fields().keys()


def test_names_are_those_that_users_rely_on():
    assert list(registry.PIPELINES) == ["pointcls", "partseg", "normals", "nbody", "molprop", "moltensor"]
    data = "shapes modelnet40 modelnet10 shapenetpart charged charged-files qm9 molecules folder"
    assert set(registry.DATA) == set(data.split())
    models = "oriented-dgcnn oriented-rscnn canonical-dgcnn dgcnn rscnn oriented-nbody egnn gnn linear"
    models += " pointnet pointnet2 oriented-pointnet2 vn-pointnet vn-dgcnn riconv riframework shellnet"
    models += " pointcnn gcconv tfn se3-transformer oriented-mol schnet painn"
    assert set(registry.MODELS) == set(models.split())
    for name in registry.DATA:
        assert issubclass(registry.data_class(name), PointCloudDataset)


def test_names_are_known_without_importing_torch():
    code = "import sys, dgl_orient.config.registry; assert not {'torch', 'dgl', 'pydantic'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)


@pytest.mark.parametrize(
    "name, pipelines, words",
    [
        ("dgcnn", ["pointcls"], "is taken by dgl_orient.models:DGCNN"),
        ("net; import os", ["pointcls"], "Expected a name of letters"),
        ("net", ["pointclz"], "Expected pipelines of 'net'"),
        ("net", "pointcls", "Expected pipelines of 'net'"),
        ("net", [], "Expected pipelines of 'net'"),
        (["net"], ["pointcls"], "Expected a name of letters"),
    ],
)
def test_decorators_refuse(name, pipelines, words):
    with pytest.raises(DGLError, match=words):
        registry.register_model(name, pipelines)(type("Net", (DGCNN,), {}))


def test_check_does_not_import_a_plugin(plugin):
    with pytest.raises(RecipeError) as caught:
        check(RECIPE)
    assert any("--allow-plugins" in problem for problem in caught.value.problems)
    assert plugin not in sys.modules


def test_imported_plugin_is_usable(plugin):
    registry.import_plugins([plugin])
    checked = check(RECIPE)
    assert checked["plugins"] == [plugin] and checked["model"] == {"name": "my-net", "depth": 4}
    arguments = model_section("my-net", "pointcls").fields()
    # The number of outputs is not the recipe's, whatever it is called; without a hint the default decides.
    assert list(arguments) == ["name", "preset", "depth", "flavour"]
    with pytest.raises(RecipeError, match="model.flavour: expected a string, got 3"):
        check(RECIPE | {"model": {"name": "my-net", "flavour": 3}})


@pytest.mark.parametrize("module", ["os.system('x')", "../evil", "", "no_such_module_here", 7, None])
def test_import_plugins_takes_names_of_modules_only(module):
    with pytest.raises(DGLError):
        registry.import_plugins([module])


def test_plugin_that_fails_is_reported_in_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "broken_plugin_module.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DGLError, match="broken_plugin_module cannot be imported: ZeroDivisionError"):
        registry.import_plugins(["broken_plugin_module"])


def install(folder, module):
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dgl_orient.plugins]\nown = {module}\n")


def test_entry_points_are_found(plugin, tmp_path):
    install(tmp_path, plugin)
    assert "my-shapes" in registry.data_names("pointcls")
    assert registry.model_class("my-net", "pointcls").__name__ == "MyNet"
    del_plugins = {key: value for key, value in RECIPE.items() if key != "plugins"}
    assert check(del_plugins)["data"]["name"] == "my-shapes"


def test_entry_point_that_fails_takes_nothing_from_others(tmp_path, monkeypatch):
    (tmp_path / "broken_entry_module.py").write_text("raise SystemError('no')")
    install(tmp_path, "broken_entry_module")
    monkeypatch.syspath_prepend(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert "shapes" in registry.data_names()
    assert any("(broken_entry_module) cannot be loaded" in str(each.message) for each in caught)


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
