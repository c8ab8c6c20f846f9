import pytest
import yaml

from dgl_orient.config import registry
from dgl_orient.go import cli
from tests.go.hostile import GOOD


@pytest.fixture(autouse=True)
def own_tables(monkeypatch):
    """What a test registers is gone after it."""
    for table in ("_data", "_models", "_imported"):
        monkeypatch.setattr(registry, table, getattr(registry, table).copy())
    registry._load_entry_points.cache_clear()
    yield
    registry._load_entry_points.cache_clear()


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """The folder of a tiny training, made by the command line."""
    folder = tmp_path_factory.mktemp("training")
    recipe = yaml.safe_load(GOOD)
    recipe["data"] = {"name": "shapes", "num_points": 32, "num_shapes": 20, "classes": ["chair", "mug"]}
    recipe["model"] |= {"k": 4, "embed_feats": 8, "widths": [4, 4]}
    recipe["general_pipeline"] = {
        "num_epochs": 2,
        "train_batch_size": 10,
        "save_path": str(folder / "results"),
    }
    (folder / "cfg.yaml").write_text(yaml.safe_dump(recipe))
    assert cli.run(["train", "--cfg", str(folder / "cfg.yaml"), "--quiet"]) == 0
    return folder
