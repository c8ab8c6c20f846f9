"""Settings of all tests: repeatable examples, no time limit on a single one."""

import os

# Some virtual machines announce matrix instructions that they cannot carry out; products in bfloat16 would
# end the tests there.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
