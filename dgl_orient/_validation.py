"""Checks of arguments and inputs. Each raises a DGLError that says what was expected and what was given."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Annotated, get_args

import numpy as np
import torch
from dgl import DGLError, DGLGraph
from dgl.utils import expand_as_pair
from pydantic.v1 import Field
from torch import Tensor, nn

# Types of arguments with bounds, which the schema of recipes reads from signatures.

PositiveInt = Annotated[int, Field(ge=1)]
NonNegativeInt = Annotated[int, Field(ge=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
NonNegativeFloat = Annotated[float, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, lt=1)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
#: A number of points, or a fraction of those of the level below.
LevelSize = PositiveInt | Fraction

#: The largest magnitude of a transform that float32 can represent with room to spare.
MAX_MAGNITUDE = 1e30

# Arguments: integers, probabilities, choices.


def as_integer(value: object) -> int | None:
    """An integer of Python, NumPy or PyTorch as a Python integer; None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError):
        return None


def check_integer(name: str, value: int, minimum: int | None = None, maximum: int | None = None) -> int:
    """The named value as a Python integer, if it is one within the bounds."""
    number = as_integer(value)
    if number is None or (minimum is not None and number < minimum):
        bound = "" if minimum is None else f" of at least {minimum}"
        raise DGLError(f"Expected {name} to be an integer{bound}, got {value!r}.")
    if maximum is not None and number > maximum:
        raise DGLError(f"Expected {name} to be an integer of at most {maximum:,}, got {number}.")
    return number


def check_integers(minimum: int = 1, **values: int) -> None:
    """Raise unless all named values are integers of at least the minimum."""
    for name, value in values.items():
        check_integer(name, value, minimum)


def check_integer_lists(minimum_length: int = 0, **lists: Sequence[int]) -> None:
    """Raise unless all named lists hold enough integers, all of them positive."""
    for name, values in lists.items():
        if not isinstance(values, Sequence) or isinstance(values, str) or len(values) < minimum_length:
            expected = f"at least {minimum_length} integers" if minimum_length else "integers"
            raise DGLError(f"Expected {name} to be a list of {expected}, such as (64, 128), got {values!r}.")
        check_integers(**{f"{name}[{number}]": value for number, value in enumerate(values)})


def check_size_pair(name: str, value: tuple[int, int], minimum: int = 0) -> tuple[int, int]:
    """The named pair of numbers of scalars and vectors, if both are integers of at least the minimum."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        raise DGLError(f"Expected {name} to be a pair (scalars, vectors), such as (32, 16), got {value!r}.")
    feats, vectors = value
    return (
        check_integer(f"the scalars of {name}", feats, minimum),
        check_integer(f"the vectors of {name}", vectors, minimum),
    )


def check_k(k: int) -> int:
    """The number of neighbours as a Python integer."""
    return check_integer("k", k, 1, 2**31 - 1)


def check_epoch(epoch: int) -> int:
    """The number of an epoch as a Python integer."""
    return check_integer("epoch", epoch, 0, 2**63 - 1)


def check_probability(**values: float) -> None:
    """Raise unless all named values are numbers of at least 0 and below 1."""
    for name, value in values.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number and 0 <= value < 1):
            raise DGLError(f"Expected {name} to be a number of at least 0 and below 1, got {value!r}.")


def check_fraction(name: str, value: float) -> float:
    """The named value as a float, if it is a number above 0 and below 1."""
    if not isinstance(value, (int, float, np.number)) or not 0 < value < 1:
        raise DGLError(f"Expected {name} to be above 0 and below 1, got {value!r}.")
    return float(value)


def check_magnitude(name: str, value: float) -> float:
    """The named value as a float, if it is a number from 0 to :data:`MAX_MAGNITUDE`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number <= MAX_MAGNITUDE:
        raise DGLError(
            f"Expected {name} to be a number of at least 0 and at most {MAX_MAGNITUDE:g}, got {value!r}."
        )
    return number


