"""A test of equivariance for layers, networks and any other function of point clouds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import torch
from dgl import DGLError
from torch import Tensor

from ._validation import check_choice
from .geometry import random_rotation, to_global

__all__ = ["TOLERANCES", "Output", "Per", "Symmetry", "assert_equivariant"]

#: How an output transforms when the point cloud is rotated and translated.
Output = Literal["invariant", "vectors", "frames", "tensors", "positions"]
#: The symmetries, in the order in which they are tested.
Symmetry = Literal["rotation", "translation", "permutation", "batching"]
#: Whether outputs have a row for every point or for every point cloud.
Per = Literal["node", "cloud"]
#: The largest error that passes, relative to the output's largest entry.
TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4}


def assert_equivariant(
    fn: Callable[..., Tensor | Sequence[Tensor]],
    pos: Tensor,
    output: Output | Sequence[Output] = "invariant",
    batch_num_nodes: Sequence[int] | None = None,
    per: Per = "node",
    scalars: Mapping[str, Tensor] | None = None,
    vectors: Mapping[str, Tensor] | None = None,
    symmetries: Sequence[Symmetry] | None = None,
    rtol: float | None = None,
    trials: int = 2,
    seed: int = 0,
) -> dict[str, float]:
    r"""Raise AssertionError unless a function of point clouds is equivariant (Eq. 1).

    For random rotations R, translations t and permutations it is checked that ``fn(pos @ R.T + t)`` is the
    original output if ``"invariant"``, rotated by R if ``"vectors"`` (last dimension 3) or ``"frames"`` (last
    two dimensions 3, axes in columns), :math:`R M R^\top` for the original M if ``"tensors"`` (last two
    dimensions 3), rotated and translated if ``"positions"``. Permuted points must give permuted outputs, and
    a point cloud must have the same output in a batch as alone.

    Parameters
    ----------
    fn : callable
        Called as ``fn(pos, **scalars, **vectors)``, and where ``batch_num_nodes`` is given as
        ``fn(pos, batch_num_nodes=batch_num_nodes, **scalars, **vectors)``. Returns a tensor or several. The
        random state is the same for every call, so that dropout has the same mask.
    pos : Tensor
        Coordinates ``(N, 3)``, float32 or float64.
    output : {"invariant", "vectors", "frames", "tensors", "positions"} or sequence of them
        How each output transforms.
    batch_num_nodes : sequence of int, optional
        Number of points of each point cloud; needed to test batching.
    per : {"node", "cloud"}
        Whether the outputs have a row for every point or for every point cloud.
    scalars, vectors : mapping of str to Tensor, optional
        Further inputs by name, a row for every point: scalars are kept, vectors (last dimension 3) rotated.
    symmetries : sequence of {"rotation", "translation", "permutation", "batching"}, optional
        The symmetries to test; all by default, batching only with ``batch_num_nodes``.
    rtol : float, optional
        The largest error that passes, relative to the output's largest entry; by default that of the dtype in
        :data:`TOLERANCES`.
    trials : int
        Number of random transformations for each symmetry.
    seed : int
        Random seed of the transformations.

    Returns
    -------
    dict of str to float
        The largest relative error under each symmetry.

    Notes
    -----
    The point cloud is moved to the origin before it is rotated or translated, so that a point cloud far away
    loses no digits. Where distances are equal or nearly equal, rounding determines neighbourhoods; a function
    of such point clouds cannot pass.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.testing import assert_equivariant
    >>> pos = torch.rand(50, 3, dtype=torch.float64)
    >>> errors = assert_equivariant(lambda pos: pos - pos.mean(0), pos, "vectors")
    >>> assert_equivariant(lambda pos: pos.amax(0, keepdim=True), pos, "vectors", per="cloud")
    Traceback (most recent call last):
        ...
    AssertionError: rotation changes output 0 (vectors) by ... of its largest entry, ...
    """
    outputs = (output,) if isinstance(output, str) else tuple(output)
    if symmetries is None:
        symmetries = get_args(Symmetry) if batch_num_nodes is not None else get_args(Symmetry)[:-1]
    _check_arguments(pos, outputs, batch_num_nodes, per, symmetries, trials)
    rtol = TOLERANCES[pos.dtype] if rtol is None else rtol
    num_points = [len(pos)] if batch_num_nodes is None else [int(n) for n in batch_num_nodes]
    case = _Case(fn, outputs, per == "node", batch_num_nodes is not None)
    inputs = _Inputs(pos, dict(scalars or {}), dict(vectors or {}), num_points)
    original = case(inputs)
    generator = torch.Generator().manual_seed(seed)

    errors: dict[str, float] = {}
    failures: list[str] = []
    for symmetry in symmetries:
        worst = 0.0
        for _ in range(1 if symmetry == "batching" else trials):
            actual, expected = _TRIALS[symmetry](case, inputs, original, generator)
            for number, (kind, a, b) in enumerate(zip(outputs, actual, expected)):
                error = _relative_error(a, b)
                worst = max(worst, error)
                if not error <= rtol:
                    failures.append(
                        f"{symmetry} changes output {number} ({kind}) by {error:.2g} of its largest "
                        f"entry, {rtol:.2g} is allowed"
                    )
        errors[symmetry] = worst
    if failures:
        raise AssertionError("; ".join(dict.fromkeys(failures)) + ".")
    return errors


def _check_arguments(
    pos: Tensor,
    outputs: Sequence[str],
    batch_num_nodes: Sequence[int] | None,
    per: Per,
    symmetries: Sequence[str],
    trials: int,
) -> None:
    for kind in outputs:
        check_choice("output", kind, Output)
    for symmetry in symmetries:
        check_choice("symmetries", symmetry, Symmetry)
    check_choice("per", per, Per)
    if not isinstance(pos, Tensor) or pos.dtype not in TOLERANCES:
        raise DGLError("Expected pos to be a float32 or float64 tensor.")
    if trials < 1 or not symmetries:
        raise DGLError("Expected at least one trial of at least one symmetry.")
    if "batching" in symmetries and batch_num_nodes is None:
        raise DGLError("Expected batch_num_nodes, to test batching.")


class _Inputs:
    """The inputs of the function under test."""

    def __init__(
        self, pos: Tensor, scalars: dict[str, Tensor], vectors: dict[str, Tensor], num_points: list[int]
    ) -> None:
        self.pos, self.scalars, self.vectors, self.num_points = pos, scalars, vectors, num_points

    def rows(self, index: Tensor, num_points: list[int]) -> _Inputs:
        scalars = {name: value[index] for name, value in self.scalars.items()}
        vectors = {name: value[index] for name, value in self.vectors.items()}
        return _Inputs(self.pos[index], scalars, vectors, num_points)

    def rotated(self, rotation: Tensor) -> _Inputs:
        vectors = {name: to_global(rotation, value) for name, value in self.vectors.items()}
        return _Inputs(to_global(rotation, self.pos), self.scalars, vectors, self.num_points)

    def translated(self, translation: Tensor) -> _Inputs:
        return _Inputs(self.pos + translation, self.scalars, self.vectors, self.num_points)

    def centroid(self) -> Tensor:
        return self.pos.mean(0) if len(self.pos) else self.pos.new_zeros(3)

    def extent(self) -> Tensor:
        extent = (self.pos - self.centroid()).abs().max() if len(self.pos) else self.pos.new_zeros(())
        return torch.where(extent > 0, extent, 1.0)


class _Case:
    """The function under test."""

    def __init__(self, fn: Callable, outputs: tuple[str, ...], per_node: bool, batched: bool) -> None:
        self.fn, self.outputs, self.per_node, self.batched = fn, outputs, per_node, batched

    def __call__(self, inputs: _Inputs) -> list[Tensor]:
        batch = {"batch_num_nodes": list(inputs.num_points)} if self.batched else {}
        devices = [inputs.pos.device] if inputs.pos.is_cuda else []
        with torch.no_grad(), torch.random.fork_rng(devices):
            torch.default_generator.manual_seed(0)
            if devices:
                torch.cuda.manual_seed(0)
            features = {name: value.clone() for name, value in (inputs.scalars | inputs.vectors).items()}
            result = self.fn(inputs.pos.clone(), **batch, **features)
        values = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(values) != len(self.outputs):
            raise AssertionError(
                f"The function gives {len(values)} outputs, but {len(self.outputs)} were declared."
            )
        for number, value in enumerate(values):
            self._check_output(number, value, inputs)
        return values

    def _check_output(self, number: int, value: object, inputs: _Inputs) -> None:
        if not isinstance(value, Tensor) or value.ndim == 0 or not value.is_floating_point():
            raise AssertionError(f"Output {number} is not a floating-point tensor with rows.")
        rows = len(inputs.pos) if self.per_node else len(inputs.num_points)
        if len(value) != rows:
            raise AssertionError(
                f"Output {number} has {len(value)} rows, but there are {rows} "
                f"{'points' if self.per_node else 'point clouds'}."
            )
        ending = {"invariant": (), "frames": (3, 3), "tensors": (3, 3)}.get(self.outputs[number], (3,))
        if value.shape[value.ndim - len(ending) :] != ending:
            raise AssertionError(
                f"Output {number} was declared as {self.outputs[number]}, but has the shape "
                f"{tuple(value.shape)}."
            )
        if not torch.isfinite(value).all():
            raise AssertionError(f"Output {number} has NaN or infinity.")


Outputs = tuple[list[Tensor], list[Tensor]]  # actual and expected


def _rotation_trial(
    case: _Case, inputs: _Inputs, original: list[Tensor], generator: torch.Generator
) -> Outputs:
    rotation = random_rotation(dtype=torch.float64, generator=generator).to(inputs.pos)
    inputs = inputs.translated(-inputs.centroid())
    expected = [_rotate(kind, rotation, value) for kind, value in zip(case.outputs, case(inputs))]
    return case(inputs.rotated(rotation)), expected


def _translation_trial(
    case: _Case, inputs: _Inputs, original: list[Tensor], generator: torch.Generator
) -> Outputs:
    translation = torch.randn(3, generator=generator, dtype=torch.float64).to(inputs.pos) * inputs.extent()
    centroid = inputs.centroid()
    expected = [
        value - centroid + translation if kind == "positions" else value
        for kind, value in zip(case.outputs, original)
    ]
    return case(inputs.translated(-centroid).translated(translation)), expected


def _permutation_trial(
    case: _Case, inputs: _Inputs, original: list[Tensor], generator: torch.Generator
) -> Outputs:
    """Points are permuted within their point cloud."""
    permutations = [torch.randperm(number, generator=generator) for number in inputs.num_points]
    first = torch.tensor([0, *inputs.num_points]).cumsum(0).tolist()
    index = torch.cat([part + start for part, start in zip(permutations, first)]).to(inputs.pos.device)
    expected = [value[index] for value in original] if case.per_node else original
    return case(inputs.rows(index, inputs.num_points)), expected


def _batching_trial(
    case: _Case, inputs: _Inputs, original: list[Tensor], generator: torch.Generator
) -> Outputs:
    rows = torch.arange(len(inputs.pos), device=inputs.pos.device).split(inputs.num_points)
    alone = [case(inputs.rows(index, [len(index)])) for index in rows]
    return [torch.cat(values) for values in zip(*alone)], original


_TRIALS = {
    "rotation": _rotation_trial,
    "translation": _translation_trial,
    "permutation": _permutation_trial,
    "batching": _batching_trial,
}


def _rotate(kind: Output, rotation: Tensor, value: Tensor) -> Tensor:
    if kind == "invariant":
        return value
    if kind in ("frames", "tensors"):
        value = to_global(rotation, value.transpose(-1, -2)).transpose(-1, -2)
    return value if kind == "frames" else to_global(rotation, value)


def _relative_error(actual: Tensor, expected: Tensor) -> float:
    if actual.shape != expected.shape:
        raise AssertionError(f"The output's shape changes from {expected.shape} to {actual.shape}.")
    if actual.numel() == 0:
        return 0.0
    difference = (actual - expected).abs().max()
    return float(difference / expected.abs().max().clamp_min(torch.finfo(expected.dtype).tiny))
