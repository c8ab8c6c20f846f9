"""IoU of parts: hand-worked values, the plain definition, batches and processes."""

from __future__ import annotations

import math

import pytest
import torch

from dgl_orient.metrics import PartIoU, restrict_to_class
from tests.clouds import generator

from .counted import PARTS, counted


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
