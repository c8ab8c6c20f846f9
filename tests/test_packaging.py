"""What a user installs: the wheel's content, a light core, a set-up that refuses old Pythons."""

import csv
import email
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dgl_orient.data import Shapes, write_cloud
from tests.readme import TOP, quick_start

CONSTRAINTS = TOP / "constraints.txt"
SETUP_VENV = TOP / "tools" / "setup_venv.py"


def run(*command, **options) -> str:
    """What a command prints; the test fails with all of it when the command does."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_sources(destination: Path) -> None:
    """Copy what a commit of the work tree would hold: stale builds must not reach the wheel."""
    listing = ["git", "-C", str(TOP), "ls-files", "-coz", "--exclude-standard"]
    git = shutil.which("git") and subprocess.run(listing, capture_output=True, text=True)
    if not git or git.returncode:
        derived = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
        shutil.copytree(TOP, destination, ignore=derived)
        return
    for name in filter(None, git.stdout.split("\0")):
        if (TOP / name).is_file():  # not deleted in the work tree
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / name, destination / name)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The project's wheel, built from its source archive, and that from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    copy_sources(folder / "sources")
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(folder)!r})"
    run(sys.executable, "-c", build, cwd=folder / "sources")
    (archive,) = folder.glob("*.tar.gz")
    pip_wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    run(*pip_wheel, "--wheel-dir", folder, archive)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def pins() -> list[Requirement]:
    """The lines of constraints.txt."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if not line.startswith("#")]


def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {path.relative_to(TOP).as_posix() for path in TOP.glob("dgl_orient/**/*.py")}
    recipes = {f"dgl_orient/{path.relative_to(TOP)}" for path in TOP.glob("recipes/*.yaml")}
    weights = {path.relative_to(TOP).as_posix() for path in TOP.glob("dgl_orient/weights/*.pth")}
    assert weights and modules | recipes | weights | {"dgl_orient/recipes/__init__.py"} <= names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"dgl_orient"}


def requirements(wheel: Path, extras: Iterable[str] = ()) -> list[Requirement]:
    """What the package requires, with these extras; ``all`` names the others."""
    (name,) = (n for n in zipfile.ZipFile(wheel).namelist() if n.endswith("/METADATA"))
    metadata = email.message_from_bytes(zipfile.ZipFile(wheel).read(name))
    found = list(map(Requirement, metadata.get_all("Requires-Dist")))
    wanted = [r for r in found if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras)]
    named = {extra for r in wanted if canonicalize_name(r.name) == "dgl-orient" for extra in r.extras}
    if named - set(extras):
        return requirements(wheel, named | set(extras))
    return [Requirement(str(r).split(";")[0]) for r in wanted if canonicalize_name(r.name) != "dgl-orient"]


def test_core_requires_few_packages(wheel):
    assert {each.name for each in requirements(wheel)} == {
        "torch",
        "dgl",
        "numpy",
        "packaging",
        "pydantic",
        "scikit-learn",
        "scipy",
        "tqdm",
    }


