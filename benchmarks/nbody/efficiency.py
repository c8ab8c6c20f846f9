"""How the error falls with the number of trajectories to learn from, at 10 particles."""

from __future__ import annotations

from ..trainings.collected import collect
from ..trainings.training import Place, Run
from .protocol import recorded
from .recipes import protocol_run, recipe_of
from .training import trained

__all__ = ["NETWORKS", "SIZES", "efficiency", "repeats_of"]

SIZES = (100, 300, 1000, 3000)
NETWORKS = ("oriented-nbody", "egnn")

_NOTE = (
    "An epoch goes through the trajectories as often as it takes to see 3,000, so all trainings have as many "
    "steps and validations."
)


def repeats_of(size: int) -> int:
    """How often an epoch goes through so many trajectories.

    Examples
    --------
    >>> from benchmarks.nbody.efficiency import SIZES, repeats_of
    >>> [repeats_of(size) for size in SIZES]
    [30, 10, 3, 1]
    """
    return SIZES[-1] // size


def efficiency(epochs: int, place: Place, quick: bool) -> None:
    """Train all networks with all sizes, and write ``efficiency.json``."""
    command = f"python -m benchmarks.nbody efficiency --epochs {epochs}{' --quick' if quick else ''}"
    sizes = {f"{model}_{size}": (model, size) for size in SIZES for model in NETWORKS}
    runs = {label: _run(*each, epochs, command, quick) for label, each in sizes.items()}
    repeats = {runs[label].name: repeats_of(size) for label, (_, size) in sizes.items()}

    def train(run: Run, place: Place, before: dict | None) -> dict[str, object]:
        # With all trajectories, a training is one of the protocol's.
        if before is None and repeats[run.name] == 1:
            return recorded(run, place)
        return trained(run, place, before, repeats[run.name])

    head = {"command": command, "note": _NOTE, "epochs": epochs}
    collect(place.results / "efficiency.json", head, runs, place, train)


def _run(model: str, size: int, epochs: int, command: str, quick: bool) -> Run:
    if size == SIZES[-1]:
        return protocol_run("n10", model, 0, epochs, quick)
    recipe = recipe_of("n10", model, 0, epochs, train_size=size, quick=quick)
    return Run(f"efficiency_{model}_{size}_{epochs}", recipe, command)
