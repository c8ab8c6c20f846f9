"""What layers ask of their inputs, answered with a sentence where it is not so."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from dgl import DGLError, DGLGraph
from dgl.utils import expand_as_pair
from torch import Tensor, nn

from .._checks import as_integer, check_points

__all__ = [
    "check_coordinates",
    "check_neighbours",
    "check_positive",
    "check_probability",
    "check_shape",
    "check_sizes",
    "check_types",
    "checked_pair",
    "checked_positions",
]


def check_positive(least: int = 1, **sizes: int) -> None:
    """Raise unless all named sizes are integers of at least ``least``."""
    for name, size in sizes.items():
        number = as_integer(size)
        if number is None or number < least:
            raise DGLError(f"Expected {name} to be an integer of at least {least}, got {size!r}.")


def check_sizes(least: int = 0, **lists: Sequence[int]) -> None:
    """Raise unless all named lists hold at least ``least`` integers, all of them positive."""
    for name, sizes in lists.items():
        if not isinstance(sizes, Sequence) or isinstance(sizes, str) or len(sizes) < least:
            wanted = f"at least {least} integers" if least else "integers"
            raise DGLError(f"Expected {name} to be a list of {wanted}, such as (64, 128), got {sizes!r}.")
        for number, size in enumerate(sizes):
            check_positive(**{f"{name}[{number}]": size})


def check_probability(**values: float) -> None:
    """Raise unless all named values are numbers of at least 0 and below 1."""
    for name, value in values.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (is_number and 0 <= value < 1):
            raise DGLError(f"Expected {name} to be a number of at least 0 and below 1, got {value!r}.")


def check_shape(name: str, value, shape: tuple[int | str, ...]) -> None:
    """Raise unless the value is a tensor of the shape, in which a word stands for any size but 0."""
    given = tuple(value.shape) if isinstance(value, Tensor) else None
    if given is None or len(given) != len(shape) or not all(map(_fits, given, shape)):
        got = type(value).__name__ if given is None else given
        raise DGLError(f"Expected {name} of shape ({', '.join(map(str, shape))}), got {got}.")


def _fits(size: int, wanted: int | str) -> bool:
    return size > 0 if isinstance(wanted, str) else size == wanted


def check_coordinates(graph: DGLGraph, pos: Tensor) -> None:
    """Raise unless these are coordinates of this graph's nodes whose distances can be computed."""
    check_points(pos)
    if pos.shape[1] != 3 or len(pos) != graph.num_nodes():
        raise DGLError(
            f"Expected coordinates of shape ({graph.num_nodes()}, 3) for this graph, got {tuple(pos.shape)}."
        )
    check_range(pos)


def check_range(pos: Tensor) -> None:
    """Raise if distances between the points cannot be computed."""
    limit = torch.finfo(pos.dtype).max ** 0.5 / 16
    if len(pos) and float(pos.detach().abs().max()) > limit:
        raise DGLError(
            f"Expected coordinates of at most {limit:.1g} in {pos.dtype}, whose squares can be computed; "
            f"scale the cloud down."
        )


def check_types(module: nn.Module, *values: Tensor | None) -> None:
    """Raise unless all values have the type of the module's parameters."""
    wanted = next(module.parameters()).dtype
    for value in values:
        if isinstance(value, Tensor) and value.dtype != wanted:
            raise DGLError(
                f"This {type(module).__name__} is {wanted}, but its input is {value.dtype}; convert either "
                f"of them, with .float() or .double()."
            )


def checked_positions(pos, graph: DGLGraph, in_range: bool = False) -> tuple[Tensor, Tensor]:
    """The sources' and the destinations' coordinates, finite ones, and perhaps such as have distances."""
    pair = checked_pair("pos", pos, graph, (3,))
    for given in pair if pair[0] is not pair[1] else pair[:1]:
        check_points(given)
        if in_range:
            check_range(given)
    return pair


def checked_pair(name: str, value, graph: DGLGraph, shape: tuple[int | str, ...]) -> tuple[Tensor, Tensor]:
    """The sources' and the destinations' values, whose rows must have the given shape."""
    pair = (None, None) if value is None else expand_as_pair(value, graph)
    for given, num_nodes in zip(pair, (graph.num_src_nodes(), graph.num_dst_nodes())):
        check_shape(name, given, (num_nodes, *shape))
    return pair


def check_neighbours(graph: DGLGraph, allow_zero_in_degree: bool) -> Tensor | None:
    """Which destinations have neighbours, ``(N_dst, 1)``, or None if all do; raise unless that is allowed."""
    connected = graph.in_degrees() > 0
    if bool(connected.all()):
        return None
    if not allow_zero_in_degree:
        raise DGLError(
            "Some nodes have no neighbours to aggregate; add self-loops with dgl.add_self_loop, or set "
            "allow_zero_in_degree=True to give such nodes 0."
        )
    return connected.unsqueeze(1)
