"""Plugins: imported when that is allowed, and reported where they fail."""

import sys
import warnings

import pytest
from dgl import DGLError

from dgl_orient.config import plugins, registry
from dgl_orient.config.recipe import RecipeError, check
from dgl_orient.config.sections import model_section

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


def test_check_does_not_import_a_plugin(plugin):
    with pytest.raises(RecipeError) as caught:
        check(RECIPE)
    assert any("--allow-plugins" in problem for problem in caught.value.problems)
    assert plugin not in sys.modules


def test_imported_plugin_is_usable(plugin):
    plugins.import_plugins([plugin])
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
        plugins.import_plugins([module])


def test_plugin_that_fails_is_reported_in_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "broken_plugin_module.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DGLError, match="broken_plugin_module cannot be imported: ZeroDivisionError"):
        plugins.import_plugins(["broken_plugin_module"])


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
