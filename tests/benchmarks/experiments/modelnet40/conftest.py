"""Networks trained on synthetic shapes, once for all tests."""

from __future__ import annotations

import pytest

from benchmarks.experiments.modelnet40 import __main__ as command_line

from .download import write_modelnet40


@pytest.fixture(scope="session")
def raw_dir(tmp_path_factory):
    """The download of ModelNet40, with synthetic shapes."""
    return write_modelnet40(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def call(raw_dir):
    """The command line as a smoke test in a folder; the exit code is checked."""

    def call(folder, line: str, exit_code: int = 0) -> None:
        arguments = [*line.split(), "--quick", "--folder", str(folder)]
        arguments += [] if line == "summary" else ["--raw-dir", str(raw_dir)]
        assert command_line.main(arguments) == exit_code

    return call


@pytest.fixture(scope="session")
def trained(tmp_path_factory, call):
    """A folder in which two networks were trained for two epochs."""
    folder = tmp_path_factory.mktemp("runs")
    call(folder, "protocol --models oriented-dgcnn dgcnn --train z")
    return folder
