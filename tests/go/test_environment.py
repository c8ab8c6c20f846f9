"""The environment of a process of the command line: what is set, and what is left as it was."""

import os
import shlex
import subprocess
import sys
import textwrap

import pytest

from dgl_orient.go import environment
from tests.go.cli_runner import TOP


def run_prepared(program: str, redirections: str = "") -> subprocess.CompletedProcess:
    """Run a program in a prepared process of its own."""
    start = "from dgl_orient.go.environment import prepare\nprepare()\n"
    words = f"{shlex.quote(sys.executable)} -c {shlex.quote(start + textwrap.dedent(program))} {redirections}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environ = {**kept, "PYTHONPATH": str(TOP)}
    return subprocess.run(["sh", "-c", words], env=environ, capture_output=True, text=True)


def test_what_is_written_to_closed_streams_reaches_no_file(tmp_path):
    path = tmp_path / "file"
    program = f"""
        import os, sys
        with open({str(path)!r}, "w") as file:
            print("to stderr", file=sys.stderr)
            print("to stdout")
            os.write(2, b"to stderr")
            file.write("content")
    """
    assert run_prepared(program, ">&- 2>&-").returncode == 0
    assert path.read_text() == "content"


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
    done = run_prepared(program)
    if "mallinfo2" in done.stderr:
        pytest.skip("an old glibc, or another C library")
    assert done.stdout.split() == ["0", "True"], done.stderr
