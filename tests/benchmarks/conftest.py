"""Networks trained on made-up shapes, once for all tests."""

from __future__ import annotations

import pytest

from benchmarks.modelnet40 import __main__ as command_line

from .shapes import write_modelnet40


@pytest.fixture(scope="session")
def raw_dir(tmp_path_factory):
    """ModelNet40's download, with made-up shapes."""
    return write_modelnet40(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory, raw_dir):
    """Where two networks were trained by the command line, and what came of it."""
    folder = tmp_path_factory.mktemp("runs")
    line = "protocol --models oriented-dgcnn dgcnn --train z --quick"
    assert command_line.main([*line.split(), "--folder", str(folder), "--raw-dir", str(raw_dir)]) == 0
    return folder
