"""What is printed to terminals, and what is typed there."""

import io
import sys

import numpy as np

from dgl_orient.go import cli
from tests.go.cli_runner import run_cli


def test_names_that_a_terminal_cannot_show_are_escaped(training, in_folder, monkeypatch):
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", ascii_only)
    assert cli.run(["export", "--cfg", str(training / "cfg.yaml"), "--output", "café.py"]) == 0
    ascii_only.flush()
    assert b"caf\\xe9.py" in ascii_only.buffer.getvalue() and (in_folder / "café.py").exists()


def test_columns_of_many_digits_are_a_sentence(in_folder, capfd):
    code, out, err = run_cli(capfd, "view", "x.xyz", "--columns", "0,1," + "9" * 5000)
    assert (code, out) == (2, "") and "numbers from 0, got '0,1,999" in err and len(err) < 1000


def test_columns_are_given_as_numbers_or_names(training, in_folder, capfd):
    cloud = np.random.default_rng(0).random((50, 3))
    np.savetxt(in_folder / "rgb.txt", np.column_stack([cloud, 200 + cloud]))
    given = ["rgb.txt", "--cpt", training / "results" / "001" / "run_0.pth", "--quiet", "--columns"]
    assert run_cli(capfd, "apply", *given, "0,1,2") == (0, "", "")
    for wrong in ("x,y", "x,y,2", ",,", "x,y,z"):  # this file has no header
        code, _, err = run_cli(capfd, "apply", *given, wrong)
        assert code == 2 and "Traceback" not in err and "olumns" in err
    code, _, err = run_cli(capfd, "view", *given, "0, 1,2", "--out", "rgb.html")
    assert (code, err) == (0, "") and (in_folder / "rgb.html").exists()