def check_choice(name: str, value: object, choices: object) -> str:
    """The named value, if it is one of the choices of a ``Literal``."""
    known = get_args(choices)
    if value not in known:
        raise DGLError(f"Expected {name} to be one of {', '.join(map(repr, known))}, got {value!r}.")
    return value


def check_level_sizes(level_sizes: Sequence[int | float]) -> None:
    """Raise unless these are the numbers (or fractions) of points of a hierarchy's levels."""
    if not isinstance(level_sizes, Sequence) or isinstance(level_sizes, str):
        raise DGLError(f"Expected level_sizes as a sequence such as (256, 64), got {level_sizes!r}.")
    for size in level_sizes:
        number = as_integer(size)
        if not (isinstance(size, float) and 0 < size < 1) and (number is None or number < 1):
            raise DGLError(
                f"Expected level_sizes to be numbers of points or fractions between 0 and 1, got {size!r}."
            )
    for kind in (float, int):
        alike = [size for size in level_sizes if isinstance(size, float) == (kind is float)]
        if any(b > a for a, b in zip(alike, alike[1:])):
            raise DGLError(f"Expected level_sizes that do not grow, got {tuple(level_sizes)}.")


# Tensors. Only check_points and check_finite read values, which on a GPU waits for the device.


def check_shape(name: str, value: object, shape: tuple[int | str, ...]) -> None:
    """Raise unless the value is a tensor of the shape, in which a string means any size but 0."""
    given = tuple(value.shape) if isinstance(value, Tensor) else None
    if given is None or len(given) != len(shape) or not all(map(_fits, given, shape)):
        got = type(value).__name__ if given is None else given
        raise DGLError(f"Expected {name} of shape ({', '.join(map(str, shape))}), got {got}.")


def _fits(size: int, expected: int | str) -> bool:
    return size > 0 if isinstance(expected, str) else size == expected


def check_dtype(module: nn.Module, *values: Tensor | None) -> None:
    """Raise unless all tensors have the dtype of the module's parameters."""
    expected = next(module.parameters()).dtype
    for value in values:
        if isinstance(value, Tensor) and value.dtype != expected:
            raise DGLError(
                f"This {type(module).__name__} is {expected}, but its input is {value.dtype}; convert one of "
                f"them, with .float() or .double()."
            )


class NotFinitePoints(DGLError):
    """Coordinates, or features among which neighbours are searched, are NaN or infinite."""


def check_points(pos: Tensor, finite: bool = True) -> None:
    """Raise unless these are points ``(N, D)`` in float32 or float64, and (by default) finite."""
    if not isinstance(pos, Tensor) or pos.ndim != 2 or pos.shape[1] == 0:
        given = tuple(pos.shape) if isinstance(pos, Tensor) else type(pos).__name__
        raise DGLError(
            f"Expected the points as a tensor of shape (N, D), got {given}; flatten a batch of point clouds "
            f"to (N, D) and give the number of points of each in batch_num_nodes."
        )
    if pos.dtype not in (torch.float32, torch.float64):
        raise DGLError(f"Expected float32 or float64 points, got {pos.dtype}; convert them with .float().")
    if finite and not torch.isfinite(pos).all():
        bad = int((~torch.isfinite(pos)).any(1).sum())
        raise NotFinitePoints(
            f"Expected finite coordinates, but {bad} of {len(pos)} points have NaN or infinity."
        )


def check_point_cloud(graph: DGLGraph) -> Tensor:
    """The number of points of each cloud on the CPU, if the graph has valid ``pos``."""
    if not isinstance(graph, DGLGraph) or not graph.is_homogeneous or "pos" not in graph.ndata:
        raise DGLError("Expected a DGLGraph whose ndata['pos'] holds the points: see dgl_orient.point_cloud.")
    pos = graph.ndata["pos"]
    if pos.ndim != 2 or pos.shape[1] != 3 or pos.dtype not in (torch.float32, torch.float64):
        raise DGLError(f"Expected float32 or float64 points (n, 3), got {pos.dtype} {tuple(pos.shape)}.")
    return graph.batch_num_nodes().cpu()


