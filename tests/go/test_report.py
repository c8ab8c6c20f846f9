"""What apply prints: wide or narrow, plain or coloured, few files or many."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from dgl_orient.go.report import print_report
from dgl_orient.zoo.prediction_folder import Applied


def _class(name, probabilities, best=None, **further):
    ranked = sorted(probabilities, key=probabilities.get)
    entry = {"file": name, "class": best or ranked[-1], "probability": probabilities[ranked[-1]]}
    return entry | {"probabilities": probabilities} | further


def _applied(predictions, **further):
    lists = [Path("out", "predictions.json"), Path("out", "predictions.csv")]
    clouds = [Path(each["output"]) for each in predictions if "output" in each]
    given = dict(skipped=[], unsupported=[], written=clouds + lists, colors={})
    return Applied(folder=Path("out"), predictions=predictions, **(given | further))


PROBABILITIES = {"chair": 0.7, "mug": 0.06, "stool": 0.2, "bed": 0.04}
PARTS = {"category": "mug", "points": 1240, "parts": {"mug/body": 1200, "mug/handle": 40, "mug/lid": 0}}


def test_the_best_three_classes_are_shown(capsys):
    print_report(_applied([_class("a.ply", PROBABILITIES)]))
    header, row = capsys.readouterr().out.splitlines()[1:3]
    assert header.split() == ["file", "class", "probability", "alternatives"]
    assert row.split() == ["a.ply", "chair", "70.0%", "stool", "20.0%,", "mug", "6.0%"]


def test_an_unknown_cloud_has_three_alternatives_and_no_probability(capsys):
    print_report(_applied([_class("a.ply", PROBABILITIES, "unknown")]))
    row = capsys.readouterr().out.splitlines()[2]
    assert row.split(maxsplit=2)[:2] == ["a.ply", "unknown"] and row.count("%") == 3 and "chair 70.0%" in row


def test_true_classes_are_shown_beside_predicted_ones(capsys):
    print_report(_applied([_class("test/00000", PROBABILITIES, true_class="bed")]))
    assert capsys.readouterr().out.splitlines()[2].endswith("bed")


def test_parts_are_counted_and_the_legend_has_their_colours(capsys):
    entry = {"file": "a.ply", "output": "out/a.ply", **PARTS}
    print_report(_applied([entry], colors={"mug/body": "#0072b2", "mug/handle": "#e69f00"}))
    out = capsys.readouterr().out
    assert "body 1,200, handle 40" in out and "lid" not in out and "out/a.ply" in out
    assert "mug/body #0072b2" in out and "1 cloud" in out


@pytest.mark.parametrize("summary", [{"points": 7}, {"particles": 7}])
def test_written_clouds_are_shown(summary, capsys):
    print_report(_applied([{"file": "a.npz", "output": "out/a.npz", **summary}]))
    assert capsys.readouterr().out.splitlines()[2].split() == ["a.npz", "7", "out/a.npz"]


def test_warnings_skipped_and_unsupported_files_are_named(capsys):
    warned = _class("few.ply", PROBABILITIES, warnings=["12 points", "3 outliers removed"])
    skipped = [{"file": "bad.npz", "reason": "Cannot read\nbad.npz."}]
    print_report(_applied([warned], skipped=skipped, unsupported=[Path("b.docx")]))
    lines = capsys.readouterr().out.splitlines()
    assert {"  few.ply: 12 points", "  Cannot read bad.npz.", "  b.docx"} <= set(lines)
    assert any("--keep-outliers" in line for line in lines)


def test_long_lists_are_cut_with_the_number_of_the_rest(capsys):
    predictions = [_class(f"{number}.ply", PROBABILITIES, warnings=["few"]) for number in range(1060)]
    print_report(_applied(predictions, unsupported=[Path(f"{number}.md") for number in range(61)]))
    out = capsys.readouterr().out
    assert out.count("1,010 more") == 2 and out.count(" 11 more") == 1
    assert "49.ply" in out and "50.ply" not in out and "50.md" not in out


def test_names_are_no_commands_of_a_terminal(capsys):
    name = "mug\x1b[2J\u202e[bold]:smile:.ply"
    print_report(_applied([_class(name, PROBABILITIES, warnings=["few"])], unsupported=[Path(f"{name}.md")]))
    out = capsys.readouterr().out
    assert out.count("mug\\x1b[2J\\u202e[bold]:smile:.ply") == 3 and "\x1b" not in out


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_terminal_has_colours_and_no_line_that_is_too_long(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    terminal, name = _Terminal(), "scans/a folder/" + 12 * "雕像" + ".ply"
    entry = {"file": name, "output": "abcdefghijklmnopqrstuvwxyz0123456789", **PARTS}
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", terminal)
        print_report(_applied([entry], colors={"mug/body": "#0072b2", "mug/handle": "#e69f00"}))
    written = terminal.getvalue()
    assert "\x1b[" in written and "■" in written and "#0072b2" not in written
    plain = re.sub(r"\x1b\[[\d;]*m", "", written)
    table = plain.split("\n\n")[0].splitlines()
    assert max(map(cell_len, table)) <= width
    # Long names are continued on further lines, and nothing of them is lost.
    assert sum(line.count("雕") for line in table) == 12
    assert all(each in "".join(table) for each in entry["output"])
