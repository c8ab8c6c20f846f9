"""What layers ask of their inputs, answered with a sentence where it is not so."""

from __future__ import annotations

from dgl import DGLError, DGLGraph
from dgl.utils import expand_as_pair
from torch import Tensor

from .._checks import check_points

__all__ = ["check_coordinates", "check_neighbours", "check_positive", "check_shape", "checked_pair"]


def check_positive(**sizes: int) -> None:
    """Raise unless all named sizes are at least 1."""
    for name, size in sizes.items():
        if size < 1:
            raise DGLError(f"Expected {name} to be at least 1, got {size}.")


def check_shape(name: str, value, shape: tuple[int | str, ...]) -> None:
    """Raise unless the value is a tensor of the shape, in which a word stands for any size but 0."""
    given = tuple(value.shape) if isinstance(value, Tensor) else None
    if given is None or len(given) != len(shape) or not all(map(_fits, given, shape)):
        got = type(value).__name__ if given is None else given
        raise DGLError(f"Expected {name} of shape ({', '.join(map(str, shape))}), got {got}.")


def _fits(size: int, wanted: int | str) -> bool:
    return size > 0 if isinstance(wanted, str) else size == wanted


def check_coordinates(graph: DGLGraph, pos: Tensor) -> None:
    """Raise unless these are finite coordinates of this graph's nodes."""
    check_points(pos)
    if pos.shape[1] != 3 or len(pos) != graph.num_nodes():
        raise DGLError(
            f"Expected coordinates of shape ({graph.num_nodes()}, 3) for this graph, got {tuple(pos.shape)}."
        )


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
