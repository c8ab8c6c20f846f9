"""The demonstration with few shapes and epochs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


@pytest.fixture
def demo(monkeypatch):
    """Its main function; the trainings are processes of their own."""
    monkeypatch.setenv("PYTHONPATH", str(DEMO.parents[1]))
    main = runpy.run_path(str(DEMO))["main"]
    return lambda *arguments: main([str(each) for each in arguments])


def test_both_networks_are_evaluated_by_all_protocols_and_files_are_classified(demo, tmp_path, capfd):
    demo("--epochs", 2, "--shapes", 20, "--folder", tmp_path / "kept")
    out, _ = capfd.readouterr()
    for network in ("oriented", "plain"):
        row = re.search(rf"^{network} +([\d.]+)% +([\d.]+)% +([\d.]+)%$", out, re.MULTILINE)
        scores = [float(score) for score in row.groups()]
        if network == "oriented":
            assert scores[0] == scores[1]  # rotation-invariant
    assert len(re.findall(r"^\w+_\d\.(?:ply|npz) ", out, re.MULTILINE)) == 6
    assert (tmp_path / "kept" / "z" / "plain" / "results.json").exists()


def test_invalid_settings_are_reported_without_a_traceback(demo, tmp_path):
    with pytest.raises(SystemExit, match="num_epochs"):
        demo("--epochs", -1, "--folder", tmp_path / "kept")
