"""Settings of all tests: repeatable examples, no time limit on a single one."""

import os
import signal

# A shell that runs tests in the background lets them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Some virtual machines announce matrix instructions that they cannot carry out; products in bfloat16 would
# end the tests there.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
hypothesis.settings.load_profile("repeatable")


if (
    "PYTEST_XDIST_WORKER_COUNT" in os.environ
):  # the workers share the cores, and so do the processes they start
    threads = max(1, (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
