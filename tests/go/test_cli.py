"""The command line: commands, exit codes, sentences, and what it does not import."""

import importlib.metadata
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from dgl import DGLError

from dgl_orient.config import registry
from dgl_orient.data import write_cloud
from dgl_orient.go import cli, environment, recipes
from dgl_orient.train import checkpoint
from tests.go.commands import TOP, answer, command
from tests.go.hostile import GOOD, HOSTILE


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["recipe", "list"],
        ["configure", "--help"],
        ["configure", "pointcls", "--help"],
        ["train", "--help"],
        ["apply", "--help"],
        ["view", "--help"],
    ],
    ids=" ".join,
)
def test_help_and_list_need_no_torch(arguments, tmp_path):
    for name in ("torch", "dgl", "numpy", "dglgo"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise SystemError('{name} was imported')")
    done = command(*arguments, folder=tmp_path, path=[str(tmp_path)])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("====" if "list" in arguments else "Usage: dgl-orient")


def test_help_names_all_verbs_and_pipelines(capfd):
    _, out, _ = answer(capfd, "--help")
    for verb in ("configure", "configure-apply", "train", "apply", "export", "recipe", "Examples:"):
        assert verb in out
    _, out, _ = answer(capfd, "configure", "--help")
    for pipeline in ("pointcls", "partseg", "normals", "nbody", "nodepred", "linkpred", "graphpred"):
        assert f"\n  {pipeline} " in out


def test_recipe_list_shows_ours_and_dglgos(capfd):
    code, out, _ = answer(capfd, "recipe", "list")
    assert code == 0 and "nodepred_cora_gcn.yaml" in out
    for path in (TOP / "recipes").glob("*.yaml"):
        assert f"| {path.name} " in out


def test_recipe_get(in_folder, capfd):
    assert answer(capfd, "recipe", "get", "nodepred_cora_gcn")[0] == 0
    copied = in_folder / "nodepred_cora_gcn.yaml"
    assert copied.read_bytes() == recipes.example_recipes()[copied.name].path.read_bytes()
    assert answer(capfd, "recipe", "get", copied.name)[0] == 0
    copied.write_text("mine")
    code, _, err = answer(capfd, "recipe", "get", copied.name)
    assert code == 2 and "exists already" in err and copied.read_text() == "mine"
    for name in ("nodepred_cora_gnc.yaml", "../recipes/nodepred_cora_gcn.yaml", "/etc/passwd"):
        code, _, err = answer(capfd, "recipe", "get", name)
        assert code == 2 and err.startswith("There is no recipe") and err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["trian"], "No such command"),
        (["train", "--cgf", "x"], "No such option"),
        (["train", "--cfg", "nowhere.yaml"], "Cannot read 'nowhere.yaml': no such file"),
        (["train", "--cfg", "."], "Cannot read '.': is a directory"),
        (["export", "--cfg", "nowhere.yaml"], "Cannot read 'nowhere.yaml'"),
        (["apply"], "Name files or folders to predict, or give --cfg FILE"),
        (["apply", "--cpt", "x.pth"], "Name files or folders"),
        (["apply", "--cpt", "x.pth", "a.ply"], "x.pth"),
        (["apply", "--cpt", "oriented-dgcnn-modelnet", "a.ply"], "did you mean 'oriented-dgcnn-modelnet40'?"),
        (["apply", "--cfg", "x.yaml", "--cpt", "x.pth"], "With --cfg the recipe says cpt"),
        (["apply", "--cfg", "x.yaml", "--seed", "3"], "With --cfg the recipe says seed"),
        (["configure", "pointcls", "--data", "shapes"], "Missing option '--model'"),
        (["configure", "pointcls", "--data", "shapse", "--model", "dgcnn"], "did you mean 'shapes'?"),
        (
            ["configure", "pointcls", "--data", "shapes", "--model", "egnn"],
            "'egnn' is not known for pointcls",
        ),
        (["configure", "nodepred", "--data", "corra", "--model", "gcn"], "'corra' is not one of 'cora'"),
        (["configure-apply", "pointcls", "--cpt", "nowhere.pth"], "nowhere.pth"),
    ],
)
def test_user_errors_are_sentences(arguments, words, in_folder, capfd):
    code, out, err = answer(capfd, *arguments)
    assert (code, out) == (2, "") and words in err and "Traceback" not in err
    assert not list(in_folder.iterdir())


