"""Metrics: hand-worked values, the plain definition, batches and processes."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from dgl import DGLError
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix

from dgl_orient.metrics import Accuracy, MeanSquaredError, NormalError, PartIoU, restrict_to_class
from tests.clouds import generator

#: Three categories of 2, 3 and 1 parts.
PARTS = [(0, 1), (2, 3, 4), (5,)]


def counted(metric, *arguments):
    metric.update(*map(torch.as_tensor, arguments))
    return metric


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


def test_miou_by_hand():
    # Shape 0, category 0: part 0 is right in 2 of 3 points of its union, part 1 in 1 of 2: 7/12.
    # Shape 1, category 1: part 2 all right, part 3 in 0 of 1, part 4 in neither, so 1: 2/3.
    # Shape 2, category 0: only part 0, all right, part 1 in neither, so 1: 1.
    part = [0, 0, 1, 1, 2, 2, 3, 0]
    pred = [0, 0, 0, 1, 2, 2, 5, 0]
    metric = counted(PartIoU(PARTS), pred, part, [0, 1, 0], [4, 3, 1])
    assert metric.result() == pytest.approx(
        {"instance_miou": (7 / 12 + 2 / 3 + 1) / 3, "class_miou": ((7 / 12 + 1) / 2 + 2 / 3) / 2}
    )
    by_class = metric.by_class()
    assert by_class[:2] == pytest.approx([(7 / 12 + 1) / 2, 2 / 3]) and math.isnan(by_class[2])


def test_a_predicted_part_that_is_absent_counts_zero():
    assert counted(PartIoU(PARTS), [0, 1], [0, 0], [0], [2]).result()["instance_miou"] == (1 / 2 + 0) / 2


def plain_miou(pred, part, label, num_nodes):
    """The definition, shape by shape."""
    shapes = []
    for number, (one_pred, one_part) in enumerate(zip(pred.split(num_nodes), part.split(num_nodes))):
        ious = []
        for each in PARTS[label[number]]:
            either = (one_pred == each) | (one_part == each)
            both = (one_pred == each) & (one_part == each)
            ious.append(float(both.sum() / either.sum()) if either.any() else 1.0)
        shapes.append(sum(ious) / len(ious))
    means = []
    for category in set(label.tolist()):
        own = [value for value, each in zip(shapes, label.tolist()) if each == category]
        means.append(sum(own) / len(own))
    return {"instance_miou": sum(shapes) / len(shapes), "class_miou": sum(means) / len(means)}


def random_shapes(count=30, seed=0):
    rng = generator(seed)
    label = torch.randint(3, (count,), generator=rng)
    num_nodes = torch.randint(1, 9, (count,), generator=rng)
    logits = torch.randn(int(num_nodes.sum()), 6, generator=rng)
    part = restrict_to_class(torch.randn(logits.shape, generator=rng), label, num_nodes, PARTS).argmax(1)
    pred = restrict_to_class(logits, label, num_nodes, PARTS).argmax(1)
    return pred, part, label, num_nodes


def test_miou_is_the_plain_definition():
    pred, part, label, num_nodes = random_shapes()
    expected = plain_miou(pred, part, label, num_nodes.tolist())
    assert counted(PartIoU(PARTS), pred, part, label, num_nodes).result() == pytest.approx(expected)


def test_batches_and_processes_count_each_shape_once():
    pred, part, label, num_nodes = random_shapes()
    whole = counted(PartIoU(PARTS), pred, part, label, num_nodes)
    processes = [PartIoU(PARTS), PartIoU(PARTS), PartIoU(PARTS)]
    stops = num_nodes.cumsum(0).tolist()
    # Uneven batches, one of them empty, in three processes of which the last has none.
    for process, (first, last) in zip([0, 1, 1, 0], [(0, 1), (1, 14), (14, 14), (14, 30)]):
        points = slice(stops[first - 1] if first else 0, stops[last - 1])
        processes[process].update(pred[points], part[points], label[first:last], num_nodes[first:last])
    merged = PartIoU(PARTS)
    for each in processes:
        merged.merge(each)
    assert merged.result() == pytest.approx(whole.result())
    assert sum(each.totals for each in processes)[:, 1].sum() == len(num_nodes)


def test_restriction_leaves_the_category_s_logits():
    logits = torch.arange(12.0).view(2, 6)
    restricted = restrict_to_class(logits, torch.tensor([1, 2]), torch.tensor([1, 1]), PARTS)
    inf = torch.inf
    assert restricted.tolist() == [[-inf, -inf, 2, 3, 4, -inf], [-inf] * 5 + [11]]


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


@pytest.mark.parametrize("metric", [Accuracy(3), PartIoU(PARTS), NormalError()])
def test_a_result_of_nothing_gives_a_sentence(metric):
    with pytest.raises(DGLError):
        metric.result()


def test_squared_error_by_hand_and_in_batches():
    pred, target = [[1.0, 0, 0], [0, 2, 0], [0, 0, 3]], [[0.0, 0, 0]] * 3
    metric = counted(MeanSquaredError(), pred[:1], target[:1])
    metric.merge(counted(MeanSquaredError(), pred[1:], target[1:]))
    assert metric.result() == {"mse": pytest.approx((1 + 4 + 9) / 9)}


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
