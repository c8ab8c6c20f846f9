"""Packages import one way: from the layers to the command line, and never back."""

import ast
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[1] / "dgl_orient"

#: From the bottom to the top.
ORDER = [
    *("geometry", "robust", "graph", "nn", "models", "data"),
    *("metrics", "plot", "train", "config", "zoo", "go"),
]
#: Of the packages before it in the list, what a package knows nothing of.
UNKNOWN = {
    "robust": {"graph"},
    "data": {"nn", "models"},
    "metrics": {"data", "nn", "models"},
    "plot": {"data", "nn", "models", "metrics"},
    "train": {"models", "plot"},
    "config": {"nn", "models", "metrics", "plot"},
}


def imported(path: Path) -> set[str]:
    """The packages of dgl_orient that a file imports, anywhere in it."""
    package = ("dgl_orient", *path.relative_to(TOP).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            outer = package[: len(package) + 1 - node.level] if node.level else ()
            module = [*outer, *(node.module.split(".") if node.module else ())]
            modules = [[*module, alias.name] for alias in node.names]
        else:
            continue
        found |= {module[1] for module in modules if module[0] == "dgl_orient" and len(module) > 1}
    return found


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_only_what_is_below_it(package):
    files = [*TOP.glob(f"{package}.py"), *(TOP / package).rglob("*.py")]
    known = {*ORDER[: ORDER.index(package) + 1]} - UNKNOWN.get(package, set())
    against = {str(path.relative_to(TOP)): imported(path) & {*ORDER} - known for path in files}
    assert files and not {path: names for path, names in against.items() if names}


def test_imports_are_found_in_functions_and_in_all_forms(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_imports.TOP", tmp_path)
    path = tmp_path / "nn" / "layer.py"
    path.parent.mkdir()
    path.write_text(
        "import dgl_orient.go.cli\nfrom .. import zoo\nfrom ..train.loop import fit\nfrom .conv import x\n"
        "def function():\n    from dgl_orient.plot import save\n"
    )
    assert imported(path) == {"go", "zoo", "train", "nn", "plot"}