@pytest.mark.parametrize("verb", ["train", "export"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_recipes_end_in_sentences(name, verb, in_folder, capfd):
    text, words = HOSTILE[name]
    (in_folder / "cfg.yaml").write_text(text)
    code, out, err = answer(capfd, verb)
    assert (code, out) == (2, ""), err
    assert words in err and "Traceback" not in err
    assert all(line.isprintable() and len(line) < 1000 for line in err.splitlines())
    assert [path.name for path in in_folder.iterdir()] == ["cfg.yaml"]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00a", b"caf\xe9: 1", b"a: \x00", b"\x89PNG\r\n", b"\n" * 9]
)
def test_files_that_are_no_text(content, in_folder, capfd):
    (in_folder / "cfg.yaml").write_bytes(content)
    code, _, err = answer(capfd, "train", "--cfg", "cfg.yaml")
    assert code == 2 and "cfg.yaml" in err and err.count("\n") == 1


def test_dglgos_pipelines_work_beside_ours(in_folder, capfd):
    code, out, _ = answer(capfd, "configure", "nodepred", "--data", "cora", "--model", "gcn")
    assert code == 0 and "nodepred_cora_gcn.yaml" in out
    recipe = yaml.safe_load((in_folder / "nodepred_cora_gcn.yaml").read_text())
    assert (recipe["pipeline_name"], recipe["data"]["name"], recipe["model"]["name"]) == (
        "nodepred",
        "cora",
        "gcn",
    )
    assert answer(capfd, "export", "--cfg", "nodepred_cora_gcn.yaml", "--output", "own.py")[0] == 0
    compile((in_folder / "own.py").read_text(), "own.py", "exec")
    # What dglgo refuses is a sentence as well.
    (in_folder / "bad.yaml").write_text(
        "pipeline_name: nodepred\npipeline_mode: train\ndata: {name: corra}\n"
    )
    code, _, err = answer(capfd, "export", "--cfg", "bad.yaml")
    assert code == 2 and "Traceback" not in err


PLUGIN = """
from pathlib import Path
from dgl_orient.config.registry import register_model
from dgl_orient.models import DGCNN

Path("imported").touch()

@register_model("allowed-net", pipelines=["pointcls"])
class AllowedNet(DGCNN):
    pass
"""


def test_plugins_run_only_if_allowed(in_folder, capfd, monkeypatch):
    for table in ("_models", "_imported"):  # what is registered here is gone afterwards
        monkeypatch.setattr(registry, table, getattr(registry, table).copy())
    monkeypatch.syspath_prepend(in_folder)
    (in_folder / "plugin_of_recipe.py").write_text(PLUGIN)
    recipe = GOOD.replace("dgcnn", "allowed-net") + "plugins: [plugin_of_recipe]\n"
    (in_folder / "cfg.yaml").write_text(recipe)
    for verb in ("train", "export"):
        code, _, err = answer(capfd, verb)
        assert code == 2 and "--allow-plugins" in err
        assert "plugin_of_recipe" not in sys.modules and not (in_folder / "imported").exists()
    code, _, err = answer(capfd, "export", "--allow-plugins")
    assert code == 0, err
    assert (in_folder / "imported").exists()
    assert "from plugin_of_recipe import AllowedNet" in (in_folder / "script.py").read_text()
    del sys.modules["plugin_of_recipe"]


def test_train_resume_and_refusal(training, capfd):
    results = json.loads((training / "results" / "results.json").read_text())
    assert set(results["metrics"]["test"]) >= {"accuracy"}
    code, _, err = answer(capfd, "train", "--cfg", training / "cfg.yaml")
    assert code == 2 and "--resume" in err and err.count("\n") == 1
    assert answer(capfd, "train", "--cfg", training / "cfg.yaml", "--resume", "--quiet") == (0, "", "")


def test_apply_directly_and_by_recipe(training, in_folder, capfd):
    write_cloud(in_folder / "cloud.ply", np.random.default_rng(0).random((50, 3)))
    checkpoint = training / "results" / "run_0.pth"
    code, out, err = answer(capfd, "apply", "--cpt", checkpoint, "cloud.ply", "--out", "first")
    assert code == 0, err
    assert "predictions.json" in out
    first = json.loads((in_folder / "first" / "predictions.json").read_text())
    assert answer(capfd, "configure-apply", "pointcls", "--cpt", checkpoint, "--cfg", "apply.yaml")[0] == 0
    recipe = yaml.safe_load((in_folder / "apply.yaml").read_text())
    recipe["data"]["raw_dir"] = "cloud.ply"
    recipe["general_pipeline"]["save_path"] = "second"
    (in_folder / "apply.yaml").write_text(yaml.safe_dump(recipe))
    assert answer(capfd, "apply", "--cfg", "apply.yaml", "--quiet") == (0, "", "")
    assert json.loads((in_folder / "second" / "predictions.json").read_text()) == first


def test_columns_are_given_as_numbers(training, in_folder, capfd):
    cloud = np.random.default_rng(0).random((50, 3))
    np.savetxt(in_folder / "rgb.txt", np.column_stack([cloud, 200 + cloud]))
    given = ["rgb.txt", "--cpt", training / "results" / "run_0.pth", "--quiet", "--columns"]
    assert answer(capfd, "apply", *given, "0,1,2") == (0, "", "")
    code, _, err = answer(capfd, "apply", *given, "x,y")
    assert code == 2 and "such as 0,1,2, got 'x,y'" in err
    code, _, err = answer(capfd, "view", *given, "0, 1,2", "--out", "rgb.html")
    assert (code, err) == (0, "") and (in_folder / "rgb.html").exists()


def test_names_of_files_are_no_formulas(in_folder, capfd):
    for name in ("scan_$5_$.ply", os.fsdecode(b"\xff.ply")):
        try:
            write_cloud(in_folder / name, np.random.default_rng(0).random((50, 3)))
        except DGLError:  # not every file system has such names
            continue
        code, _, err = answer(capfd, "view", name, "--out", "view.png", "--seed", 10**20)
        assert code == 0, err


@pytest.mark.parametrize("output", [".", "", ".."])
def test_scripts_need_a_name(training, output, in_folder, capfd):
    code, _, err = answer(capfd, "export", "--cfg", training / "cfg.yaml", "--output", output)
    assert code == 2 and err.count("\n") == 1 and "write" in err


def test_errors_of_the_network_are_sentences():
    assert cli._sentence(ConnectionError("no route\nto the host")) == "Cannot go on: no route."
    assert cli._sentence(OSError(2, "No such file", "x.yaml")) == "Cannot use x.yaml: no such file."
    assert cli._sentence(RuntimeError("of ours")) is None


def test_warnings_are_sentences(training, in_folder, capfd):
    write_cloud(in_folder / "small.ply", np.random.default_rng(0).random((9, 3)))
    given = ["apply", "--cpt", training / "results" / "run_0.pth", "small.ply", "--quiet"]
    code, out, err = answer(capfd, *given)
    assert (code, out) == (0, "") and err.startswith("Warning: ") and err.endswith(".\n")
    assert "small.ply only 9" in err and err.count("\n") == 1


def test_apply_to_the_data_set_of_the_training(training, in_folder, capfd):
    checkpoint = training / "results" / "run_0.pth"
    words = ["configure-apply", "pointcls", "--data", "shapes", "--cpt", checkpoint, "--cfg", "apply.yaml"]
    assert answer(capfd, *words)[0] == 0
    code, out, err = answer(capfd, "apply", "--cfg", "apply.yaml")
    assert code == 0 and "predictions.csv" in out, err
    stored = json.loads((in_folder / "apply_results" / "predictions.json").read_text())["predictions"]
    assert [each["file"] for each in stored] == [f"test/{number:05d}" for number in range(20)]
    assert answer(capfd, "export", "--cfg", "apply.yaml", "--output", "own.py")[0] == 0
    compile((in_folder / "own.py").read_text(), "own.py", "exec")


def test_configure_train_export_agree(training, in_folder, capfd):
    assert answer(capfd, "configure", "pointcls", "--data", "shapes", "--model", "dgcnn")[0] == 0
    code, out, _ = answer(capfd, "export", "--cfg", "pointcls_shapes_dgcnn.yaml", "--output", "train.py")
    assert code == 0 and "train.py" in out
    compile((in_folder / "train.py").read_text(), "train.py", "exec")


def test_what_this_machine_cannot_do_is_an_error_before_any_work(in_folder, capfd, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    recipe = yaml.safe_load(GOOD) | {"device": "cuda:0"}
    recipe["general_pipeline"]["num_workers"] = 10**6
    (in_folder / "cfg.yaml").write_text(yaml.safe_dump(recipe))
    code, _, err = answer(capfd, "train")
    assert code == 2 and err.count("\n") == 2 and "finds no GPU" in err and "num_workers" in err
    assert not (in_folder / "results").exists()


def test_writing_where_nothing_can_be_written(in_folder, capfd):
    names = ["--data", "shapes", "--model", "dgcnn"]
    code, _, err = answer(capfd, "configure", "pointcls", *names, "--cfg", "no/such/folder/cfg.yaml")
    assert code == 2 and "no/such/folder" in err and err.count("\n") == 1
    assert not list(in_folder.iterdir())


def test_ctrl_c_ends_with_130(tmp_path):
    recipe = yaml.safe_load(GOOD)
    recipe["data"]["num_shapes"], recipe["general_pipeline"]["num_epochs"] = 40, 100000
    (tmp_path / "cfg.yaml").write_text(yaml.safe_dump(recipe))
    environ = {**os.environ, "PYTHONPATH": str(TOP), "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-m", "dgl_orient", "train"]
    process = subprocess.Popen(run, cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True)
    last = tmp_path / "results" / "run_0" / "last.pth"
    while not last.exists() and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130 and "Traceback" not in err and last.name in err
    assert last.exists()


def test_only_the_first_process_prints_but_each_says_why_it_ends(in_folder, capfd, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert answer(capfd, "recipe", "list") == (0, "", "")
    code, out, err = answer(capfd, "train", "--cfg", "nowhere.yaml")
    assert (code, out) == (2, "") and err.startswith("[process 1] ") and "nowhere.yaml" in err


def test_the_version_is_that_of_the_package(capfd):
    assert answer(capfd, "--version") == (0, f"{importlib.metadata.version('dgl-orient')}\n", "")


def test_a_closed_stderr_is_no_error(training, in_folder):
    write_cloud(in_folder / "cloud.ply", np.random.default_rng(0).random((50, 3)))
    (in_folder / "cfg.yaml").write_text((training / "cfg.yaml").read_text().replace(str(training), "."))
    for arguments in (
        ["train"],
        ["apply", "--cpt", "results/run_0.pth", "cloud.ply"],
    ):
        program = f"{shlex.quote(sys.executable)} -m dgl_orient {' '.join(arguments)} 2>&-"
        environ = {**os.environ, "PYTHONPATH": str(TOP)}
        assert subprocess.run(["sh", "-c", program], cwd=in_folder, env=environ).returncode == 0
    assert (in_folder / "results" / "results.json").exists()
    assert (in_folder / "apply_results" / "predictions.csv").exists()


def test_a_worker_that_dies_ends_the_training_in_a_sentence(in_folder):
    recipe = yaml.safe_load(GOOD)
    recipe["data"]["num_shapes"] = 40
    recipe["general_pipeline"] = {"num_epochs": 100000, "num_workers": 2}
    (in_folder / "cfg.yaml").write_text(yaml.safe_dump(recipe))
    environ = {**os.environ, "PYTHONPATH": str(TOP), "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-m", "dgl_orient", "train"]
    process = subprocess.Popen(run, cwd=in_folder, env=environ, stderr=subprocess.PIPE, text=True)
    last = in_folder / "results" / "run_0" / "last.pth"
    while not last.exists() and process.poll() is None:
        time.sleep(0.1)
    os.kill(min(_children(process.pid)), signal.SIGKILL)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2 and "Traceback" not in err, err
    assert "worker process" in err.splitlines()[-1] and last.name in err.splitlines()[-1]
    epochs = len(checkpoint.load(last)["history"])
    log = (in_folder / "results" / "run_0" / "log.jsonl").read_text().splitlines()
    assert epochs >= 1 and len(log) in (epochs, epochs + 1) and all(map(json.loads, log))


def _children(pid: int) -> list[int]:
    """The processes that a process has started."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    fields = [stat[stat.rindex(")") + 2 :].split() for stat in stats]
    pids = [int(stat.split()[0]) for stat in stats]
    return [each for each, rest in zip(pids, fields) if int(rest[1]) == pid]


def test_every_process_says_why_it_ends(in_folder):
    recipe = yaml.safe_load(GOOD)
    recipe["data"]["num_shapes"] = 40
    recipe["general_pipeline"] = {"num_epochs": 100000}
    (in_folder / "cfg.yaml").write_text(yaml.safe_dump(recipe))
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    run = [sys.executable, "-m", "dgl_orient", "train"]
    processes = []
    for rank in "01":
        environ = {**os.environ, **shared, "RANK": rank, "LOCAL_RANK": rank, "PYTHONPATH": str(TOP)}
        processes.append(subprocess.Popen(run, cwd=in_folder, env=environ, stderr=subprocess.PIPE, text=True))
    last = in_folder / "results" / "run_0" / "last.pth"
    while not last.exists() and all(process.poll() is None for process in processes):
        time.sleep(0.1)
    processes[0].kill()
    _, err = processes[1].communicate(timeout=120)
    assert processes[1].returncode == 2 and "Traceback" not in err, err
    assert "[process 1] Another process of this training has ended" in err


def test_bugs_are_not_hidden(monkeypatch):
    monkeypatch.setattr(recipes, "recipe_table", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.run(["recipe", "list"])


def test_environment_keeps_what_the_user_chose(monkeypatch):
    monkeypatch.setenv("DGLBACKEND", "chosen")
    environment.prepare()
    assert os.environ["DGLBACKEND"] == "chosen"
    monkeypatch.delenv("DGLBACKEND")
    environment.prepare()
    assert os.environ["DGLBACKEND"] == "pytorch"


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_freed_memory_is_kept_for_the_next_tensor():
    """Large blocks come from the heap, as they do with glibc only once its thresholds are raised."""
    program = """
        import ctypes
        from dgl_orient.go.environment import prepare
        prepare()
        libc = ctypes.CDLL(None)
        class Use(ctypes.Structure):
            _fields_ = [(name, ctypes.c_size_t) for name in
                        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks top".split()]
        libc.malloc.restype, libc.mallinfo2.restype = ctypes.c_void_p, Use
        before = libc.mallinfo2()
        libc.malloc(ctypes.c_size_t(64 << 20))
        after = libc.mallinfo2()
        print(after.hblks - before.hblks, after.uordblks - before.uordblks >= 64 << 20)
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    run = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(run, env={**kept, "PYTHONPATH": str(TOP)}, capture_output=True, text=True)
    if "mallinfo2" in done.stderr:
        pytest.skip("an old glibc, or another C library")
    assert done.stdout.split() == ["0", "True"], done.stderr
