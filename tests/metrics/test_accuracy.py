"""Accuracy: hand-worked values and scikit-learn's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix

from dgl_orient.metrics import Accuracy
from tests.clouds import generator

from .counted import counted


def test_accuracy_by_hand():
    # Class 0: 2 of 3 right, class 1: 1 of 1, class 2: none there, class 3: 0 of 1.
    result = counted(Accuracy(4), [0, 0, 3, 1, 2], [0, 0, 0, 1, 3]).result()
    assert result == pytest.approx({"accuracy": 3 / 5, "class_accuracy": (2 / 3 + 1 + 0) / 3})


def test_a_single_class_is_counted_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric = counted(Accuracy(1), [0, 0], [0, 0])
    assert metric.totals.tolist() == [[2]] and metric.result() == {"accuracy": 1.0, "class_accuracy": 1.0}


def test_accuracy_in_batches_is_that_of_scikit_learn():
    pred, label = torch.randint(5, (2, 300), generator=generator())
    metric = Accuracy(5)
    for each in zip(pred.split(64), label.split(64)):
        metric.update(*each)
    expected = {
        "accuracy": accuracy_score(label, pred),
        "class_accuracy": balanced_accuracy_score(label, pred),
    }
    assert metric.result() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(metric.totals, confusion_matrix(label, pred))


def test_accuracy_of_logits():
    logits = torch.tensor([[0.1, 0.9], [2.0, -1.0]])
    assert counted(Accuracy(2), logits, [1, 1]).result() == {"accuracy": 0.5, "class_accuracy": 0.5}
