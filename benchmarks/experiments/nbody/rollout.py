"""Networks applied repeatedly to their own predictions, against the simulator.

A network predicts positions only. Its next input velocities are displacement over time, the same
for all networks; the simulator gets such velocities too, like a network without an error of its own. A second
rollout gives networks the true velocities, so that only their own errors accumulate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import nn

from dgl_orient.config.build import data_set
from dgl_orient.data.simulation import Physics, energy, simulate
from dgl_orient.graph import point_cloud
from dgl_orient.zoo.loading import load_trained_model

from ...report import machine
from ..json_files import write_json
from ..training import Folders, command_of, localize
from .recipes import protocol_run

__all__ = ["GROUND_TRUTH", "SIMULATOR", "TRUE_VELOCITIES", "measure_rollout", "roll_out"]

GROUND_TRUTH, SIMULATOR, TRUE_VELOCITIES = "ground truth", "simulator", ", true velocities"
_VARIANT, _SEED, _STEPS = "n10", 0, 10
_FAR = 1e3  # a system beyond it has diverged: the fastest particles stay within some tens

#: Positions, velocities and charges to positions a horizon later, all ``(B, n, ...)``.
Step = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def measure_rollout(models: Sequence[str], epochs: int, systems: int, folders: Folders, quick: bool) -> None:
    """Apply the best networks of the protocol ten times, and write ``rollout.json``."""
    runs = {model: protocol_run(_VARIANT, model, _SEED, epochs, quick) for model in models}
    steps = {model: _network_step(folders.checkpoint(run.name)) for model, run in runs.items()}
    dataset = data_set(localize(runs[models[0]].recipe, save_dir=folders.data), "test")
    physics, horizon = dataset.physics, dataset.horizon
    steps[SIMULATOR] = _simulator_step(physics, horizon)
    graphs = [dataset[number] for number in range(min(systems, len(dataset)))]
    pos, vel, charge = (
        np.stack([graph.ndata[name].double().numpy() for graph in graphs])
        for name in ("pos", "vel", "charge")
    )
    times = [number * horizon for number in range(_STEPS + 1)]
    rollouts = {GROUND_TRUTH: simulate(pos, vel, charge, times, physics=physics)}
    truth, true_vel = rollouts[GROUND_TRUTH]
    for name, step in steps.items():
        print(f"rolling out {name}", flush=True)
        rollouts[name] = roll_out(step, pos, vel, charge, horizon * physics.dt)
        if name != SIMULATOR:  # which would be the ground truth
            given = roll_out(step, pos, vel, charge, horizon * physics.dt, true_vel)
            rollouts[name + TRUE_VELOCITIES] = given
    figures = {name: _figures(*rollout, truth, charge, physics) for name, rollout in rollouts.items()}
    command = f"rollout --models {' '.join(models)} --epochs {epochs} --systems {systems}"
    result = {
        "command": command_of("nbody", command, quick),
        "systems": len(pos),
        "horizon": horizon,
        "machine": machine(),
        "methods": figures,
    }
    write_json(folders.results / "rollout.json", result, levels=3)
    for name, each in figures.items():
        print(f"{name}: mse {each['mse']}, energy drift {each['energy_drift']}", flush=True)


def roll_out(
    step: Step,
    pos: np.ndarray,
    vel: np.ndarray,
    charge: np.ndarray,
    time: float,
    true_vel: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities ``(11, B, n, 3)`` from applying a step to its own results.

    Velocities are displacement over the time of a step, unless the true ones ``(11, B, n, 3)`` are given.
    Systems that diverge are NaN from then on.
    """
    positions, velocities = [pos], [vel]
    for number in range(1, _STEPS + 1):
        last, moved = positions[-1], np.full_like(pos, np.nan)
        near = (np.abs(last) < _FAR).all((1, 2))  # False for NaN
        if near.any():
            moved[near] = step(last[near], velocities[-1][near], charge[near])
        moved[~(np.abs(moved) < _FAR).all((1, 2))] = np.nan
        positions.append(moved)
        velocities.append((moved - last) / time if true_vel is None else true_vel[number])
    return np.stack(positions), np.stack(velocities)


def _network_step(checkpoint) -> Step:
    network = load_trained_model(checkpoint).network
    return lambda pos, vel, charge: _predict(network, pos, vel, charge)


@torch.no_grad()
def _predict(network: nn.Module, pos: np.ndarray, vel: np.ndarray, charge: np.ndarray) -> np.ndarray:
    pos_, vel_, charge_ = (torch.from_numpy(each).float().flatten(0, 1) for each in (pos, vel, charge))
    graph = point_cloud(pos_, [pos.shape[1]] * len(pos))
    graph.ndata.update(vel=vel_, charge=charge_)
    return network(graph).double().numpy().reshape(pos.shape)


def _simulator_step(physics: Physics, horizon: int) -> Step:
    return lambda pos, vel, charge: simulate(pos, vel, charge, [horizon], physics=physics)[0][0]


def _figures(
    pos: np.ndarray, vel: np.ndarray, truth: np.ndarray, charge: np.ndarray, physics: Physics
) -> dict[str, list]:
    """Errors after every step, and the paths of the first system in x and y."""
    errors = np.square(pos - truth)[1:].mean((2, 3))  # (steps, B)
    diverged = np.isnan(errors)
    energies = energy(*(np.nan_to_num(each) for each in (pos, vel)), charge, physics)
    drift = np.abs(energies[1:] - energies[0]) / pos.shape[2]
    return {
        "mse": _rounded(errors.mean(1)),
        "median_mse": _rounded(np.median(np.where(diverged, np.inf, errors), 1)),
        "energy_drift": _rounded(np.median(np.where(diverged, np.inf, drift), 1)),
        "diverged": diverged.sum(1).tolist(),
        "paths": [[_rounded(point) for point in system] for system in pos[:, 0, :, :2]],
    }


def _rounded(values: Iterable[float]) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
