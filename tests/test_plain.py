"""Values that files can hold."""

import numpy as np
import torch
from torch import nn

from dgl_orient._plain import as_plain, is_plain


def test_plain_values_are_what_json_can_hold():
    assert is_plain({"a": [1, 2.5, None, True, ("b",)]})
    endless: list = []
    endless.append(endless)
    for value in ({1: 2}, object(), [nn.Linear], endless):
        assert not is_plain(value, maximum=1000)
    given = [np.float32(1.5), (torch.tensor([1, 2]), np.array([3]))]
    assert as_plain(given) == [1.5, ([1, 2], [3])]
