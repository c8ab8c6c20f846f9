"""Networks trained on few systems, once for all tests."""

from __future__ import annotations

import pytest

from benchmarks.experiments.nbody import __main__ as command_line


@pytest.fixture(scope="session")
def call():
    """The command line as a smoke test in a folder; the exit code is checked."""

    def call(folder, line: str, exit_code: int = 0) -> None:
        assert command_line.main([*line.split(), "--quick", "--folder", str(folder)]) == exit_code

    return call


@pytest.fixture(scope="session")
def trained(tmp_path_factory, call):
    """A folder in which two networks were trained for two epochs."""
    folder = tmp_path_factory.mktemp("runs")
    call(folder, "protocol --variant n10 --models oriented-nbody egnn --seeds 0 --epochs 2")
    return folder
