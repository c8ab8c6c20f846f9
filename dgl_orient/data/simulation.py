"""Simulation of charged particles, many systems at once, with the same bits on every machine.

Only elementwise sums, products, quotients and square roots of float64 are used, in a fixed order. IEEE 754
fixes their results, so neither the processor nor the size of a chunk changes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from dgl import DGLError
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike
from torch import Tensor
from tqdm import tqdm

from .._validation import as_integer, check_choice
from .choices import CappedQuantity
from .progress import progress_bar

__all__ = ["Physics", "energy", "simulate"]

# Particles simulated together: so many that the overhead of NumPy calls is small, so few that their arrays
# stay in the cache. Measured best for systems of 5, 10 and 20.
_CHUNK = 10_000

# Squared distances are clamped to it. Coincident particles then exert no force on each other, and the inverse
# cube of a distance is finite.
_MIN_SQUARE = 1e-100


@dataclass(frozen=True)
class Physics:
    """The dynamics of charged particles of mass 1.

    The force on particle i,

    .. math::
        F_i = g \\sum_{j \\ne i} q_i q_j \\frac{x_i - x_j}{\\|x_i - x_j\\|^3},

    is capped, and integrated by the leapfrog method.

    These are the physics of *Neural Relational Inference for Interacting Systems* and of the N-body sets that
    followed it. Their generators cap each component of a force, and record velocities that are half a step
    older than the positions, as ``Physics(cap="component", staggered=True)``. The defaults cap the norm of a
    force, since only then is the motion rotation-equivariant: capped by component, three in ten systems of
    ten particles end 0.1 or more elsewhere after 1,000 steps. And the defaults record positions and
    velocities of the same time, since only then is their energy conserved.

    Parameters
    ----------
    interaction_strength : float
        The factor g.
    dt : float
        The time step.
    box : float, optional
        Half the side of a cube around the origin whose walls reflect the particles; by default there is none.
        The cube does not rotate with the particles, so with it the motion is not rotation-equivariant.
    force_cap : float, optional
        The magnitude to which forces are capped: by default 0.1 / ``dt``. In Python ``math.inf`` means no
        cap. Where a force is capped its reaction may not be, so there momentum is not conserved.
    cap : str
        What is capped: the ``"norm"`` of the force on a particle, or each ``"component"`` of it.
    staggered : bool
        Whether velocities, given and recorded, are those of half a step before the positions.

    Examples
    --------
    >>> from dgl_orient.data.simulation import Physics
    >>> Physics(dt=0.01).max_force
    10.0
    """

    interaction_strength: float = 1.0
    dt: float = 0.001
    box: float | None = None
    force_cap: float | None = None
    cap: CappedQuantity = "norm"
    staggered: bool = False

    def __post_init__(self) -> None:
        strength = self.interaction_strength
        if not (_is_number(strength) and math.isfinite(strength)):
            raise DGLError(f"Expected interaction_strength to be a finite number, got {strength!r}.")
        check_positive(dt=self.dt)
        if self.box is not None:
            check_positive(box=self.box)
        if self.force_cap not in (None, math.inf):
            check_positive(force_cap=self.force_cap)
        check_choice("cap", self.cap, CappedQuantity)

    @property
    def max_force(self) -> float:
        """The magnitude to which forces are capped."""
        return 0.1 / self.dt if self.force_cap is None else self.force_cap


def simulate(
    pos: ArrayLike | Tensor,
    vel: ArrayLike | Tensor,
    charge: ArrayLike | Tensor,
    steps: int | Sequence[int],
    every: int = 1,
    physics: Physics | None = None,
    verbose: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The trajectories of charged particles.

    Parameters
    ----------
    pos, vel : array or Tensor
        Positions and velocities at step 0, ``(..., n, 3)``: one system of n particles or many.
    charge : array or Tensor
        Charges, ``(..., n, 1)`` or what can be broadcast to it.
    steps : int or sequence of int
        Number of steps; or the steps to record, in increasing order.
    every : int
        Given the number of steps, record steps 0, ``every``, 2 ``every`` and so on.
    physics : Physics, optional
        The dynamics.
    verbose : bool
        Whether to show a progress bar even where stderr is no terminal. On a terminal there is one after two
        seconds.

    Returns
    -------
    tuple of array
        Positions and velocities at the recorded steps in float64, each ``(steps, ..., n, 3)``.

    Examples
    --------
    Two opposite charges orbit each other with a period of 4π:

    >>> from dgl_orient.data.simulation import simulate
    >>> pos, vel = [[1.0, 0, 0], [-1, 0, 0]], [[0.0, 0.5, 0], [0, -0.5, 0]]
    >>> positions, velocities = simulate(pos, vel, [[1.0], [-1]], steps=[0, 6283, 12566])
    >>> positions[:, 0].round(3) + 0.0
    array([[ 1.,  0.,  0.],
           [-1.,  0.,  0.],
           [ 1.,  0.,  0.]])
    """
    physics = physics or Physics()
    pos, vel, charge = _systems(pos, vel, charge)
    record = _recorded_steps(steps, every)
    n = pos.shape[-2]
    flat = [array.reshape(-1, n, array.shape[-1]) for array in (pos, vel, charge)]  # (B, n, ...) each
    recorded = np.empty((2, len(record), len(flat[0]), n, 3))
    together = max(1, _CHUNK // n)
    chunks = [slice(start, start + together) for start in range(0, len(flat[0]), together)]
    bar = progress_bar(None, "Simulating", "steps", len(chunks) * record[-1], always=verbose)
    with bar, np.errstate(over="ignore", invalid="ignore"):
        for chunk in chunks:
            frames = _trajectory(*(array[chunk] for array in flat), record, physics, bar)
            for number, frame in enumerate(frames):
                recorded[:, number, chunk] = frame
    if not np.isfinite(recorded).all():
        raise DGLError(
            f"The simulation diverged with dt={physics.dt} and forces of up to {physics.max_force}; use a "
            f"smaller dt or a lower force_cap."
        )
    positions, velocities = recorded.reshape(2, len(record), *pos.shape)
    return positions, velocities


def energy(
    pos: ArrayLike | Tensor,
    vel: ArrayLike | Tensor,
    charge: ArrayLike | Tensor,
    physics: Physics | None = None,
) -> np.ndarray:
    """The kinetic and potential energy of each system, which is conserved where no force is capped.

    Parameters
    ----------
    pos, vel, charge : array or Tensor
        As in :func:`simulate`; ``pos`` and ``vel`` may be the trajectories that it returns.
    physics : Physics, optional
        The dynamics; only the strength of the interaction is used.

    Returns
    -------
    array
        Of the shape that precedes ``(n, 3)`` in ``pos``.

    Examples
    --------
    >>> from dgl_orient.data.simulation import energy
    >>> float(energy([[1.0, 0, 0], [-1, 0, 0]], [[0.0, 2, 0], [0, 0, 0]], [[1.0], [-1]]))
    1.5
    """
    strength = (physics or Physics()).interaction_strength
    pos, vel, charge = _systems(pos, vel, charge)
    first, second = np.triu_indices(pos.shape[-2], 1)
    square = ((pos[..., first, :] - pos[..., second, :]) ** 2).sum(-1)  # (..., pairs)
    products = charge[..., first, 0] * charge[..., second, 0]
    potential = (products / np.sqrt(np.maximum(square, _MIN_SQUARE))).sum(-1)
    return 0.5 * (vel**2).sum((-1, -2)) + strength * potential


def check_positive(or_zero: bool = False, **numbers: float) -> None:
    """Raise if one of them is not a finite number above 0."""
    for name, value in numbers.items():
        if not (_is_number(value) and (0 < value < math.inf or or_zero and value == 0)):
            raise DGLError(
                f"Expected {name} to be a number {'of at least' if or_zero else 'above'} 0, got {value!r}."
            )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _systems(*arrays: ArrayLike | Tensor) -> list[np.ndarray]:
    """Positions, velocities and charges in float64, checked and of one shape but for the last axis."""
    arrays = [array.detach().cpu() if isinstance(array, Tensor) else array for array in arrays]
    try:
        pos, vel, charge = (np.asarray(array, dtype=np.float64) for array in arrays)
    except (TypeError, ValueError) as error:
        raise DGLError(
            f"Expected positions, velocities and charges as arrays of numbers, got {error}."
        ) from error
    if pos.ndim < 2 or pos.shape[-1] != 3 or pos.shape[-2] < 2 or vel.shape != pos.shape:
        raise DGLError(
            f"Expected positions and velocities of two or more particles as arrays of one shape (..., n, 3), "
            f"got {pos.shape} and {vel.shape}."
        )
    try:
        charge = np.broadcast_to(charge, (*pos.shape[:-1], 1))
    except ValueError as error:
        raise DGLError(
            f"Expected charges of shape {(*pos.shape[:-1], 1)}, (..., n, 1), got {charge.shape}."
        ) from error
    for name, array in (("positions", pos), ("velocities", vel), ("charges", charge)):
        if not np.isfinite(array).all():
            raise DGLError(f"Expected finite {name}, but some are NaN or infinite.")
    return [pos, vel, charge]


def _recorded_steps(steps: int | Sequence[int], every: int) -> list[int]:
    last, stride = as_integer(steps), as_integer(every)
    if stride is None or stride < 1:
        raise DGLError(f"Expected every to be an integer of at least 1, got {every!r}.")
    if last is not None and last >= 0:
        return list(range(0, last + 1, stride))
    record = [as_integer(step) for step in steps] if isinstance(steps, (Sequence, np.ndarray)) else []
    if not record or None in record or record[0] < 0 or sorted(set(record)) != record:
        raise DGLError(f"Expected steps to be an integer of at least 0 or increasing ones, got {steps!r}.")
    return record


def _trajectory(
    pos: np.ndarray, vel: np.ndarray, charge: np.ndarray, record: list[int], physics: Physics, bar: tqdm
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Positions and velocities, ``(B, n, 3)`` each, at the steps to record."""
    # Systems are along the last axis, (3, n, B), for vectorized instructions.
    pos, vel = pos.T.copy("C"), vel.T.copy("C")
    forces = _Forces(charge.T[0].copy("C"), physics)
    _reflect(pos, vel, physics.box)
    if record[0] == 0:
        yield pos.T, vel.T
    # Between steps the velocities of a leapfrog are half a step ahead of the positions.
    force = forces(pos)
    vel += (physics.dt if physics.staggered else 0.5 * physics.dt) * force
    step_buffer = np.empty_like(vel)
    recorded = set(record)
    for step in range(1, record[-1] + 1):
        pos += np.multiply(vel, physics.dt, out=step_buffer)
        _reflect(pos, vel, physics.box)
        force = forces(pos)
        if step in recorded:
            yield pos.T, (vel if physics.staggered else vel + 0.5 * physics.dt * force).T
        vel += np.multiply(force, physics.dt, out=step_buffer)
        bar.update()


def _reflect(pos: np.ndarray, vel: np.ndarray, box: float | None) -> None:
    """Reflect particles that crossed a wall."""
    if box is None:
        return
    outside = np.abs(pos) > box
    if outside.any():
        wall = np.copysign(box, pos[outside])
        # Particles beyond the opposite wall stay at it.
        pos[outside] = np.clip(2 * wall - pos[outside], -box, box)
        vel[outside] = np.copysign(vel[outside], -wall)


class _Forces:
    """From positions to forces, both ``(3, n, B)``, with preallocated buffers.

    Particles are in cyclic order. Each is paired with the n // 2 that follow it, so every pair occurs once,
    and the pairs of all particles with their k-th followers are computed together.
    """

    def __init__(self, charge: np.ndarray, physics: Physics) -> None:
        n, size = charge.shape
        half = n // 2
        self.cap, self.max_force = physics.cap, physics.max_force
        self.ring = np.empty((3, n + half, size))  # the first half is repeated at the end
        self.followers = self._windows(self.ring)  # (3, half, n, B)
        ring = np.concatenate([charge, charge[:half]])
        self.strength = physics.interaction_strength * charge * self._windows(ring[None])[0]  # (half, n, B)
        if n % 2 == 0:
            self.strength[-1, half:] = 0  # opposite particles follow each other: count them once
        self.apart = np.empty((3, half, n, size))
        self.squares = np.empty_like(self.apart)
        self.total = np.empty_like(self.ring)
        self.buffer = np.empty((3, n, size))

    @staticmethod
    def _windows(ring: np.ndarray) -> np.ndarray:
        """From ``(C, n + n // 2, B)`` to ``(C, n // 2, n, B)``: each particle's followers, by distance."""
        n = ring.shape[1] - ring.shape[1] // 3
        return sliding_window_view(ring[:, 1:], n, axis=1).swapaxes(-1, -2)

    def __call__(self, pos: np.ndarray) -> np.ndarray:
        n, half = pos.shape[1], self.ring.shape[1] - pos.shape[1]
        self.ring[:, :n], self.ring[:, n:] = pos, pos[:, :half]
        apart = np.subtract(pos[:, None], self.followers, out=self.apart)
        square = _sum_of_squares(apart, self.squares)
        np.maximum(square, _MIN_SQUARE, out=square)
        cube = np.sqrt(square, out=self.squares[1])
        cube *= square
        apart *= np.divide(self.strength, cube, out=cube)  # now forces
        self.total.fill(0)
        for k in range(half):
            self.total[:, :n] += apart[:, k]
            self.total[:, k + 1 : k + 1 + n] -= apart[:, k]
        force = self.total[:, :n]
        force[:, :half] += self.total[:, n:]
        return self._capped(force)

    def _capped(self, force: np.ndarray) -> np.ndarray:
        if math.isinf(self.max_force):
            return force
        if self.cap == "component":
            return np.clip(force, -self.max_force, self.max_force, out=force)
        norm = _sum_of_squares(force, self.buffer)
        np.sqrt(norm, out=norm)
        force *= np.divide(self.max_force, np.maximum(norm, self.max_force, out=norm), out=norm)
        return force


def _sum_of_squares(vectors: np.ndarray, buffer: np.ndarray) -> np.ndarray:
    """Over the first axis of three, with ``buffer`` for them; the sum is in its first row."""
    np.multiply(vectors, vectors, out=buffer)
    buffer[0] += buffer[1]
    buffer[0] += buffer[2]
    return buffer[0]
