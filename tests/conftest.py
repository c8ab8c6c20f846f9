"""Settings of all tests: repeatable examples, no time limit on a single one."""

import hypothesis
import pytest
import torch

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=25)
hypothesis.settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
