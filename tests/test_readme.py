"""What the README says holds."""

import functools
import re

import pytest

import dgl_orient
from tests.readme import README, python_blocks


def test_quick_start_is_about_ten_lines_and_equivariant():
    (block,) = python_blocks("Quick start")
    assert (
        len([line for line in block.splitlines() if line and not line.startswith(("import", "from"))]) <= 10
    )
    values = {}
    exec(block, values)
    assert (values["turned"] - values["turn"] @ values["orient"]).abs().max() < 1e-3
    seen = dgl_orient.geometry.to_local(
        values["turned"][values["dst"], 0],
        (values["pos"][values["src"]] - values["pos"][values["dst"]]) @ values["turn"].T,
    )
    assert (seen - values["seen"]).abs().quantile(0.99) < 1e-4


@pytest.mark.parametrize("heading", ["What is in it", "Data"])
def test_other_examples_run(heading):
    blocks = python_blocks(heading)
    assert blocks
    for block in blocks:
        exec(block, {})


def equation_table():
    return README.read_text(encoding="utf-8").split("## The paper's equations")[1].split("\n## ")[0]


def test_every_name_in_the_equation_table_exists():
    names = re.findall(r"`(dgl_orient[\w.]+)`", equation_table())
    assert len(names) > 10
    for name in names:
        assert callable(functools.reduce(getattr, name.split(".")[1:], dgl_orient))


def test_the_equation_table_has_the_numbered_equations():
    covered = set()
    for first in re.findall(r"^\| ([\d, to]+) \|", equation_table(), flags=re.M):
        numbers = [int(n) for n in re.findall(r"\d+", first)]
        covered |= set(range(numbers[0], numbers[-1] + 1)) if "to" in first else set(numbers)
    assert covered == set(range(1, 28))
