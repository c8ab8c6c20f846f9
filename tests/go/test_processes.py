"""Trainings that are stopped, whose workers or other processes die, and processes that cannot print."""

import json
import multiprocessing
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dgl_orient.train import checkpoint
from tests.go.cli_runner import TOP, run_cli, start_process, write_recipe

LAST = Path("results", "001", "run_0", "last.pth")


@contextmanager
def once_an_epoch_has_ended(action: Callable[[], object]) -> Iterator[None]:
    """Call a function in another thread."""
    ended = threading.Event()

    def watch() -> None:
        while not LAST.exists():
            if ended.wait(0.01):
                return
        action()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_ctrl_c_ends_with_130(in_folder, capfd):
    write_recipe(in_folder, num_epochs=100000)
    main = threading.main_thread().ident
    with once_an_epoch_has_ended(lambda: signal.pthread_kill(main, signal.SIGINT)):
        code, _, err = run_cli(capfd, "train")
    assert code == 130 and "Traceback" not in err and LAST.name in err
    assert LAST.exists()


def test_a_worker_that_dies_ends_the_training_in_a_sentence(in_folder, capfd):
    write_recipe(in_folder, num_epochs=100000, num_workers=2)

    def kill_workers() -> None:
        # All of them: one that has given its last batch is not missed.
        for worker in multiprocessing.active_children():
            os.kill(worker.pid, signal.SIGKILL)

    with once_an_epoch_has_ended(kill_workers):
        code, _, err = run_cli(capfd, "train")
    assert code == 2 and "Traceback" not in err, err
    assert "worker process" in err.splitlines()[-1] and LAST.name in err.splitlines()[-1]
    epochs = len(checkpoint.load(LAST)["history"])
    log = LAST.with_name("log.jsonl").read_text().splitlines()
    assert epochs >= 1 and len(log) in (epochs, epochs + 1) and all(map(json.loads, log))


def test_every_process_says_why_it_ends(in_folder):
    write_recipe(in_folder, num_epochs=100000)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    # As on two machines: each process is the first of its own.
    shared = dict(WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    processes = [start_process("train", folder=in_folder, RANK=rank, **shared) for rank in "01"]
    while not LAST.exists() and all(process.poll() is None for process in processes):
        time.sleep(0.1)
    processes[0].kill()
    processes[0].communicate()
    _, err = processes[1].communicate(timeout=120)
    assert processes[1].returncode == 2 and "Traceback" not in err, err
    assert "[process 1] Another process of this training has ended" in err


def test_only_the_first_process_prints_but_each_says_why_it_ends(in_folder, capfd, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert run_cli(capfd, "recipe", "list") == (0, "", "")
    code, out, err = run_cli(capfd, "train", "--cfg", "nowhere.yaml")
    assert (code, out) == (2, "") and err.startswith("[process 1] ") and "nowhere.yaml" in err


@pytest.fixture
def sigterm_handler():
    """The command line replaces it under torchrun."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_half_of_the_variables_of_torchrun_is_a_sentence(in_folder, capfd, monkeypatch, sigterm_handler):
    write_recipe(in_folder)
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, _, err = run_cli(capfd, "train")
    assert code == 2 and "start them with torchrun" in err and "Traceback" not in err


def test_closed_streams_are_no_error(in_folder):
    """Every command starts with streams that lead somewhere; no message ends up in the file it writes."""
    name = "pointcls_shapes_dgcnn-quick.yaml"
    program = f"{shlex.quote(sys.executable)} -m dgl_orient recipe get {name} >&- 2>&-"
    environ = {**os.environ, "PYTHONPATH": str(TOP)}
    assert subprocess.run(["sh", "-c", program], cwd=in_folder, env=environ).returncode == 0
    assert (in_folder / name).read_bytes() == (TOP / "recipes" / name).read_bytes()