def check_coordinates(graph: DGLGraph, pos: Tensor) -> None:
    """Raise unless these are coordinates ``(N, 3)`` of the graph's nodes; values are not read."""
    check_points(pos, finite=False)
    if pos.shape[1] != 3 or len(pos) != graph.num_nodes():
        raise DGLError(
            f"Expected coordinates of shape ({graph.num_nodes()}, 3) for this graph, got {tuple(pos.shape)}."
        )


def check_finite(pos: Tensor, **features: Tensor) -> None:
    """Raise unless all numbers are finite and distances between the points can be computed."""
    limit = torch.finfo(pos.dtype).max ** 0.5 / 16
    tensors = {"pos": pos, **features}
    tensors = {name: value.detach() for name, value in tensors.items() if value.numel()}
    if not tensors:
        return
    # One reduction per tensor and one transfer for all; NaN passes through minimum and maximum.
    extremes = torch.stack([torch.stack(value.aminmax()).abs().amax() for value in tensors.values()])
    for (name, value), largest in zip(tensors.items(), extremes.tolist()):
        if largest <= (limit if name == "pos" else torch.finfo(value.dtype).max):
            continue
        if not torch.isfinite(value).all():
            raise DGLError(f'Expected finite numbers in ndata["{name}"], but some are NaN or infinity.')
        raise DGLError(
            f"Expected coordinates of at most {limit:.1g} in {pos.dtype}, whose squares can be computed; "
            f"scale the point cloud down."
        )


def check_batch_num_nodes(pos: Tensor, batch_num_nodes: Tensor | Sequence[int] | None) -> Tensor:
    """The number of points of each point cloud as int64 on the CPU."""
    if batch_num_nodes is None:
        return torch.tensor([len(pos)])
    if isinstance(batch_num_nodes, Tensor):
        batch_num_nodes = batch_num_nodes.tolist()
    numbers = [as_integer(n) for n in batch_num_nodes] if isinstance(batch_num_nodes, Iterable) else [None]
    if any(number is None or number < 0 for number in numbers):
        raise DGLError(
            f"Expected batch_num_nodes to be a list of numbers of points, one for each point cloud, got "
            f"{batch_num_nodes}."
        )
    if sum(numbers) != len(pos):  # before they are a tensor, in which they could overflow
        raise DGLError(
            f"The numbers in batch_num_nodes add up to {sum(numbers)}, but there are {len(pos)} points."
        )
    return torch.tensor(numbers, dtype=torch.int64)


# Inputs of layers: on a bipartite graph a (source, destination) pair.

TensorOrPair = Tensor | tuple[Tensor, Tensor]


def src_dst_pair(
    name: str, value: object, graph: DGLGraph, shape: tuple[int | str, ...]
) -> tuple[Tensor, Tensor]:
    """The sources' and the destinations' values, whose rows must have the given shape."""
    pair = (None, None) if value is None else expand_as_pair(value, graph)
    for given, num_nodes in zip(pair, (graph.num_src_nodes(), graph.num_dst_nodes())):
        check_shape(name, given, (num_nodes, *shape))
    return pair


def src_dst_positions(pos: object, graph: DGLGraph) -> tuple[Tensor, Tensor]:
    """The sources' and the destinations' coordinates ``(N, 3)``; values are not read."""
    pair = src_dst_pair("pos", pos, graph, (3,))
    for given in pair:
        check_points(given, finite=False)
    return pair


def check_orient(module: nn.Module, orient: Tensor | None, graph: DGLGraph) -> None:
    """Raise unless these are ``module.num_orientations`` orientations of the graph's destinations."""
    if orient is None:
        raise DGLError(
            f"This {type(module).__name__} has num_orientations={module.num_orientations}, but orient is "
            f"None; give the orientations of the destinations, or use num_orientations=0 for the plain layer."
        )
    check_shape("orient", orient, (graph.num_dst_nodes(), module.num_orientations, 3, 3))
    check_dtype(module, orient)
