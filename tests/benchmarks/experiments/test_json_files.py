"""Records as JSON."""

from __future__ import annotations

from benchmarks.experiments.json_files import read_json, write_json


def test_json_has_a_line_for_each_key(tmp_path):
    content = {"a": {"b": [1, 2], "c": {"d": None}}, "e": {}}
    write_json(tmp_path / "x.json", content, levels=2)
    assert read_json(tmp_path / "x.json") == content
    expected = '{\n "a": {\n  "b": [1, 2],\n  "c": {"d": null}\n },\n "e": {}\n}\n'
    assert (tmp_path / "x.json").read_text() == expected
    assert read_json(tmp_path / "y.json") is None
