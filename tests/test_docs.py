"""The pages: links, spelling, words, and the references that are generated."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import nbformat
import pytest
import yaml

from dgl_orient.config import plugins, registry
from dgl_orient.train.settings import Settings
from tests.readme import DOCS, TOP
from tools.run_tutorials import TUTORIALS

#: All pages, also those of results.
PAGES = [
    *TOP.glob("*.md"),
    *DOCS.glob("*.md"),
    *TUTORIALS,
    *TOP.glob("benchmarks/results/*/README.md"),
]
IDS = [page.relative_to(TOP).as_posix() for page in PAGES]

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`", re.M | re.S)

#: What the pages say in other words: the glossary of CONTRIBUTING.md.
AVOIDED = {
    r"\bturn(ed|s|ing)? (about|around|with the|upright|cloud|shape|pose|copy|copies)": "rotated",
    r"\b(is|are|be|was|were|been|when|randomly|arbitrarily) turned\b(?! (into|off|on))": "rotated",
    r"\ba turn\b|\bturns of\b": "a rotation",
    r"\bshift(ed|s)?\b": "translated",
    r"\bindifferent to\b|\bdoes not mind\b|\bheed": "invariant",
    r"\bshares? of\b": "fraction, probability",
    r"\b(is|are|be|was) told\b|\btold (a|the|by|which|what)\b": "conditioned on",
    r"\bdrawn (points|numbers|anew|at random|from)\b|\bpoints (are|that are) drawn\b": "sampled",
    r"\banew\b": "again, reset",
    r"\b(comes|came) along\b|\bshipped\b": "pretrained",
    r"\bfresh network\b": "untrained",
    r"\bright answers?\b|\banswers?\b": "prediction",
    r"\bfacts of\b": "features, metadata",
    r"\bminutes of the processor\b": "CPU minutes",
    r"\bstands? on the surface\b": "normal",
    r"\bundetermined\b": "degenerate",
    r"\bare joined\b": "concatenated",
}


def text_of(page: Path) -> str:
    """A page, or the text between the code of a notebook."""
    if page.suffix == ".md":
        return page.read_text(encoding="utf-8")
    cells = nbformat.read(page, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def prose(page: Path) -> str:
    """The text of a page without its code."""
    return _CODE.sub(" ", text_of(page))


def anchors(page: Path) -> set[str]:
    """The fragments of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_internal_links_resolve(page):
    for link in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists() and target.is_relative_to(TOP), link
        assert not fragment or fragment in anchors(target), link


def avoided_in(text: str) -> list[str]:
    """What a text should say in other words."""
    text = " ".join(text.split())
    return [
        f"{match[0]!r} in {text[max(0, match.start() - 30) : match.end() + 30]!r}: rather {better}"
        for avoided, better in AVOIDED.items()
        for match in re.finditer(avoided, text, flags=re.I)
    ]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_words_of_the_field(page):
    assert not avoided_in(prose(page))


def test_words_of_the_field_in_docstrings():
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for path in TOP.glob("dgl_orient/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, documented) and (docstring := ast.get_docstring(node)):
                assert not avoided_in(re.sub(r"``.*?``", " ", docstring, flags=re.S)), path


def test_avoided_words_are_found():
    assert len(avoided_in("Shapes are turned about z and shifted; shares of points are drawn anew.")) >= 5


def test_spelling():
    command = [sys.executable, "-m", "codespell_lib", *PAGES, TOP / "recipes", TOP / "dgl_orient"]
    command += ["--check-filenames", "--skip", "*.pth,__pycache__", "--ignore-words-list", "alse,normaly"]
    command += ["--ignore-regex", r'"image/png": ".*"']
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=TOP)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The folder of the generated pages."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(DOCS)
        reference_pages = importlib.import_module("reference_pages")
    folder = tmp_path_factory.mktemp("site") / "generated"
    reference_pages.write(folder)
    return folder


def test_the_recipes_reference_has_all_names_and_settings(generated):
    text = (generated / "recipes.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^### ([\w-]+)", text, flags=re.M))
    assert headings >= {*registry.DATA, *registry.MODELS}
    assert all(f"| `{key}` |" in text for key in Settings.fields())
    assert all(f"| `{path.name}` |" in text for path in TOP.glob("recipes/*.yaml"))


def test_the_api_reference_has_all_public_names(generated):
    listed = (generated / "api.md").read_text(encoding="utf-8")
    text = {path.stem: path.read_text(encoding="utf-8") for path in generated.glob("api_*.md")}
    assert all(stem in listed for stem in text)
    for stem in ("nn", "models", "data", "graph", "metrics", "plot", "train"):
        names = importlib.import_module(f"dgl_orient.{stem}").__all__
        page = text[f"api_{stem}"]
        assert all(re.search(rf":: dgl_orient\.{stem}\.{name}$", page, re.M) for name in names)


_REFERENCE = re.compile(
    r":(?:class|func|meth|attr|data):`(?:[^`<]*<)?~?(dgl_orient[\w.]+)|`(dgl_orient\.[\w.]+)[`(]"
)


def test_what_documentation_refers_to_is_in_the_api_reference(generated):
    text = "".join(path.read_text(encoding="utf-8") for path in generated.glob("api_*.md"))
    listed = set(re.findall(r":: (dgl_orient[\w.]+)$", text, re.M))
    documented = [pkgutil.resolve_name(name) for name in sorted(listed)]
    identities = {id(each) for each in documented}
    docstrings = [each.__doc__ or "" for each in documented if isinstance(each, (type, types.FunctionType))]
    found = _REFERENCE.findall("\n".join([*map(text_of, PAGES), *docstrings]))
    names = {role or code for role, code in found} - listed - {plugins._GROUP}  # of entry points
    values = {name: pkgutil.resolve_name(name) for name in names}
    owners = {name: pkgutil.resolve_name(name.rpartition(".")[0]) for name in names}
    missing = {name for name in names if not {id(values[name]), id(owners[name])} & identities}
    assert not {name for name in missing if not isinstance(values[name], types.ModuleType)}


def test_every_page_is_in_the_table_of_contents():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    tables = re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.M | re.S)
    listed = {line for table in tables for line in table.splitlines() if line and line[0] != ":"}
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= listed
    assert {f"tutorials/{page.stem}" for page in TUTORIALS} <= listed


def test_the_citation_file_is_of_this_version():
    citation = yaml.safe_load((TOP / "CITATION.cff").read_text(encoding="utf-8"))
    setup = (TOP / "setup.cfg").read_text(encoding="utf-8")
    assert f"\nversion = {citation['version']}\n" in setup
    assert citation["preferred-citation"]["title"] in (TOP / "README.md").read_text(encoding="utf-8")
