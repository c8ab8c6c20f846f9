"""Tests of the repetition of rare classes."""

import numpy as np
import pytest
from dgl import DGLError
from torch.utils.data import Subset

from dgl_orient.data import Shapes
from dgl_orient.train.augmentation import with_transform
from dgl_orient.train.class_balance import with_class_balance


class _Labelled(Shapes):
    """12, 3 and 1 clouds of three classes."""

    @property
    def labels(self):
        return np.repeat([0, 1, 2], [12, 3, 1])


def _clouds():
    return _Labelled("train", num_points=8, num_shapes=16)


@pytest.mark.parametrize("balance, times", [(0.0, [1, 1, 1]), (0.5, [1, 1, 2]), (1.0, [1, 2, 5])])
def test_rare_classes_are_repeated(balance, times):
    clouds = with_class_balance(_clouds(), balance)
    indices = getattr(clouds, "indices", range(16))
    assert np.bincount(_clouds().labels[list(indices)]).tolist() == [
        number * repeated for number, repeated in zip([12, 3, 1], times)
    ]


def test_subsets_and_transforms_keep_their_labels():
    few = Subset(with_transform(_clouds(), lambda graph: graph), [0, 1, 15])
    assert with_class_balance(few, 1.0).indices == [0, 1, 2, 2]


def test_a_data_set_without_labels_is_refused():
    with pytest.raises(DGLError):
        with_class_balance([1, 2, 3], 0.5)
