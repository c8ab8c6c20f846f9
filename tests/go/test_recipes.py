"""The recipes that are installed: their list, and copies of them."""

import subprocess
import sys
import textwrap

from dgl_orient.go import recipes
from tests.go.cli_runner import TOP, run_cli


def test_recipe_list_shows_ours_and_dglgos(capfd):
    code, out, _ = run_cli(capfd, "recipe", "list")
    assert code == 0 and "nodepred_cora_gcn.yaml" in out
    for path in (TOP / "recipes").glob("*.yaml"):
        assert f"| {path.name} " in out


def test_recipe_get(in_folder, capfd):
    assert run_cli(capfd, "recipe", "get", "nodepred_cora_gcn")[0] == 0
    copied = in_folder / "nodepred_cora_gcn.yaml"
    assert copied.read_bytes() == recipes.example_recipes()[copied.name].path.read_bytes()
    assert run_cli(capfd, "recipe", "get", copied.name)[0] == 0
    copied.write_text("mine")
    code, _, err = run_cli(capfd, "recipe", "get", copied.name)
    assert code == 2 and "exists already" in err and copied.read_text() == "mine"
    for name in ("nodepred_cora_gnc.yaml", "../recipes/nodepred_cora_gcn.yaml", "/etc/passwd"):
        code, _, err = run_cli(capfd, "recipe", "get", name)
        assert code == 2 and err.startswith("There is no recipe") and err.count("\n") == 1


def test_recipes_are_copied_whole_or_not_at_all(in_folder):
    program = """
        import resource, signal, sys
        from dgl_orient.go import cli
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        sys.exit(cli.run(["recipe", "get", "nodepred_cora_gcn.yaml"]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 2 and "nodepred_cora_gcn.yaml: file too large" in done.stderr, done.stderr
    assert str(in_folder) in done.stderr and not list(in_folder.iterdir())
