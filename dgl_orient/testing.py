"""A test of equivariance for layers, networks and any other function of point clouds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from .geometry import random_rotation, to_global

__all__ = ["KINDS", "SYMMETRIES", "TOLERANCES", "assert_equivariant"]

#: What an output may be: how it answers when the cloud is turned and shifted.
KINDS = ("invariant", "vectors", "frames", "positions")
#: What is tried, in this order.
SYMMETRIES = ("rotation", "translation", "permutation", "batching")
#: The largest error that passes, relative to the output's largest entry.
TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-4}


def assert_equivariant(
    fn: Callable[..., Tensor | Sequence[Tensor]],
    pos: Tensor,
    output: str | Sequence[str] = "invariant",
    batch_num_nodes: Sequence[int] | None = None,
    per: str = "node",
    scalars: Mapping[str, Tensor] | None = None,
    vectors: Mapping[str, Tensor] | None = None,
    symmetries: Sequence[str] | None = None,
    rtol: float | None = None,
    trials: int = 2,
    seed: int = 0,
) -> dict[str, float]:
    r"""Raise AssertionError unless a function answers to motions of its clouds as it should (Eq. 1).

    For random rotations R, shifts t and permutations it is checked that ``fn(pos @ R.T + t)`` is what the
    kind of the output says: itself if ``"invariant"``, turned by R if ``"vectors"`` (last dimension 3) or
    ``"frames"`` (last two dimensions 3, axes in columns), turned and shifted if ``"positions"``. Points
    that change places must take their outputs along, and clouds must give in a batch what they give alone.

    Parameters
    ----------
    fn : callable
        Called as ``fn(pos, **scalars, **vectors)``, and where ``batch_num_nodes`` is given as
        ``fn(pos, batch_num_nodes=sizes, **scalars, **vectors)``. Returns a tensor or several. Every call
        begins with the same random state, so that dropout draws the same mask.
    pos : Tensor
        Coordinates ``(N, 3)``, float32 or float64.
    output : str or sequence of str
        The kind of each output, of :data:`KINDS`.
    batch_num_nodes : sequence of int, optional
        How many points each cloud has. Needed to try batching.
    per : {"node", "cloud"}
        Whether the outputs have a row for every point or for every cloud.
    scalars, vectors : mapping of str to Tensor, optional
        Further inputs by name, a row for every point: scalars stay, vectors (last dimension 3) turn.
    symmetries : sequence of str
        What to try, of :data:`SYMMETRIES`; all by default, batching only with ``batch_num_nodes``.
    rtol : float, optional
        The largest error that passes, relative to the output's largest entry; by default that of the
        type in :data:`TOLERANCES`.
    trials : int
        How often to try each symmetry.
    seed : int
        Where the random motions come from.

    Returns
    -------
    dict of str to float
        The largest relative error under each symmetry.

    Notes
    -----
    Rotations are tried on the cloud moved to the origin, and translations lead there from where it is: so a
    cloud that is far away loses no digits. Equal or nearly equal distances make neighbourhoods that rounding
    decides; a function of such clouds cannot pass.

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
    kinds = (output,) if isinstance(output, str) else tuple(output)
    if symmetries is None:
        symmetries = SYMMETRIES if batch_num_nodes is not None else SYMMETRIES[:-1]
    _check_choice("output", kinds, KINDS)
    _check_choice("symmetries", symmetries, SYMMETRIES)
    _check_choice("per", (per,), ("node", "cloud"))
    if not isinstance(pos, Tensor) or pos.dtype not in TOLERANCES:
        raise ValueError("Expected pos to be a float32 or float64 tensor.")
    if trials < 1 or not symmetries:
        raise ValueError("Expected at least one trial of at least one symmetry.")
    if "batching" in symmetries and batch_num_nodes is None:
        raise ValueError("Expected batch_num_nodes, to try batching.")
    rtol = TOLERANCES[pos.dtype] if rtol is None else rtol
    sizes = [len(pos)] if batch_num_nodes is None else [int(n) for n in batch_num_nodes]
    case = _Case(fn, kinds, per == "node", batch_num_nodes is not None)
    clouds = _Clouds(pos, dict(scalars or {}), dict(vectors or {}), sizes)
    expected = case(clouds)
    generator = torch.Generator().manual_seed(seed)

    errors: dict[str, float] = {}
    failures: list[str] = []
    for symmetry in symmetries:
        worst = 0.0
        for _ in range(1 if symmetry == "batching" else trials):
            found, wanted = _TRIALS[symmetry](case, clouds, expected, generator)
            for number, (kind, a, b) in enumerate(zip(kinds, found, wanted)):
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


