"""The example and the flags of docs/view.md."""

import re
from pathlib import Path

from dgl_orient.go import view

_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "view.md").read_text(encoding="utf-8")


def test_its_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    exec(compile(code, "view.md", "exec"), {})
    assert {path.name for path in tmp_path.iterdir()} == {"cloud.png", "cloud.html"}


def test_its_flags_are_those_of_the_command():
    known = set(view.view.__annotations__) | {"global"}
    named = {flag.replace("-", "_") for flag in re.findall(r"--([a-z][a-z-]*)", _PAGE)}
    assert named <= known and {"poses", "level", "orientation", "color", "arrows", "length"} <= named
