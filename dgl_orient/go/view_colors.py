"""What the colours of a cloud's points can tell: a network's answers, its errors, and what the file knows."""

from __future__ import annotations

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor
from torch.nn.functional import normalize

from .._messages import nearest
from ..plot.colors import Coloring, by_category, by_direction, by_value
from .posed import Pose, Subject

__all__ = ["COLORS", "answer_in_words", "check_color", "colorings"]

#: What ``--color`` may be.
COLORS = ("class", "part", "error", "normal", "distance")

_RIGHT_OR_WRONG = (["right", "wrong"], [(200, 208, 218), (112, 40, 130)])


def check_color(name: str | None) -> None:
    """Raise unless there is such a colouring."""
    if name not in (None, *COLORS):
        raise DGLError(f"There is no colouring {name!r}: {nearest(name, COLORS)}")


def colorings(subject: Subject, pose: Pose, wanted: str | None) -> tuple[Coloring, ...]:
    """All that there is to colour by; the first is the most telling.

    Directions are those of the first pose, so that a point has the same colour in all poses.

    Raises
    ------
    DGLError
        If the wanted one is not among them.
    """
    pipeline = None if subject.trained is None else subject.trained.pipeline
    makers = {"pointcls": _of_class, "partseg": _of_parts, "normals": _of_normals, "nbody": _of_particles}
    found = makers[pipeline](subject, pose) if pipeline else []
    pos = pose.graph.ndata["pos"]
    distance = by_value("distance", (pos - pos.mean(0)).norm(dim=1).numpy(), low=0.0)
    found = [distance, *found] if pipeline in (None, "pointcls", "nbody") else [*found, distance]
    names = [each.name for each in found]
    data = pose.graph.ndata
    if "normal" in data and "normal" not in names:
        found.append(by_direction("normal", (data["normal"] @ pose.turn).numpy()))
    if "part" in data and "part" not in names:
        found.append(_known_parts(data["part"]))
    if wanted is not None and wanted not in [each.name for each in found]:
        raise DGLError(_missing(wanted, subject, [each.name for each in found]))
    return tuple(found)


def answer_in_words(subject: Subject, pose: Pose) -> str:
    """The class that the network answers with, and how sure it is; nothing for other answers."""
    if subject.trained is None or subject.trained.pipeline != "pointcls":
        return ""
    share, best = pose.seen.answer[0].softmax(0).max(0)
    return f"{subject.trained.metadata['class_names'][int(best)]} {float(share):.0%}"


def _of_class(subject: Subject, pose: Pose) -> list[Coloring]:
    best = int(pose.seen.answer[0].argmax())
    numbers = np.full(pose.graph.num_nodes(), best)
    return [by_category("class", numbers, subject.trained.metadata["class_names"])]


def _of_parts(subject: Subject, pose: Pose) -> list[Coloring]:
    label = None if subject.label is None else torch.tensor([subject.label])
    found = subject.trained.task.predictions(pose.seen.answer, pose.graph, label)
    facts = subject.trained.metadata
    names = facts.get("part_names") or [str(number) for number in range(facts["num_parts"])]
    made = [by_category("part", found.numpy(), names)]
    if "part" in pose.graph.ndata:
        wrong = pose.graph.ndata["part"].reshape(-1).long() != found
        made.append(by_category("error", wrong.long().numpy(), *_RIGHT_OR_WRONG))
    return made


def _of_normals(subject: Subject, pose: Pose) -> list[Coloring]:
    found = normalize(pose.seen.answer.reshape(-1, 3), dim=1)
    made = [by_direction("normal", (found @ pose.turn).numpy())]
    if "normal" in pose.graph.ndata:
        cosine = (found * pose.graph.ndata["normal"]).sum(1)
        cosine = cosine if subject.trained.task.signed else cosine.abs()
        made.append(by_value("error", torch.rad2deg(cosine.clamp(-1, 1).acos()).numpy(), low=0.0))
    return made


def _of_particles(subject: Subject, pose: Pose) -> list[Coloring]:
    target = pose.graph.ndata.get("target_pos")
    if target is None:
        return []
    return [by_value("error", (pose.seen.answer - target).norm(dim=1).numpy(), low=0.0)]


def _known_parts(part: Tensor) -> Coloring:
    """Of a file whose parts have no names."""
    numbers = part.reshape(-1).long().numpy()
    order = sorted(set(numbers.tolist()))
    places = np.searchsorted(order, numbers)
    return by_category("part", places, [str(number) for number in order])


def _missing(wanted: str, subject: Subject, there: list[str]) -> str:
    needs = {
        "class": "--cpt of a network for pointcls",
        "part": "--cpt of a network for partseg, or a file with a column part",
        "error": "--cpt of a network for partseg, normals or nbody, and a file with the true answers",
        "normal": "--cpt of a network for normals, or a file with normals",
    }
    return (
        f"{subject.path} cannot be coloured by {wanted} here, which needs {needs[wanted]}; there is "
        f"{', '.join(there)}."
    )
