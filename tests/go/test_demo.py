"""The demonstration with few shapes and epochs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _demo(*arguments):
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DGLBACKEND": "pytorch"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_both_networks_are_evaluated_by_all_protocols_and_files_are_classified(tmp_path):
    done = _demo("--epochs", 2, "--shapes", 20, "--folder", tmp_path / "kept")
    assert done.returncode == 0, done.stderr
    for network in ("oriented", "plain"):
        row = re.search(rf"^{network} +([\d.]+)% +([\d.]+)% +([\d.]+)%$", done.stdout, re.MULTILINE)
        scores = [float(score) for score in row.groups()]
        if network == "oriented":
            assert scores[0] == scores[1]  # rotation-invariant
    assert len(re.findall(r"^\w+_\d\.(?:ply|npz) ", done.stdout, re.MULTILINE)) == 6
    assert (tmp_path / "kept" / "z" / "plain" / "results.json").exists()


def test_invalid_settings_are_reported_without_a_traceback(tmp_path):
    done = _demo("--epochs", -1, "--folder", tmp_path / "kept")
    assert done.returncode != 0
    assert "num_epochs" in done.stderr and "Traceback" not in done.stderr
