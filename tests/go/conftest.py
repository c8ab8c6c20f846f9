import pytest

from dgl_orient.go import registry


@pytest.fixture(autouse=True)
def own_tables(monkeypatch):
    """What a test registers is gone after it."""
    for table in ("_data", "_models", "_imported"):
        monkeypatch.setattr(registry, table, getattr(registry, table).copy())
    registry._load_entry_points.cache_clear()
    yield
    registry._load_entry_points.cache_clear()
