"""Progress of a training: lines, bars on a terminal, and nothing if that is asked for."""

from __future__ import annotations

import io

from dgl_orient.train.progress import table
from tests.train.small import train


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_a_bar(tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    train(tmp_path, progress=True, num_epochs=3, num_runs=2)
    said = terminal.getvalue()
    bars = [piece for piece in said.split("\r") if "batch/s" in piece or "s/batch" in piece]
    assert any("run 2/2 epoch 3/3" in bar for bar in bars)
    assert any("loss" in bar and "lr" in bar and "left" in bar for bar in bars)


def test_off_a_terminal_there_is_a_line_an_epoch_and_a_table(tmp_path, capsys):
    train(tmp_path, progress=True, num_epochs=3)
    said = capsys.readouterr()
    folder, *lines = said.err.splitlines()
    assert said.out == "" and str(tmp_path) in folder
    assert [line.split(":")[0] for line in lines[:3]] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert all(word in lines[1] for word in ("loss", "val accuracy", "lr", "left"))
    assert lines[3].split() == ["set", "metric", "mean", "deviation", "runs"]


def test_nothing_is_said_where_nothing_is_asked_for(tmp_path, capsys):
    train(tmp_path, progress=False, num_epochs=1)
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_the_table_has_mean_and_deviation():
    spread = {"mean": 0.6, "deviation": 0.1, "values": [0.5, 0.7]}
    lines = table({"metrics": {"test": {"accuracy": spread, "mse": spread | {"values": [0.6]}}}}).splitlines()
    assert lines[1].split() == ["test", "accuracy", "0.6000", "0.1000", "2"]
    assert lines[2].split() == ["test", "mse", "0.6000", "-", "1"]