def installed_for(wanted: Iterable[Requirement]) -> dict[str, importlib.metadata.Distribution]:
    """The distributions that these requirements need, each of a version that all of them accept."""
    found, waiting, seen = {}, list(wanted), set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        distribution = importlib.metadata.distribution(requirement.name)
        assert requirement.specifier.contains(distribution.version, prereleases=True), requirement
        found[canonicalize_name(requirement.name)] = distribution
        for each in map(Requirement, distribution.requires or ()):
            extras = requirement.extras or {""}
            if not each.marker or any(each.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(each)
    return found


def link_into(folder: Path, distribution: importlib.metadata.Distribution) -> None:
    """Make an installed distribution, and nothing else, importable from a folder."""
    for name in {path.parts[0] for path in distribution.files} - {"..", "__pycache__"}:
        link = folder / name
        if not link.exists():  # a namespace may have parts of several
            link.symlink_to(distribution.locate_file(name))


def install(wheel: Path, folder: Path, extras: Iterable[str] = ()) -> tuple[Path, set[str]]:
    """An environment with the wheel and what it requires, no more: its commands, and the packages."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel)
    (packages,) = (folder / "lib").glob("python*/site-packages")
    needed = installed_for(requirements(wheel, extras))
    for distribution in needed.values():
        link_into(packages, distribution)
    return folder / "bin", set(needed)


def alone(folder: Path) -> dict[str, str]:
    """The environment of a program in an empty folder that finds no other packages."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, "HOME": str(folder)}


def test_quick_start_runs_with_the_core_requirements_alone(wheel, tmp_path):
    commands, packages = install(wheel, tmp_path / "venv")
    assert {"dglgo", "matplotlib", "pytest"}.isdisjoint(packages)
    program = f"""
import dgl_orient
assert dgl_orient.__file__.startswith({str(tmp_path)!r})
{quick_start()}
assert not dgl_orient.pretrained("oriented-dgcnn-modelnet40").network.training
"""
    (tmp_path / "quick_start.py").write_text(program, encoding="utf-8")
    run(commands / "python", "-I", "quick_start.py", cwd=tmp_path, env=alone(tmp_path))


def test_commands_run_with_the_extra_all_alone(wheel, tmp_path):
    commands, packages = install(wheel, tmp_path / "venv", ["all"])
    assert {"dglgo", "matplotlib", "laspy", "ase"} <= packages and {"pytest", "furo"}.isdisjoint(packages)
    chair, _ = Shapes("test", num_points=1000, num_shapes=1, classes=["chair"])[0]
    write_cloud(tmp_path / "chair.ply", chair.ndata["pos"])

    def dgl_orient(*words: str) -> str:
        return run(commands / "dgl-orient", *words, cwd=tmp_path, env=alone(tmp_path))

    assert dgl_orient("--version").strip() == importlib.metadata.version("dgl-orient")
    dgl_orient("apply", "chair.ply", "--out", "found")
    (row,) = csv.DictReader((tmp_path / "found" / "predictions.csv").open(encoding="utf-8"))
    assert Path(row["file"]).name == "chair.ply"
    dgl_orient("view", "chair.ply", "--out", "chair.png")
    assert (tmp_path / "chair.png").stat().st_size > 10_000


def test_setup_knows_which_pythons_work():
    spec = importlib.util.spec_from_file_location("setup_venv", SETUP_VENV)
    setup_venv = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup_venv)
    assert setup_venv.refusal((3, 10, 0)) is None
    assert setup_venv.refusal((3, 11, 9)) is None
    for version in [(2, 7, 18), (3, 9, 18), (3, 12, 1), (4, 0, 0)]:
        sentence = setup_venv.refusal(version)
        assert "Found Python {}.{}.{}".format(*version) in sentence
        assert "make PYTHON=python3.11 test" in sentence and "\n" not in sentence


def unsuitable_pythons() -> list[str]:
    """Pythons of this machine, from PATH and from pyenv, that are neither 3.10 nor 3.11."""
    names = ["python2.7", *(f"python3.{minor}" for minor in (6, 7, 8, 9, 12, 13, 14))]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [*map(shutil.which, names), *pyenv.glob("versions/*/bin/python")]
    unsuitable = "import sys; sys.exit((3, 10) <= sys.version_info[:2] <= (3, 11))"
    commands = [[str(python), "-c", unsuitable] for python in found if python]
    # Captured, because pyenv puts commands on PATH that only say why they do not start.
    return [c[0] for c in commands if subprocess.run(c, capture_output=True).returncode == 0]


def test_setup_refuses_unsuitable_pythons_with_one_line(tmp_path):
    pythons = unsuitable_pythons()
    if not pythons:
        pytest.skip("this machine has no Python other than 3.10 and 3.11")
    (tmp_path / "tools").mkdir()
    script = shutil.copy(SETUP_VENV, tmp_path / "tools")
    for python in pythons:
        done = subprocess.run([python, script], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert done.stderr.count("\n") == 1 and done.stderr.startswith("Found Python"), done
    assert not (tmp_path / ".venv").exists()


def test_every_constraint_is_one_exact_version(pins):
    for pin in pins:
        (specifier,) = pin.specifier
        assert specifier.operator == "==" and pin.url is None, pin
        assert not {"*", "+"} & set(specifier.version), pin


def test_environment_is_the_pinned_one(pins):
    installed = {canonicalize_name(d.name): d.version for d in importlib.metadata.distributions()}
    applying = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    pinned = {canonicalize_name(pin.name): pin.specifier for pin in applying}
    assert {"torch", "dgl", "numpy"} <= pinned.keys() & installed.keys()
    wrong = {n for n in pinned.keys() & installed.keys() if installed[n] not in pinned[n]}
    assert not wrong, "run make, which installs what constraints.txt pins"
