"""What the README and the pages say holds."""

import functools
import re
import sys

import pytest
from packaging.requirements import Requirement

import dgl_orient
from dgl_orient.config import plugins, registry
from dgl_orient.go import cli
from dgl_orient.weights import pretrained_models
from tests.clouds import ball
from tests.go.conftest import own_tables  # noqa: F401, which is used by every test
from tests.readme import (
    DOCS,
    README,
    TOP,
    all_code,
    code_of_all_pages,
    commands,
    examples,
    modules,
    quick_start,
)
from tests.readme_commands import Reader, check_pip, shrink


def test_quick_start_is_about_ten_lines_and_equivariant():
    block = quick_start()
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


OTHERS = [example for example in examples() if example.page != README]


@pytest.mark.parametrize(
    "number", range(len(OTHERS)), ids=lambda n: f"{n} {OTHERS[n].page.name} {OTHERS[n].heading}"
)
def test_other_examples_run(number):
    exec(OTHERS[number].text, {"__name__": "example"})


def test_the_readme_fits_on_a_page_and_names_all_pretrained_models():
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 160
    assert all(f"| `{name}` |" in text for name in pretrained_models())


EQUATIONS = (DOCS / "equations.md").read_text(encoding="utf-8")


def test_every_name_in_the_equation_table_exists():
    names = re.findall(r"`(dgl_orient[\w.]+)`", EQUATIONS)
    assert len(names) > 10
    for name in names:
        assert callable(functools.reduce(getattr, name.split(".")[1:], dgl_orient))


def test_the_equation_table_has_the_numbered_equations():
    covered = set()
    for first in re.findall(r"^\| ([\d, to]+) \|", EQUATIONS, flags=re.M):
        numbers = [int(n) for n in re.findall(r"\d+", first)]
        covered |= set(range(numbers[0], numbers[-1] + 1)) if "to" in first else set(numbers)
    assert covered == set(range(1, 28))


PAGES = dict.fromkeys(page for page, _ in commands())


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Somebody in a folder with files, the pages' modules and a recipe for the files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in modules().items():
        (tmp_path / f"{name}.py").write_text(text)
    person = Reader(tmp_path)
    names = ["--data", "folder", "--model", "oriented-dgcnn", "--cfg", "mine.yaml"]
    assert cli.run(["configure", "pointcls", *names]) == 0
    shrink(tmp_path / "mine.yaml")
    yield person
    for name in modules():
        sys.modules.pop(name, None)
    person.leaves()


@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page, reader, capfd):
    for each, words in commands():
        if each == page:
            reader.types(words)
    assert "Traceback" not in capfd.readouterr().err


def test_every_block_of_commands_is_found():
    blocks = [code for code in code_of_all_pages() if code.language == "sh"]
    named = {code.page.stem for code in blocks}
    assert named >= {"README", "CONTRIBUTING", "recipes", "own_data", "own_model", "processes", "predict"}
    lines = [line for code in blocks for line in code.text.splitlines()]
    assert 0 < len([line for line in lines if line.strip()]) <= len(list(commands()))
    languages = {code.language for code in code_of_all_pages()}
    assert not languages & {"", "bash", "console", "shell", "zsh"}  # all say sh


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
        r"^\| `([\w -]+)` \| [^|]+ \| `dgl-orient ([^`|]+)` \|$",
        (DOCS / "recipes.md").read_text("utf-8"),
        re.M,
    )
    assert {name for name, _ in rows} >= {*names}
    assert all(example.startswith(f"{name} ") or example == name for name, example in rows)


def test_every_network_and_data_set_of_recipes_is_named():
    layers, data = ((DOCS / name).read_text("utf-8") for name in ("layers.md", "data.md"))
    assert all(f"`{name}`" in layers for name in registry.MODELS)
    assert all(f"`{name}`" in data for name in registry.DATA)


def test_extras_and_versions_that_are_named_fit():
    extras = [code.text for code in code_of_all_pages() if re.fullmatch(r"\.\[\w+\]", code.text)]
    assert len(extras) >= 5
    for extra in extras:
        check_pip(["install", extra])
    text = (DOCS / "processes.md").read_text("utf-8")
    version = re.search(r"are called (1\.\S+\+cu\d+) or the like", text).group(1)
    (pin,) = (line for line in (TOP / "constraints.txt").read_text().splitlines() if line.startswith("dgl=="))
    assert Requirement(pin).specifier.contains(version)


def test_the_group_of_entry_points_is_the_one_that_is_read():
    page = DOCS / "own_data.md"
    (block,) = (code.text for code in all_code(page) if code.language == "ini")
    assert f"\n{plugins._GROUP} =\n" in block and f"`{plugins._GROUP}`" in page.read_text("utf-8")


def test_the_network_of_the_example_is_rotation_invariant(reader):
    values = {}
    exec(modules()["my_net"], values)
    net = values["MyNet"](5, width=8).double().eval()

    def predict(pos, batch_num_nodes=None):
        return net(dgl_orient.point_cloud(pos, batch_num_nodes))

    dgl_orient.testing.assert_equivariant(predict, ball(60), "invariant", [40, 20], per="cloud")
