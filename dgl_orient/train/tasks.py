"""Tasks: how a network is called, its loss, and its metrics."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn
from torch.nn import functional

from ..metrics import Accuracy, MeanSquaredError, NormalError, PartIoU, restrict_to_class
from ..metrics.average import Average
from .part_loss import balance_of_parts, expected_iou_loss, part_cross_entropy
from .settings import Settings

__all__ = ["NBody", "NormalEstimation", "PartSegmentation", "PointClassification", "Task", "point_attribute"]


class Task(ABC):
    """What a network is trained for.

    A task of one's own sets ``name``, ``main_metric`` and ``direction``, and has :meth:`loss`, :meth:`metric`
    and :meth:`update`.
    """

    name: str  #: as in a recipe's ``pipeline_name``
    main_metric: str  #: the metric by which the validation set chooses the best epoch
    direction: Literal["max", "min"]  #: whether a good one is large, ``"max"``, or small, ``"min"``
    #: Whether clouds are normalized, augmented and rotated as the settings of a training say.
    transforms_clouds: bool = True
    #: Whether clouds are given the upward direction of their data set, ``ndata["up"]``.
    needs_up: bool = False
    #: Whether outputs have a row for each cloud, not for each point.
    per_cloud: bool = False

    def with_settings(self, settings: Settings) -> Task:
        """This task, with what it was not given explicitly taken from the settings of a training."""
        return self

    def metadata(self) -> dict[str, object]:
        """What a checkpoint stores of the task, in plain values."""
        return {}

    def forward(self, model: nn.Module, graph: DGLGraph, label: Tensor | None) -> Tensor:
        """The network's output for a batch of clouds and, where clouds have one, their classes."""
        return model(graph)

    @abstractmethod
    def loss(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> tuple[Tensor, int]:
        """The sum of the losses of all samples, and how many there are.

        Several processes add up both: the mean is then over all samples of all processes.
        """

    @abstractmethod
    def metric(self) -> Average:
        """A new metric, such as those in :mod:`dgl_orient.metrics`."""

    @abstractmethod
    def update(self, metric: Average, output: Tensor, graph: DGLGraph, label: Tensor | None) -> None:
        """Count a batch."""

    def is_better(self, value: float, than: float) -> bool:
        """Whether a value of the main metric beats another."""
        return value > than if self.direction == "max" else value < than


class PointClassification(Task):
    """The class of a cloud; networks return logits ``(B, num_classes)``.

    Parameters
    ----------
    num_classes : int
        How many classes there are.
    label_smoothing : float, optional
        The probability that is spread over all classes; that of the settings of a training if not given.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.train.tasks import PointClassification
    >>> task = PointClassification(2)
    >>> clouds = dgl_orient.point_cloud(torch.rand(6, 3), [2, 4])
    >>> task.loss(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), clouds, torch.tensor([0, 1]))
    (tensor(1.3863), 2)
    """

    name, main_metric, direction = "pointcls", "accuracy", "max"
    per_cloud = True

    def __init__(self, num_classes: int, label_smoothing: float | None = None) -> None:
        self.num_classes, self.label_smoothing = num_classes, label_smoothing

    def with_settings(self, settings: Settings) -> PointClassification:
        return _filled(self, label_smoothing=settings.label_smoothing)

    def metadata(self) -> dict[str, object]:
        return {"num_classes": self.num_classes}

    def loss(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> tuple[Tensor, int]:
        losses = _cross_entropy(output, self._checked(label), self.num_classes, self.label_smoothing)
        return losses.sum(), len(losses)

    def metric(self) -> Accuracy:
        return Accuracy(self.num_classes)

    def update(self, metric: Accuracy, output: Tensor, graph: DGLGraph, label: Tensor | None) -> None:
        metric.update(output, self._checked(label))

    def _checked(self, label: Tensor | None) -> Tensor:
        if label is None:
            raise DGLError("Classification needs clouds with labels, but the data set gives none.")
        return label


class PartSegmentation(Task):
    """The part of every point; networks are conditioned on the cloud's category and return logits
    ``(N, num_parts)``.

    A data set without labels has a single category, and its networks are not conditioned.

    Parameters
    ----------
    class_parts : sequence of sequences of int
        The parts of each category. Only these are predicted for its clouds.
    label_smoothing : float, optional
        The probability that is spread over all parts of the category; that of the settings of a training if
        not given.
    part_balance : float, optional
        How far all parts of a cloud weigh alike in the loss, from 0, every point does, to 1, so that small
        parts are learned as well, which the mIoU counts like large ones; as the settings say if not given.
    iou_loss : float, optional
        The weight of :func:`~dgl_orient.train.part_loss.expected_iou_loss` beside the cross entropy; as the
        settings say if not given.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.train.tasks import PartSegmentation
    >>> clouds = dgl_orient.point_cloud(torch.rand(4, 3))
    >>> clouds.ndata["part"] = torch.tensor([0, 1, 1, 1])
    >>> output = torch.tensor([[0.0, 9.0]] * 4)
    >>> for balance in (0.0, 1.0):
    ...     print(PartSegmentation([[0, 1]], part_balance=balance).loss(output, clouds, None))
    (tensor(9.0005), 4)
    (tensor(18.0005), 4)
    """

    name, main_metric, direction = "partseg", "instance_miou", "max"

    def __init__(
        self,
        class_parts: Sequence[Sequence[int]],
        label_smoothing: float | None = None,
        part_balance: float | None = None,
        iou_loss: float | None = None,
    ) -> None:
        self.class_parts = [tuple(parts) for parts in class_parts]
        self.num_parts = 1 + max((part for parts in self.class_parts for part in parts), default=0)
        self.label_smoothing, self.part_balance, self.iou_loss = label_smoothing, part_balance, iou_loss

    def with_settings(self, settings: Settings) -> PartSegmentation:
        names = ("label_smoothing", "part_balance", "iou_loss")
        return _filled(self, **{name: getattr(settings, name) for name in names})

    def metadata(self) -> dict[str, object]:
        return {"num_parts": self.num_parts, "class_parts": [list(parts) for parts in self.class_parts]}

    def forward(self, model: nn.Module, graph: DGLGraph, label: Tensor | None) -> Tensor:
        return model(graph) if label is None else model(graph, label)

    def loss(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> tuple[Tensor, int]:
        part, num_points = point_attribute(graph, "part"), graph.batch_num_nodes()
        _check_logits(output, part, self.num_parts)
        # In bfloat16 the logarithm would lose what distinguishes good predictions from better ones.
        category, output = self._category(graph, label), output.float()
        logits = restrict_to_class(output, category, num_points, self.class_parts)
        losses = part_cross_entropy(logits, part, self.label_smoothing or 0.0)
        if bool((losses == torch.inf).any()):
            raise DGLError(
                "Expected the parts of all points to be among class_parts of their clouds' categories."
            )
        if self.part_balance:
            losses = losses.lerp(
                losses * balance_of_parts(part, num_points, self.num_parts), self.part_balance
            )
        if self.iou_loss:
            iou_losses = expected_iou_loss(logits, part, num_points)
            losses = losses + self.iou_loss * iou_losses.repeat_interleave(num_points)
        return losses.sum(), len(part)

    def metric(self) -> PartIoU:
        return PartIoU(self.class_parts)

    def update(self, metric: PartIoU, output: Tensor, graph: DGLGraph, label: Tensor | None) -> None:
        pred = self.predictions(output, graph, label)
        metric.update(
            pred, point_attribute(graph, "part"), self._category(graph, label), graph.batch_num_nodes()
        )

    def predictions(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> Tensor:
        """The likeliest part of each point ``(N,)`` among those of its cloud's category."""
        category = self._category(graph, label)
        return restrict_to_class(output, category, graph.batch_num_nodes(), self.class_parts).argmax(1)

    def _category(self, graph: DGLGraph, label: Tensor | None) -> Tensor:
        return torch.zeros_like(graph.batch_num_nodes()) if label is None else label


class NormalEstimation(Task):
    """The normal at every point; networks return vectors ``(N, 3)`` or ``(N, 1, 3)``.

    The loss is 1 - cos of the angle to the true normal, or 1 - abs(cos) where normals of the data set point
    to either side. Both errors are measured.

    Parameters
    ----------
    signed : bool, optional
        Whether it matters to which side a normal points; as the settings of a training say if not given.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.train.tasks import NormalEstimation
    >>> clouds = dgl_orient.point_cloud(torch.rand(2, 3))
    >>> clouds.ndata["normal"] = torch.tensor([[0.0, 0, 1], [0, 0, 1]])
    >>> output = torch.tensor([[0.0, 0, -3], [0, 2, 0]])
    >>> [NormalEstimation(signed).loss(output, clouds, None) for signed in (True, False)]
    [(tensor(3.), 2), (tensor(1.), 2)]
    """

    name, direction = "normals", "min"

    def __init__(self, signed: bool | None = None) -> None:
        self.signed = signed

    @property
    def main_metric(self) -> str:
        return "unsigned_normal_error" if self.signed is False else "normal_error"

    def with_settings(self, settings: Settings) -> NormalEstimation:
        return _filled(self, signed=settings.signed)

    def loss(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> tuple[Tensor, int]:
        cosine = functional.cosine_similarity(*self._pair(output, graph), dim=1)
        return (1 - (cosine.abs() if self.signed is False else cosine)).sum(), len(cosine)

    def metric(self) -> NormalError:
        return NormalError()

    def update(self, metric: NormalError, output: Tensor, graph: DGLGraph, label: Tensor | None) -> None:
        metric.update(*self._pair(output, graph))

    def _pair(self, output: Tensor, graph: DGLGraph) -> tuple[Tensor, Tensor]:
        normal = point_attribute(graph, "normal")
        if output.shape not in (normal.shape, (len(normal), 1, 3)):
            raise DGLError(
                f"Expected one vector a point, (N, 1, 3), from the network, got {tuple(output.shape)}."
            )
        return output.float().view(-1, 3), normal.float()


class NBody(Task):
    """Where particles are some time later; networks return positions ``(N, 3)``."""

    name, main_metric, direction = "nbody", "mse", "min"
    transforms_clouds = False  # the physics has a scale

    def loss(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> tuple[Tensor, int]:
        target = point_attribute(graph, "target_pos")
        if output.shape != target.shape:
            raise DGLError(
                f"Expected positions {tuple(target.shape)} from the network, got {tuple(output.shape)}."
            )
        return (output.float() - target).square().sum(), target.numel()

    def metric(self) -> MeanSquaredError:
        return MeanSquaredError()

    def update(self, metric: MeanSquaredError, output: Tensor, graph: DGLGraph, label: Tensor | None) -> None:
        metric.update(output, point_attribute(graph, "target_pos"))


def _filled(task: Task, **values: object) -> Task:
    """A copy of a task with these values in the place of those that are None."""
    filled = copy.copy(task)
    for name, value in values.items():
        if getattr(task, name) is None:
            setattr(filled, name, value)
    return filled


def _cross_entropy(logits: Tensor, truth: Tensor, number: int, smoothing: float | None) -> Tensor:
    """The loss of each sample."""
    _check_logits(logits, truth, number)
    # In bfloat16 the logarithm would lose what distinguishes good predictions from better ones.
    return functional.cross_entropy(logits.float(), truth, reduction="none", label_smoothing=smoothing or 0.0)


def _check_logits(logits: Tensor, truth: Tensor, number: int) -> None:
    """Raise unless the logits and the labels are of so many classes."""
    if logits.shape != (len(truth), number):
        raise DGLError(
            f"Expected logits of shape ({len(truth)}, {number}) from the network, got {tuple(logits.shape)}."
        )
    if len(truth) and not 0 <= int(truth.min()) <= int(truth.max()) < number:
        raise DGLError(
            f"Expected labels from 0 to {number - 1}, got {int(truth.min())} to {int(truth.max())}; give the "
            f"task the data set's number of classes."
        )


def point_attribute(graph: DGLGraph, name: str) -> Tensor:
    if name not in graph.ndata:
        raise DGLError(
            f"This task needs clouds with ndata[{name!r}], but the data set has only "
            f"{', '.join(sorted(graph.ndata))}."
        )
    return graph.ndata[name]
