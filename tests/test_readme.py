"""What the README says holds."""

import functools
import re
import sys

import pytest
from packaging.requirements import Requirement

import dgl_orient
from dgl_orient.config import registry
from dgl_orient.go import cli
from tests.clouds import ball
from tests.readme import README, all_code, commands, python_blocks, shell_blocks
from tests.readme_commands import TOP, Reader, check_pip, shrink


def test_quick_start_is_about_ten_lines_and_equivariant():
    (block,) = python_blocks("Quick start")
    assert (
        len([line for line in block.splitlines() if line and not line.startswith(("import", "from"))]) <= 10
    )
    values = {}
    exec(block, values)
    assert (values["rotated"] - values["rotation"] @ values["orient"]).abs().max() < 1e-3
    local = dgl_orient.geometry.to_local(
        values["rotated"][values["dst"], 0],
        (values["pos"][values["src"]] - values["pos"][values["dst"]]) @ values["rotation"].T,
    )
    assert (local - values["local"]).abs().quantile(0.99) < 1e-4


@pytest.mark.parametrize("heading", ["Pretrained model", "What is in it", "Data", "Molecules"])
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


SECTIONS = dict.fromkeys(section for section, _ in commands())


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Somebody in a folder with files, the README's modules and a recipe for the files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for table in ("_data", "_models", "_imported"):  # what is registered is gone afterwards
        monkeypatch.setattr(registry, table, getattr(registry, table).copy())
    modules = dict(_module(code.text) for code in all_code() if code.text.startswith("# my_"))
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    person = Reader(tmp_path)
    names = ["--data", "folder", "--model", "oriented-dgcnn", "--cfg", "mine.yaml"]
    assert cli.run(["configure", "pointcls", *names]) == 0
    shrink(tmp_path / "mine.yaml")
    yield person
    for name in modules:
        sys.modules.pop(name, None)
    person.leaves()


def _module(text: str) -> tuple[str, str]:
    """The name of a module that its first line says, and its text."""
    return re.match(r"# (\w+)\.py\n", text).group(1), text


@pytest.mark.parametrize("section", SECTIONS)
def test_commands_run(section, reader, capfd):
    for each, words in commands():
        if each == section:
            reader.types(words)
    assert "Traceback" not in capfd.readouterr().err


def test_every_block_of_commands_is_found():
    sections = ["Install", "Recipes", "Your own data", "Your own model or layer"]
    assert all(shell_blocks(section) for section in [*sections, "Several processes and machines"])
    lines = [line for code in all_code() if code.language == "sh" for line in code.text.splitlines()]
    assert 0 < len([line for line in lines if line.strip()]) <= len(list(commands()))
    assert not {code.language for code in all_code()} & {"", "bash", "console", "shell", "zsh"}  # all say sh


@pytest.mark.parametrize(
    "command",
    [
        "conda install dgl",
        "dgl-orient trian",
        "make tea",
        "pip install torch==1.0",
        "python -m benchmarks tea",
    ],
)
def test_a_command_that_does_not_work_is_found(command, reader):
    with pytest.raises(AssertionError):
        reader.types(command.split())


def test_every_command_has_a_row_and_an_example():
    names = ["configure", "configure-apply", "train", "apply", "export", "recipe list", "recipe get"]
    rows = re.findall(
        r"^\| `([\w -]+)` \| [^|]+ \| `dgl-orient ([^`|]+)` \|$", README.read_text("utf-8"), re.M
    )
    assert {name for name, _ in rows} >= {*names}
    assert all(example.startswith(f"{name} ") or example == name for name, example in rows)


def test_extras_and_versions_that_are_named_fit():
    extras = [code.text for code in all_code() if re.fullmatch(r"\.\[\w+\]", code.text)]
    assert len(extras) >= 5
    for extra in extras:
        check_pip(["install", extra])
    version = re.search(r"are called (1\.\S+\+cu\d+) or the like", README.read_text("utf-8")).group(1)
    (pin,) = (line for line in (TOP / "constraints.txt").read_text().splitlines() if line.startswith("dgl=="))
    assert Requirement(pin).specifier.contains(version)


def test_the_group_of_entry_points_is_the_one_that_is_read():
    (block,) = (code.text for code in all_code() if code.language == "ini")
    assert f"\n{registry._GROUP} =\n" in block and f"`{registry._GROUP}`" in README.read_text("utf-8")


def test_the_network_of_the_example_is_rotation_invariant(reader):
    values = {}
    exec(next(code.text for code in all_code() if code.text.startswith("# my_net.py")), values)
    net = values["MyNet"](5, width=8).double().eval()

    def predict(pos, batch_num_nodes=None):
        return net(dgl_orient.point_cloud(pos, batch_num_nodes))

    dgl_orient.testing.assert_equivariant(predict, ball(60), "invariant", [40, 20], per="cloud")
