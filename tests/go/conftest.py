import pytest

from dgl_orient.config import plugins, registry
from dgl_orient.go import cli
from tests.go.cli_runner import write_recipe


@pytest.fixture(autouse=True)
def own_tables(monkeypatch):
    """What a test registers is gone after it."""
    for module, table in ((registry, "_data"), (registry, "_models"), (plugins, "_imported")):
        monkeypatch.setattr(module, table, getattr(module, table).copy())
    plugins.load_entry_points.cache_clear()
    yield
    plugins.load_entry_points.cache_clear()


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """The folder of a tiny training, made by the command line."""
    folder = tmp_path_factory.mktemp("training")
    recipe = write_recipe(folder, save_path=str(folder / "results"))
    assert cli.run(["train", "--cfg", str(recipe), "--quiet"]) == 0
    return folder
