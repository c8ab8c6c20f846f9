"""What makes the difference: OrientedNBody at 10 particles with one thing changed at a time."""

from __future__ import annotations

from ..trainings.collected import collect
from ..trainings.training import Place, Run
from .recipes import recipe_of
from .training import trained

__all__ = ["CHANGES", "ablation"]

#: What is changed in each training. The first one is the network as it is, with one learned orientation.
CHANGES: dict[str, dict[str, object]] = {
    "learned": {},
    "velocity": {"orientations": "velocity"},
    "none": {"orientations": "none"},
    "two-orientations": {"num_orientations": 2},
    "four-orientations": {"num_orientations": 4},
    "neighbour-orientation": {"neighbour_orientation": True},
    "no-initial-vectors": {"initial_vectors": False},
    "no-inverse-distance": {"inverse_distance": False},
}


def ablation(epochs: int, place: Place, quick: bool) -> None:
    """Train all of :data:`CHANGES` for as many epochs, and write ``ablation.json``."""
    command = f"python -m benchmarks.nbody ablation --epochs {epochs}{' --quick' if quick else ''}"
    runs = {}
    for label, arguments in CHANGES.items():
        recipe = recipe_of("n10", "oriented-nbody", 0, epochs, arguments=arguments, quick=quick)
        runs[label] = Run(f"ablation_{label}_{epochs}", recipe, command)
    head = {"command": command, "epochs": epochs, "arguments": CHANGES}
    collect(place.results / "ablation.json", head, runs, place, trained)
