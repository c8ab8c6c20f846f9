"""How the error falls with the number of trajectories to learn from, at 10 particles."""

from __future__ import annotations

from ..trainings.collected import collect
from ..trainings.training import Place, Run
from .protocol import recorded
from .recipes import protocol_run, recipe_of
from .training import trained

__all__ = ["NETWORKS", "SIZES", "efficiency", "epochs_of"]

SIZES = (100, 300, 1000, 3000)
NETWORKS = ("oriented-nbody", "egnn", "egnn-inverse")

_NOTE = (
    "Networks are trained for as many steps whatever the number of trajectories, but for no more than five "
    "times as many epochs; the numbers of epochs are the same for all networks."
)


def epochs_of(size: int, epochs: int) -> int:
    """Epochs with so many trajectories, where all of them have ``epochs``.

    As many steps as with all trajectories would be 30 times as many epochs with 100 of them. Each epoch is
    validated by 2,000 systems, so there it ends at five times as many.

    Examples
    --------
    >>> from benchmarks.nbody.efficiency import SIZES, epochs_of
    >>> [epochs_of(size, 100) for size in SIZES]
    [500, 500, 300, 100]
    """
    return epochs * min(SIZES[-1] // size, 5)


def efficiency(epochs: int, place: Place, quick: bool) -> None:
    """Train all networks with all sizes, and write ``efficiency.json``."""
    command = f"python -m benchmarks.nbody efficiency --epochs {epochs}{' --quick' if quick else ''}"
    runs = {
        f"{model}_{size}": _run(model, size, epochs, command, quick) for size in SIZES for model in NETWORKS
    }
    by_size = {str(size): epochs_of(size, epochs) for size in SIZES}
    head = {"command": command, "note": _NOTE, "epochs": by_size}
    collect(place.results / "efficiency.json", head, runs, place, _shared)


def _run(model: str, size: int, epochs: int, command: str, quick: bool) -> Run:
    if size == SIZES[-1]:
        return protocol_run("n10", model, 0, epochs, quick)
    epochs = epochs_of(size, epochs)
    recipe = recipe_of("n10", model, 0, epochs, train_size=size, quick=quick)
    return Run(f"efficiency_{model}_{size}_{epochs}", recipe, command)


def _shared(run: Run, place: Place, before: dict | None) -> dict[str, object]:
    """With all trajectories, a training is one of the protocol's."""
    if before is None and not run.name.startswith("efficiency_"):
        return recorded(run, place)
    return trained(run, place, before)
