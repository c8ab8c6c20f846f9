"""Progress bars are for terminals."""

import sys
import time

from dgl_orient.data.progress import progress_bar


def _slow_loop(**options) -> list[int]:
    """What the bar iterates over."""
    indices = []
    for index in (bar := progress_bar(range(3), "Reading", "shapes", **options)):
        bar.start_t = time.time() - 10  # as if it took long
        bar.refresh()
        indices.append(index)
    return indices


def test_bars_are_silent_where_stderr_is_no_terminal(capsys):
    _slow_loop()
    assert capsys.readouterr().err == ""
    _slow_loop(always=True)
    assert "Reading" in capsys.readouterr().err


def test_bars_work_with_closed_stderr(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert _slow_loop() == _slow_loop(always=True) == [0, 1, 2]
