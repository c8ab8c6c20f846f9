"""What a task and a model must know of a data set: its classes, parts and targets, checked."""

from __future__ import annotations

from collections.abc import Mapping

from dgl import DGLError

from .._plain import as_plain
from .._validation import as_integer
from ..data import PointCloudDataset

__all__ = ["METADATA", "complete_metadata", "dataset_metadata"]

#: Attributes of a data set on which its task and model depend, as far as it has them.
METADATA = (
    "num_classes",
    "class_names",
    "num_parts",
    "part_names",
    "class_parts",
    "targets",
    "units",
    "outputs",
)
#: A bound for the metadata of a stranger's checkpoint.
_MAX_CLASSES = 1_000_000


def dataset_metadata(dataset: PointCloudDataset) -> dict[str, object]:
    """The metadata of a data set: its :data:`METADATA`, as far as it has them."""
    metadata = {name: as_plain(getattr(dataset, name, None)) for name in METADATA}
    return complete_metadata({name: value for name, value in metadata.items() if value is not None})


def complete_metadata(metadata: Mapping[str, object]) -> dict[str, object]:
    """The same with the number of categories and the names of classes that follow from the others."""
    parts = metadata.get("class_parts", ())
    # A model is not conditioned on a single category.
    known = {"num_classes": len(parts)} | metadata if len(parts) > 1 else dict(metadata)
    number = as_integer(known.get("num_classes", len(parts)))
    if number is None or not 0 <= number <= _MAX_CLASSES:
        raise DGLError(f"Expected num_classes of at most {_MAX_CLASSES:,}, got {known['num_classes']!r}.")
    known["class_names"] = _names(known.get("class_names"), number, "class_names")
    if known.get("num_parts") is not None:
        _check_parts(known)
    if known.get("outputs") is not None:
        _check_targets(known)
    return known


def _check_targets(known: dict[str, object]) -> None:
    """Raise unless there are names and units for the scales of a molecule network's outputs."""
    outputs = known["outputs"]
    scales = outputs.get("scales") if isinstance(outputs, Mapping) else None
    if not isinstance(scales, (list, tuple)) or "out" not in outputs:
        raise DGLError("Expected outputs with out and scales of a network for molecules.")
    for name in ("targets", "units"):
        known[name] = _names(known.get(name, [""] * len(scales)), len(scales), name)


def _names(names: object, number: int, what: str) -> list[str]:
    """Names as strings, or numbers in their place if there are none."""
    if names is None:
        return [str(each) for each in range(number)]
    if not isinstance(names, (list, tuple)) or not all(isinstance(each, (str, int)) for each in names):
        raise DGLError(f"Expected {what} to be a list of strings, got {type(names).__name__}.")
    if number and len(names) != number:
        raise DGLError(f"Expected as many {what} as there are of them, got {len(names)} for {number}.")
    return list(map(str, names))


def _check_parts(known: dict[str, object]) -> None:
    """Raise unless the parts of all categories are among the known ones, which may have names."""
    number = as_integer(known.get("num_parts"))
    if number is None or not 1 <= number <= _MAX_CLASSES:
        raise DGLError(f"Expected num_parts from 1 to {_MAX_CLASSES:,}, got {known.get('num_parts')!r}.")
    if known.get("part_names") is not None:
        known["part_names"] = _names(known["part_names"], number, "part_names")
    for parts in known.get("class_parts", ()):
        numbers = [as_integer(part) for part in parts] if isinstance(parts, (list, tuple)) else []
        if not numbers or any(part is None or not 0 <= part < number for part in numbers):
            raise DGLError(f"Expected class_parts to have parts from 0 to {number - 1}, got {parts!r}.")
