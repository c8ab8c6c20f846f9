"""Systems of charged particles, now and a while later: a data set that is computed, not downloaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from dgl import DGLGraph

from .._validation import check_integer
from .dataset import PointCloudDataset, PointClouds
from .simulation import Physics, check_positive, simulate
from .splits import check_split

__all__ = ["ChargedParticles"]

_MOST_PARTICLES, _MOST_SYSTEMS, _MOST_STEPS = 100_000, 10_000_000, 1_000_000_000
_SIZES = {"train": 3000, "val": 2000, "test": 2000}

# What is drawn, each from a stream of its own: a longer data set then begins with the shorter one.
_STATES, _CHARGES, _NOISE = range(3)

# To be raised when the same arguments begin to give other data, so that old caches are not taken for new.
_VERSION = 1


class ChargedParticles(PointCloudDataset):
    """Where will the particles be? The N-body task of *E(n) Equivariant Graph Neural Networks* and others.

    ``dataset[i]`` is a graph whose ``ndata`` holds ``pos``, ``vel`` ``(n, 3)`` and ``charge`` ``(n, 1)`` of a
    system of charged particles, and its state some steps later in ``target_pos`` and ``target_vel``. Charges
    are 1 or -1, either as likely as the other; positions begin normally distributed around the origin and
    velocities in any direction.

    Equal arguments give equal data on every machine, different splits and seeds independent data.

    Published data of this kind differ in their settings, and errors on them differ with those. The generator
    of the EGNN paper has the ``loc_std`` of the default and no box, and its small set is shown at step 3,100;
    the SE(3)-Transformer's has ``loc_std=1, box=5``. Both have ``cap="component", staggered=True``: see
    :class:`dgl_orient.data.simulation.Physics` for why the default differs.

    Parameters
    ----------
    split : str
        ``"train"``, ``"val"`` or ``"test"``.
    num_particles : int
        How many particles a system has.
    size : int, optional
        How many systems: not given, 3,000 for training, 2,000 for validation and 2,000 for testing.
    start : int
        The step at which a system is shown.
    horizon : int
        How many steps later its target is.
    loc_std : float, optional
        Standard deviation of the coordinates at step 0: not given, (n / 5)^(1/3), which keeps the density.
    vel_norm : float
        The speed of each particle at step 0.
    interaction_strength, dt, box, force_cap, cap, staggered
        The physics, as in :class:`dgl_orient.data.simulation.Physics`; found again in ``physics``.
    noise : float
        Standard deviation of noise on all positions and velocities, targets too.
    seed : int
        Of the systems and of the transform's draws.
    save_dir : str or Path, optional
        Where to keep the data; not given, they are computed anew each time.
    transform, force_reload, verbose
        As in :class:`dgl_orient.data.PointCloudDataset`. A terminal sees a progress bar in any case.

    Examples
    --------
    >>> from dgl_orient.data.charged_particles import ChargedParticles
    >>> dataset = ChargedParticles("test", num_particles=5, size=4, horizon=100)
    >>> len(dataset), sorted(dataset[0].ndata)
    (4, ['charge', 'pos', 'target_pos', 'target_vel', 'vel'])
    """

    gravity = None  #: nothing stands upright here

    def __init__(
        self,
        split: str = "train",
        num_particles: int = 10,
        size: int | None = None,
        start: int = 0,
        horizon: int = 1000,
        loc_std: float | None = None,
        vel_norm: float = 0.5,
        interaction_strength: float = 1.0,
        dt: float = 0.001,
        box: float | None = None,
        force_cap: float | None = None,
        cap: str = "norm",
        staggered: bool = False,
        noise: float = 0.0,
        seed: int = 0,
        save_dir: str | Path | None = None,
        transform: Callable[[DGLGraph], DGLGraph] | None = None,
        force_reload: bool = False,
        verbose: bool = False,
    ) -> None:
        self.split = check_split(split, tuple(_SIZES))
        self.physics = Physics(interaction_strength, dt, box, force_cap, cap, staggered)
        self.num_particles = check_integer("num_particles", num_particles, 2, _MOST_PARTICLES)
        self.size = _SIZES[split] if size is None else check_integer("size", size, 1, _MOST_SYSTEMS)
        self.start = check_integer("start", start, 0, _MOST_STEPS)
        self.horizon = check_integer("horizon", horizon, 1, _MOST_STEPS)
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
            hash_key=(_VERSION, *settings, *map(float, scales), repr(self.physics), seed),
            transform=transform,
            seed=seed,
            force_reload=force_reload,
            verbose=verbose,
        )

    def process(self) -> None:
        pos, vel, charge = self._first_states()
        record = [self.start, self.start + self.horizon]
        trajectories = simulate(pos, vel, charge, record, physics=self.physics, verbose=self.verbose)
        states = np.concatenate(trajectories).swapaxes(0, 1)  # (size, 4, n, 3)
        if self.noise:
            states = states + self.noise * self._stream(_NOISE).standard_normal(states.shape)
        names = ("pos", "target_pos", "vel", "target_vel")
        node = {name: states[:, i].reshape(-1, 3).astype(np.float32) for i, name in enumerate(names)}
        node["charge"] = charge.reshape(-1, 1).astype(np.float32)
        self.clouds = PointClouds(np.full(self.size, self.num_particles), node)

    def _first_states(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions and velocities ``(size, n, 3)`` at step 0, and charges ``(size, n, 1)``."""
        shape = (self.size, self.num_particles, 1)
        drawn = self._stream(_STATES).standard_normal((self.size, 2, self.num_particles, 3))
        # Drawing takes logarithms, whose last digits may depend on the machine: only the first ones are kept.
        pos = (self.loc_std * drawn[:, 0]).astype(np.float32).astype(np.float64)
        vel = drawn[:, 1].astype(np.float32).astype(np.float64)
        square = vel[..., 0] ** 2 + vel[..., 1] ** 2 + vel[..., 2] ** 2
        vel *= (self.vel_norm / np.sqrt(square))[..., None]
        return pos, vel, 2.0 * self._stream(_CHARGES).integers(2, size=shape) - 1

    def _stream(self, purpose: int) -> np.random.Generator:
        # The seed comes last, for it may take more than one word: no two streams then share their words.
        words = [list(_SIZES).index(self.split), purpose, self.seed % 2**64]
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))
