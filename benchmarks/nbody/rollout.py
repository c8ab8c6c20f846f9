"""Networks applied again and again, against the simulator.

A network tells positions only. The velocities with which it goes on are those of going straight from one
position to the next, the same for all networks; the simulator is given such velocities too, as a network that
makes no error of its own would be. Then networks are given the true velocities, so that only their own errors
add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import dgl
import numpy as np
import torch
from torch import nn

from dgl_orient.config.build import data_set
from dgl_orient.data.simulation import Physics, energy, simulate
from dgl_orient.zoo.trained_model import model_of

from ..report import machine
from ..trainings.files import write_json
from ..trainings.training import Place
from .recipes import protocol_run, recipe_of

__all__ = ["DRAWN", "GIVEN", "SIMULATOR", "TRUTH", "rolled", "rollout"]

VARIANT, SEED, TIMES = "n10", 0, 10
TRUTH, SIMULATOR, GIVEN = "truth", "simulator", ", true velocities"
DRAWN = 0  #: the system of which the picture shows the ways
_FAR = 1e3  # beyond it nothing is a system of particles any more: the fastest are within some tens
_NOTE = (
    "Each network is applied to its own positions; velocities are those of going straight from one position "
    "to the next, or, where it says so, the true ones. 'simulator' is the simulator with velocities of going "
    "straight, 'truth' the simulator without interruption. mse is the mean over all coordinates, median_mse "
    "the median over systems of a system's mean, and energy_drift the median over systems of the change of "
    "energy a particle since the beginning, without its sign. A system that goes farther than 1,000 has "
    "diverged: then mse has no value, and the medians count it as infinite. paths are x and y of one "
    "system's particles."
)

#: Positions, velocities and charges to positions a horizon later, all ``(B, n, ...)``.
Step = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def rollout(models: Sequence[str], epochs: int, systems: int, place: Place, quick: bool) -> None:
    """Apply the best networks of the protocol ten times, and write ``rollout.json``."""
    command = (
        f"python -m benchmarks.nbody rollout --models {' '.join(models)} --epochs {epochs} "
        f"--systems {systems}{' --quick' if quick else ''}"
    )
    steps = {model: _network_step(model, epochs, place, quick) for model in models}
    recipe = recipe_of(VARIANT, "egnn", SEED, epochs, quick=quick)
    recipe["data"]["save_dir"] = str(place.folder / "data")
    dataset = data_set(recipe, "test")
    physics, horizon = dataset.physics, dataset.horizon
    steps[SIMULATOR] = _simulator_step(physics, horizon)
    graphs = [dataset[number] for number in range(min(systems, len(dataset)))]
    pos, vel, charge = (
        np.stack([graph.ndata[name].double().numpy() for graph in graphs])
        for name in ("pos", "vel", "charge")
    )
    print(f"simulating {len(pos)} systems", flush=True)
    record = [number * horizon for number in range(TIMES + 1)]
    ways = {TRUTH: simulate(pos, vel, charge, record, physics=physics)}
    for name, step in steps.items():
        print(f"rolling out {name}", flush=True)
        ways[name] = rolled(step, pos, vel, charge, horizon * physics.dt)
        if name != SIMULATOR:  # which is the truth then
            ways[name + GIVEN] = rolled(step, pos, vel, charge, horizon * physics.dt, ways[TRUTH][1])
    figures = {name: _figures(*way, ways[TRUTH][0], charge, physics) for name, way in ways.items()}
    head = {"command": command, "note": _NOTE, "systems": len(pos), "horizon": horizon, "machine": machine()}
    write_json(place.results / "rollout.json", {**head, "ways": figures}, levels=3)
    for name, each in figures.items():
        print(f"{name}: mse {each['mse']}, energy drift {each['energy_drift']}", flush=True)


def rolled(
    step: Step,
    pos: np.ndarray,
    vel: np.ndarray,
    charge: np.ndarray,
    time: float,
    given: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities ``(TIMES + 1, B, n, 3)`` from applying a step to its own results.

    Systems that diverge are NaN from then on.

    Parameters
    ----------
    step : callable
        From positions, velocities and charges to positions.
    pos, vel, charge : array
        At the beginning.
    time : float
        That a step takes.
    given : array, optional
        Velocities to go on with ``(TIMES + 1, B, n, 3)``; not given, those of going straight.
    """
    positions, velocities = [pos], [vel]
    for number in range(1, TIMES + 1):
        last, moved = positions[-1], np.full_like(pos, np.nan)
        near = (np.abs(last) < _FAR).all((1, 2))  # NaN is not
        if near.any():
            moved[near] = step(last[near], velocities[-1][near], charge[near])
        moved[~(np.abs(moved) < _FAR).all((1, 2))] = np.nan
        positions.append(moved)
        velocities.append((moved - last) / time if given is None else given[number])
    return np.stack(positions), np.stack(velocities)


def _network_step(model: str, epochs: int, place: Place, quick: bool) -> Step:
    run = protocol_run(VARIANT, model, SEED, epochs, quick)
    network = model_of(place.network(run))
    return lambda pos, vel, charge: _applied(network, pos, vel, charge)


@torch.no_grad()
def _applied(network: nn.Module, pos: np.ndarray, vel: np.ndarray, charge: np.ndarray) -> np.ndarray:
    graph = dgl.graph(([], []), num_nodes=pos.shape[0] * pos.shape[1])
    graph.set_batch_num_nodes(torch.full((len(pos),), pos.shape[1]))
    graph.set_batch_num_edges(torch.zeros(len(pos), dtype=torch.int64))
    for name, value in (("pos", pos), ("vel", vel), ("charge", charge)):
        graph.ndata[name] = torch.from_numpy(value.reshape(-1, value.shape[-1])).float()
    return network(graph).double().numpy().reshape(pos.shape)


def _simulator_step(physics: Physics, horizon: int) -> Step:
    return lambda pos, vel, charge: simulate(pos, vel, charge, [horizon], physics=physics)[0][0]


def _figures(
    pos: np.ndarray, vel: np.ndarray, truth: np.ndarray, charge: np.ndarray, physics: Physics
) -> dict[str, list]:
    """What is told after every application, and the ways of one system."""
    errors = np.square(pos - truth)[1:].mean((2, 3))  # (TIMES, B)
    lost = np.isnan(errors)
    states = [np.nan_to_num(each) for each in (pos, vel)]
    energies = energy(*states, charge, physics)
    drift = np.abs(energies[1:] - energies[0]) / pos.shape[2]
    return {
        "mse": _rounded(errors.mean(1)),
        "median_mse": _rounded(np.median(np.where(lost, np.inf, errors), 1)),
        "energy_drift": _rounded(np.median(np.where(lost, np.inf, drift), 1)),
        "diverged": lost.sum(1).tolist(),
        "paths": [[_rounded(place) for place in system] for system in pos[:, DRAWN, :, :2]],
    }


def _rounded(values: Iterable[float]) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]
