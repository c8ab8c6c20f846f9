"""Systems of charged particles and their states some steps later: a simulated data set."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np

from .._validation import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    check_choice,
    check_integer,
)
from .choices import CappedQuantity, Split, Transform
from .dataset import PointCloudDataset, PointClouds
from .simulation import Physics, check_positive, simulate

__all__ = ["ChargedParticles"]

_MAX_PARTICLES, _MAX_SYSTEMS, _MAX_STEPS = 100_000, 10_000_000, 1_000_000_000
_SIZES = {"train": 3000, "val": 2000, "test": 2000}

# Each is sampled from a stream of its own, so that a longer data set begins with the shorter one.
_STATES, _CHARGES, _NOISE = range(3)

#: Increase it when the same arguments give other data, so that caches of older versions are not used.
_GENERATOR_VERSION = 1


class ChargedParticles(PointCloudDataset):
    """The N-body task of *E(n) Equivariant Graph Neural Networks* and others.

    ``dataset[i]`` is a graph whose ``ndata`` holds ``pos``, ``vel`` ``(n, 3)`` and ``charge`` ``(n, 1)`` of a
    system of charged particles, and its state some steps later in ``target_pos`` and ``target_vel``. Charges
    are 1 or -1 with equal probability; initial positions are normally distributed around the origin, and
    initial velocities have uniform directions.

    Equal arguments give equal data on every machine, different splits and seeds independent data.

    Published data of this kind differ in their settings, and so do the errors on them. The generator of the
    EGNN paper has the default ``loc_std`` and no box, and the inputs of its small set are at step 3,100;
    the SE(3)-Transformer's has ``loc_std=1, box=5``. Both have ``cap="component", staggered=True``: see
    :class:`dgl_orient.data.simulation.Physics` for why the default differs.

    Parameters
    ----------
    split : str
        ``"train"``, ``"val"`` or ``"test"``.
    num_particles : int
        Number of particles of a system.
    size : int, optional
        Number of systems: by default 3,000 for training, 2,000 for validation and 2,000 for testing.
    start : int
        The step of the input state.
    horizon : int
        Number of steps from the input to the target.
    loc_std : float, optional
        Standard deviation of the coordinates at step 0: by default (n / 5)^(1/3), which keeps the density.
    vel_norm : float
        The speed of each particle at step 0.
    interaction_strength : float
        The factor of the Coulomb force; see :class:`dgl_orient.data.simulation.Physics` for the physics.
    dt : float
        The time step.
    box : float, optional
        Half the side of a cube whose walls reflect the particles, which is not equivariant; none by default.
    force_cap : float, optional
        The magnitude to which forces are capped: by default 0.1 / ``dt``.
    cap : {"norm", "component"}
        Whether the norm of a force is capped or each component of it.
    staggered : bool
        Whether velocities are those of half a step before the positions.
    noise : float
        Standard deviation of noise on all positions and velocities, targets too.
    seed : int
        Seed of the systems and of the transform.
    save_dir : str or Path, optional
        Folder of the cache; by default the data are simulated each time.
    transform, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`. On a terminal there is always a progress bar.

    Examples
    --------
    >>> from dgl_orient.data.charged_particles import ChargedParticles
    >>> dataset = ChargedParticles("test", num_particles=5, size=4, horizon=100)
    >>> len(dataset), sorted(dataset[0].ndata)
    (4, ['charge', 'pos', 'target_pos', 'target_vel', 'vel'])
    """

    gravity = None  #: there is no upright axis

    def __init__(
        self,
        split: Split = "train",
        num_particles: int = 10,
        size: PositiveInt | None = None,
        start: NonNegativeInt = 0,
        horizon: PositiveInt = 1000,
        loc_std: PositiveFloat | None = None,
        vel_norm: NonNegativeFloat = 0.5,
        interaction_strength: float = 1.0,
        dt: float = 0.001,
        box: float | None = None,
        force_cap: float | None = None,
        cap: CappedQuantity = "norm",
        staggered: bool = False,
        noise: NonNegativeFloat = 0.0,
        seed: int = 0,
        save_dir: str | Path | None = None,
        transform: Transform | None = None,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_choice("split", split, Split)
        self.physics = Physics(interaction_strength, dt, box, force_cap, cap, staggered)
        self.num_particles = check_integer("num_particles", num_particles, 2, _MAX_PARTICLES)
        self.size = _SIZES[split] if size is None else check_integer("size", size, 1, _MAX_SYSTEMS)
        self.start = check_integer("start", start, 0, _MAX_STEPS)
        self.horizon = check_integer("horizon", horizon, 1, _MAX_STEPS)
        self.loc_std = (self.num_particles / 5) ** (1 / 3) if loc_std is None else loc_std
        self.vel_norm, self.noise = vel_norm, noise
        check_positive(loc_std=self.loc_std)
        check_positive(or_zero=True, vel_norm=vel_norm, noise=noise)
        seed = check_integer("seed", seed)
        settings = (self.split, self.num_particles, self.size, self.start, self.horizon)
        scales = (self.loc_std, self.vel_norm, self.noise)
        super().__init__(
            "charged",
            save_dir=save_dir,
            hash_key=(_GENERATOR_VERSION, *settings, *map(float, scales), repr(self.physics), seed),
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )

    def process(self) -> None:
        pos, vel, charge = self._initial_states()
        record = [self.start, self.start + self.horizon]
        trajectories = simulate(pos, vel, charge, record, physics=self.physics, verbose=self.verbose)
        states = np.concatenate(trajectories).swapaxes(0, 1)  # (size, 4, n, 3)
        if self.noise:
            states = states + self.noise * self._stream(_NOISE).standard_normal(states.shape)
        names = ("pos", "target_pos", "vel", "target_vel")
        node = {name: states[:, i].reshape(-1, 3).astype(np.float32) for i, name in enumerate(names)}
        node["charge"] = charge.reshape(-1, 1).astype(np.float32)
        self.clouds = PointClouds(np.full(self.size, self.num_particles), node)

    def _initial_states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions and velocities ``(size, n, 3)`` at step 0, and charges ``(size, n, 1)``."""
        shape = (self.size, self.num_particles, 1)
        sample = self._stream(_STATES).standard_normal((self.size, 2, self.num_particles, 3))
        # Normal samples take logarithms, whose last digits depend on the machine: round them away.
        pos = (self.loc_std * sample[:, 0]).astype(np.float32).astype(np.float64)
        vel = sample[:, 1].astype(np.float32).astype(np.float64)
        square = vel[..., 0] ** 2 + vel[..., 1] ** 2 + vel[..., 2] ** 2
        vel *= (self.vel_norm / np.sqrt(square))[..., None]
        return pos, vel, 2.0 * self._stream(_CHARGES).integers(2, size=shape) - 1

    def _stream(self, purpose: int) -> np.random.Generator:
        # The seed comes last, since it may take more than one word: so no two streams coincide.
        words = [get_args(Split).index(self.split), purpose, self.seed % 2**64]
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))
