"""Tasks: losses by hand, sums that add up over pieces, sentences for data that does not fit."""

from __future__ import annotations

import math

import dgl
import pytest
import torch
from dgl import DGLError
from torch import nn

import dgl_orient
from dgl_orient.train.tasks import NBody, NormalEstimation, PartSegmentation, PointClassification
from tests.clouds import generator

PARTS = [(0, 1), (2, 3, 4)]


def clouds(sizes: list[int], **data):
    graph = dgl_orient.point_cloud(torch.zeros(sum(sizes), 3), sizes)
    graph.ndata.update({name: torch.as_tensor(value) for name, value in data.items()})
    return graph


def test_classification_by_hand():
    logits = torch.tensor([[math.log(3.0), 0.0], [0.0, 0.0]])
    loss, count = PointClassification(2).loss(logits, clouds([1, 1]), torch.tensor([0, 1]))
    assert count == 2 and float(loss) == pytest.approx(-math.log(3 / 4) - math.log(1 / 2))
    # With smoothing 0.2 over two classes the truth weighs 0.9 and the other class 0.1.
    smoothed, _ = PointClassification(2, 0.2).loss(logits[:1], clouds([1]), torch.tensor([0]))
    assert float(smoothed) == pytest.approx(-0.9 * math.log(3 / 4) - 0.1 * math.log(1 / 4))


def test_parts_of_other_categories_are_not_predicted():
    task = PartSegmentation(PARTS)
    logits = torch.tensor([[0.0, 1, 9, 0, 0], [9, 0, 1, 0, 0]])
    graph, label = clouds([1, 1], part=[1, 2]), torch.tensor([0, 1])
    assert task.predictions(logits, graph, label).tolist() == [1, 2]
    metric = task.metric()
    task.update(metric, logits, graph, label)
    assert metric.result()["instance_miou"] == 1.0


def test_balanced_parts_weigh_alike_in_each_cloud():
    part, sizes = torch.tensor([0, 0, 0, 1, 2, 4, 4]), [4, 3]
    logits, label = torch.randn(7, 5, generator=generator(0)), torch.tensor([0, 1])
    # Among the parts of each cloud's category.
    nats = torch.cat(
        [
            nn.functional.cross_entropy(logits[:4, :2], part[:4], reduction="none"),
            nn.functional.cross_entropy(logits[4:, 2:], part[4:] - 2, reduction="none"),
        ]
    )
    means = [4 * (nats[:3].mean() + nats[3]) / 2, 3 * (nats[4] + nats[5:].mean()) / 2]
    for balance in (0.0, 0.3, 1.0):
        loss, count = PartSegmentation(PARTS, 0.0, balance).loss(logits, clouds(sizes, part=part), label)
        assert count == 7
        assert float(loss) == pytest.approx(
            float((1 - balance) * nats.sum() + balance * sum(means)), rel=1e-5
        )


def test_iou_loss_of_certain_predictions_is_one_minus_their_miou():
    """Without smoothing; the part that neither has nor is predicted counts as 1."""
    part, predicted = torch.tensor([2, 2, 3] * 100), torch.tensor([2, 3, 3] * 100)
    logits, graph = 99.0 * nn.functional.one_hot(predicted, 5), clouds([300], part=part)
    loss, count = PartSegmentation(PARTS, iou_loss=1.0).loss(logits, graph, torch.tensor([1]))
    cross_entropy, _ = PartSegmentation(PARTS).loss(logits, graph, torch.tensor([1]))
    # A hundredth of the points, 3, is added to intersections and unions.
    assert float(loss - cross_entropy) / count == pytest.approx(1 - (1 + 2 * 103 / 203) / 3, abs=1e-5)


def test_a_part_of_another_category_is_refused():
    with pytest.raises(DGLError, match="class_parts"):
        PartSegmentation(PARTS).loss(torch.zeros(1, 5), clouds([1], part=[2]), torch.tensor([0]))


def test_segmentation_tells_the_category_where_there_is_one():
    class Echo(nn.Module):
        def forward(self, graph, category=None):
            return category

    label = torch.tensor([1, 0])
    assert PartSegmentation(PARTS).forward(Echo(), clouds([1, 1]), label) is label
    assert PartSegmentation(PARTS[:1]).forward(Echo(), clouds([1, 1]), None) is None


def test_segmentation_without_labels_is_of_the_only_category():
    task = PartSegmentation([(0, 1)])
    graph = clouds([2], part=[0, 1])
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    metric = task.metric()
    task.update(metric, logits, graph, None)
    assert metric.result()["class_miou"] == 1.0 and task.loss(logits, graph, None)[1] == 2


