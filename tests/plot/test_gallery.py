"""The gallery, made with a tiny network."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.go import tiny

_PATH = Path(__file__).resolve().parents[2] / "examples" / "gallery.py"


@pytest.fixture
def gallery(monkeypatch):
    spec = importlib.util.spec_from_file_location("gallery", _PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "CLASSES", ("plane", "chair", "mug"))
    monkeypatch.setattr(module, "MAX_PIXELS", 300)
    monkeypatch.setattr(module, "NUM_POINTS", {"dense": 300, "labelled": 100})
    return module


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("pointcls", "partseg", "normals"):
        (folder / name).symlink_to(tiny.trained(name).parent)
    return folder


def test_the_page_has_every_picture_and_all_are_small(gallery, tmp_path, runs):
    out = tmp_path / "gallery"
    cpt, files = str(tiny.trained("pointcls")), tiny.write_files(tmp_path / "files")
    given = {"--cpt": cpt, "--out": out, "--clouds": 1, "--runs": runs, "--files": files}
    gallery.main([str(each) for pair in given.items() for each in pair])
    page = (tmp_path / "gallery.md").read_text()
    pictures = set(re.findall(r"!\[[^]]+\]\(gallery/([\w.]+)\)", page))
    assert pictures == {path.name for path in out.glob("*.png")} and len(pictures) == 10
    assert all(path.stat().st_size < 400_000 for path in out.glob("*.png"))
    assert re.search(r"\| points, jitter 0\.05 \| \d+ \| \d+ \|", page)
    assert str(tmp_path) not in page


def test_another_network_is_refused_and_nothing_is_written(gallery, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        gallery.main(["--cpt", str(tiny.trained("normals")), "--out", str(tmp_path / "gallery")])
    assert stop.value.code == 2 and "for pointcls, got one for normals" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
