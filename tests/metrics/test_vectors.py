"""Errors of vectors: hand-worked values, and batches."""

from __future__ import annotations

import math

import pytest
import torch

from dgl_orient.metrics import MeanSquaredError, NormalError
from tests.clouds import generator

from .counted import counted


def test_normal_errors_by_hand():
    normal = torch.tensor([[0.0, 0, 1]] * 4)
    pred = torch.tensor([[0.0, 0, 5], [0, 0, -1], [3, 0, 3], [0, 0, 0]])
    cosines = [1, -1, math.sqrt(0.5), 0]
    assert counted(NormalError(), pred, normal).result() == pytest.approx(
        {
            "normal_error": sum(1 - cosine for cosine in cosines) / 4,
            "unsigned_normal_error": sum(1 - abs(cosine) for cosine in cosines) / 4,
        }
    )


def test_normal_errors_weigh_points_not_batches():
    pred, normal = torch.randn(2, 50, 3, generator=generator())
    whole, parts = counted(NormalError(), pred, normal), NormalError()
    for rows in (slice(0, 3), slice(3, 50)):
        parts.update(pred[rows], normal[rows])
    assert parts.result() == pytest.approx(whole.result())
    cosine = torch.nn.functional.cosine_similarity(pred, normal)
    assert whole.result()["normal_error"] == pytest.approx(float((1 - cosine).mean()), abs=1e-6)


def test_squared_error_by_hand_and_in_batches():
    pred, target = [[1.0, 0, 0], [0, 2, 0], [0, 0, 3]], [[0.0, 0, 0]] * 3
    metric = counted(MeanSquaredError(), pred[:1], target[:1])
    metric.merge(counted(MeanSquaredError(), pred[1:], target[1:]))
    assert metric.result() == {"mse": pytest.approx((1 + 4 + 9) / 9)}
