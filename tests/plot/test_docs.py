"""The example and the flags of docs/view.md."""

import re
import shlex
import shutil
from pathlib import Path

from dgl_orient.data import Shapes, write_cloud
from dgl_orient.go import cli, view
from tests.go import tiny

_PAGE = (Path(__file__).resolve().parents[2] / "docs" / "view.md").read_text(encoding="utf-8")


def test_its_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    exec(compile(code, "view.md", "exec"), {})
    assert {path.name for path in tmp_path.iterdir()} == {"cloud.png", "cloud.html"}


def test_its_commands_run(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    mug, _ = Shapes("test", num_points=60, num_shapes=1, classes=["mug"])[0]
    for name in ("mug.ply", "scans/0.ply", "scans/1.ply"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_cloud(tmp_path / name, mug.ndata["pos"])
    shutil.copytree(tiny.trained("pointcls").parent, tmp_path / "results" / "001")
    (block,) = re.findall(r"^```sh\n(.*?)^```$", _PAGE, re.DOTALL | re.MULTILINE)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    for program, *words in lines:
        few = ["--clouds", "1"] if "--quality" in words else []
        assert program == "dgl-orient" and cli.run([*words, *few]) == 0, words
    written = {words[words.index("--out") + 1] for words in lines if "--out" in words} | {"mug.html"}
    assert len(lines) >= 6 and all((tmp_path / name).stat().st_size > 1000 for name in written)


def test_its_flags_are_those_of_the_command():
    known = set(view.view.__annotations__) | {"global"}
    named = {flag.replace("-", "_") for flag in re.findall(r"--([a-z][a-z-]*)", _PAGE)}
    assert named <= known and {"poses", "level", "orientation", "color", "arrows", "length"} <= named
