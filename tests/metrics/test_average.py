"""What all metrics have in common: results of nothing, and wrong arguments."""

from __future__ import annotations

import pytest
import torch
from dgl import DGLError

from dgl_orient.metrics import Accuracy, MeanSquaredError, NormalError, PartIoU, restrict_to_class

from .counted import PARTS, counted


@pytest.mark.parametrize("metric", [Accuracy(3), PartIoU(PARTS), NormalError()])
def test_a_result_of_nothing_gives_a_sentence(metric):
    with pytest.raises(DGLError):
        metric.result()


@pytest.mark.parametrize(
    "call",
    [
        lambda: counted(Accuracy(2), [0, 2], [0, 1]),
        lambda: counted(Accuracy(2), [0], [0, 1]),
        lambda: counted(Accuracy(2), [0], [0.0]),
        lambda: counted(PartIoU(PARTS), [0], [6], [0], [1]),
        lambda: counted(PartIoU(PARTS), [0], [0], [3], [1]),
        lambda: counted(PartIoU(PARTS), [0, 0], [0, 0], [0], [1]),
        lambda: PartIoU([(0, 1), ()]),
        lambda: Accuracy(2).merge(Accuracy(3)),
        lambda: counted(MeanSquaredError(), [[1.0]], [1.0]),
        lambda: counted(NormalError(), [[1.0, 0]], [[1.0, 0]]),
        lambda: restrict_to_class(torch.ones(1, 5), torch.tensor([0]), torch.tensor([1]), PARTS),
    ],
)
def test_wrong_arguments_are_refused(call):
    with pytest.raises(DGLError):
        call()