class _Clouds:
    """All that goes into the function."""

    def __init__(self, pos: Tensor, scalars: dict, vectors: dict, sizes: list[int]) -> None:
        self.pos, self.scalars, self.vectors, self.sizes = pos, scalars, vectors, sizes

    def rows(self, index: Tensor, sizes: list[int]) -> _Clouds:
        scalars = {name: value[index] for name, value in self.scalars.items()}
        vectors = {name: value[index] for name, value in self.vectors.items()}
        return _Clouds(self.pos[index], scalars, vectors, sizes)

    def turned(self, rotation: Tensor) -> _Clouds:
        vectors = {name: to_global(rotation, value) for name, value in self.vectors.items()}
        return _Clouds(to_global(rotation, self.pos), self.scalars, vectors, self.sizes)

    def shifted(self, shift: Tensor) -> _Clouds:
        return _Clouds(self.pos + shift, self.scalars, self.vectors, self.sizes)

    def middle(self) -> Tensor:
        return self.pos.mean(0) if len(self.pos) else self.pos.new_zeros(3)

    def extent(self) -> Tensor:
        extent = (self.pos - self.middle()).abs().max() if len(self.pos) else self.pos.new_zeros(())
        return torch.where(extent > 0, extent, 1.0)


class _Case:
    """The function under test, called in one way."""

    def __init__(self, fn: Callable, kinds: tuple[str, ...], per_node: bool, batched: bool) -> None:
        self.fn, self.kinds, self.per_node, self.batched = fn, kinds, per_node, batched

    def __call__(self, clouds: _Clouds) -> list[Tensor]:
        sizes = {"batch_num_nodes": list(clouds.sizes)} if self.batched else {}
        devices = [clouds.pos.device] if clouds.pos.is_cuda else []
        with torch.no_grad(), torch.random.fork_rng(devices):
            torch.default_generator.manual_seed(0)
            if devices:
                torch.cuda.manual_seed(0)
            given = {name: value.clone() for name, value in (clouds.scalars | clouds.vectors).items()}
            result = self.fn(clouds.pos.clone(), **sizes, **given)
        outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(outputs) != len(self.kinds):
            raise AssertionError(
                f"The function gives {len(outputs)} outputs, but {len(self.kinds)} kinds were declared."
            )
        for number, value in enumerate(outputs):
            if not isinstance(value, Tensor) or value.ndim == 0 or not value.is_floating_point():
                raise AssertionError(f"Output {number} is not a floating-point tensor with a row for each.")
        rows = len(clouds.pos) if self.per_node else len(clouds.sizes)
        for number, value in enumerate(outputs):
            if len(value) != rows:
                raise AssertionError(
                    f"Output {number} has {len(value)} rows, but there are {rows} "
                    f"{'points' if self.per_node else 'clouds'}."
                )
            ending = {"invariant": (), "frames": (3, 3)}.get(self.kinds[number], (3,))
            if value.shape[value.ndim - len(ending) :] != ending:
                raise AssertionError(
                    f"Output {number} was declared as {self.kinds[number]}, but has the shape "
                    f"{tuple(value.shape)}."
                )
            if not torch.isfinite(value).all():
                raise AssertionError(f"Output {number} has NaN or infinity.")
        return outputs


def _rotation_trial(case, clouds, expected, generator):
    rotation = random_rotation(dtype=torch.float64, generator=generator).to(clouds.pos)
    clouds = clouds.shifted(-clouds.middle())
    wanted = [_turn(kind, rotation, value) for kind, value in zip(case.kinds, case(clouds))]
    return case(clouds.turned(rotation)), wanted


def _translation_trial(case, clouds, expected, generator):
    shift = torch.randn(3, generator=generator, dtype=torch.float64).to(clouds.pos) * clouds.extent()
    middle = clouds.middle()
    wanted = [
        value - middle + shift if kind == "positions" else value for kind, value in zip(case.kinds, expected)
    ]
    return case(clouds.shifted(-middle).shifted(shift)), wanted


def _permutation_trial(case, clouds, expected, generator):
    """Points change places within their cloud."""
    parts = [torch.randperm(size, generator=generator) for size in clouds.sizes]
    starts = torch.tensor([0, *clouds.sizes]).cumsum(0).tolist()
    index = torch.cat([part + start for part, start in zip(parts, starts)]).to(clouds.pos.device)
    wanted = [value[index] for value in expected] if case.per_node else expected
    return case(clouds.rows(index, clouds.sizes)), wanted


def _batching_trial(case, clouds, expected, generator):
    rows = torch.arange(len(clouds.pos), device=clouds.pos.device).split(clouds.sizes)
    alone = [case(clouds.rows(index, [len(index)])) for index in rows]
    return [torch.cat(values) for values in zip(*alone)], expected


_TRIALS = {
    "rotation": _rotation_trial,
    "translation": _translation_trial,
    "permutation": _permutation_trial,
    "batching": _batching_trial,
}


def _turn(kind: str, rotation: Tensor, value: Tensor) -> Tensor:
    if kind == "invariant":
        return value
    if kind == "frames":
        return to_global(rotation, value.transpose(-1, -2)).transpose(-1, -2)
    return to_global(rotation, value)


def _relative_error(found: Tensor, wanted: Tensor) -> float:
    if found.shape != wanted.shape:
        raise AssertionError(f"The output's shape changes from {wanted.shape} to {found.shape}.")
    if found.numel() == 0:
        return 0.0
    difference = (found - wanted).abs().max()
    return float(difference / wanted.abs().max().clamp_min(torch.finfo(wanted.dtype).tiny))


def _check_choice(name: str, given: Sequence[str], choices: Sequence[str]) -> None:
    for value in given:
        if value not in choices:
            raise ValueError(f"Expected {name} of {', '.join(choices)}, got {value!r}.")