def test_normals_by_hand():
    graph = clouds([3], normal=[[0.0, 0, 1], [0, 0, 1], [0, 1, 0]])
    output = torch.tensor([[0.0, 0, 2], [0, 0, -1], [0, 1, 1]])
    root = math.sqrt(0.5)
    assert float(NormalEstimation().loss(output, graph, None)[0]) == pytest.approx(0 + 2 + 1 - root)
    for shape in (output, output.unsqueeze(1)):
        task = NormalEstimation(signed=False)
        assert float(task.loss(shape, graph, None)[0]) == pytest.approx(1 - root)
        metric = task.metric()
        task.update(metric, shape, graph, None)
        assert metric.result() == pytest.approx(
            {"normal_error": (3 - root) / 3, "unsigned_normal_error": (1 - root) / 3}
        )
    assert NormalEstimation().main_metric == "normal_error"
    assert NormalEstimation(signed=False).main_metric == "unsigned_normal_error"


def test_a_normal_of_length_zero_has_a_finite_gradient():
    output = torch.zeros(1, 3, requires_grad=True)
    NormalEstimation().loss(output, clouds([1], normal=[[0.0, 0, 1]]), None)[0].backward()
    assert torch.isfinite(output.grad).all()


def test_nbody_is_the_mean_squared_error():
    truth, output = torch.randn(2, 5, 3, generator=generator())
    graph = clouds([2, 3], target_pos=truth)
    loss, count = NBody().loss(output, graph, None)
    assert float(loss / count) == pytest.approx(float(nn.functional.mse_loss(output, truth)))
    metric = NBody().metric()
    NBody().update(metric, output, graph, None)
    assert metric.result()["mse"] == pytest.approx(float(loss / count))


def test_losses_of_batches_add_up():
    """The sums and counts of two batches are those of both together."""
    rng = generator(1)
    sizes, label = [3, 5], torch.tensor([1, 0])
    normal, target, output = torch.randn(3, 8, 3, generator=rng)
    part, logits = torch.tensor([2, 4, 4, 0, 1, 0, 0, 1]), torch.randn(8, 5, generator=rng)
    both = clouds(sizes, normal=normal, target_pos=target, part=part)
    parts = dgl.unbatch(both)
    cases = [
        (PointClassification(5, 0.1), logits[:2], [logits[:1], logits[1:2]]),
        (PartSegmentation(PARTS, 0.1), logits, logits.split(sizes)),
        (PartSegmentation(PARTS, 0.1, 0.7), logits, logits.split(sizes)),
        (PartSegmentation(PARTS, iou_loss=0.7), logits, logits.split(sizes)),
        (NormalEstimation(), output, output.split(sizes)),
        (NBody(), output, output.split(sizes)),
    ]
    for task, whole, pieces in cases:
        loss, count = task.loss(whole, both, label)
        pairs = [task.loss(*each) for each in zip(pieces, parts, label.split(1))]
        assert float(loss) == pytest.approx(float(sum(pair[0] for pair in pairs)), rel=1e-5)
        assert count == sum(pair[1] for pair in pairs)


@pytest.mark.parametrize(
    "task", [PointClassification(2), NBody(), NormalEstimation()], ids=lambda task: task.name
)
def test_better_is_strictly_better(task):
    high, low = task.is_better(1.0, 0.5), task.is_better(0.5, 1.0)
    assert (high, low) == ((True, False) if task.direction == "max" else (False, True))
    assert not task.is_better(0.5, 0.5) and not task.is_better(math.nan, 0.5)


def test_data_that_does_not_fit_is_a_sentence():
    graph, label = clouds([2]), torch.tensor([0])
    with pytest.raises(DGLError):
        PointClassification(2).loss(torch.zeros(1, 2), graph, None)
    with pytest.raises(DGLError):
        PointClassification(2).loss(torch.zeros(1, 3), graph, label)
    with pytest.raises(DGLError):
        PointClassification(2).loss(torch.zeros(1, 2), graph, torch.tensor([5]))
    with pytest.raises(DGLError, match=r"ndata\['normal'\].*only pos"):
        NormalEstimation().loss(torch.zeros(2, 3), graph, None)
    with pytest.raises(DGLError, match=r"ndata\['target_pos'\]"):
        NBody().loss(torch.zeros(2, 3), graph, None)
    graph.ndata["normal"] = graph.ndata["target_pos"] = torch.zeros(2, 3)
    with pytest.raises(DGLError):
        NormalEstimation().loss(torch.zeros(2, 2, 3), graph, None)
    with pytest.raises(DGLError):
        NBody().loss(torch.zeros(2, 1, 3), graph, None)
