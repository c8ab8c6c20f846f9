"""Figures of trained networks, in a file of results that grows network by network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from dgl_orient import pretrained
from dgl_orient.weights import pretrained_models
from dgl_orient.zoo.trained_model import TrainedModel

from ..report import machine
from .json_files import read_json, write_json
from .training import Folders

__all__ = ["commands_of", "measure_networks"]


def measure_networks(
    names: Sequence[str],
    folders: Folders,
    file: str,
    command: str,
    measure: Callable[[TrainedModel], Iterable[Mapping[str, object]]],
) -> None:
    """Add the figures of networks to a file of the results.

    Parameters
    ----------
    names : sequence of str
        Pretrained models, or runs of the folder.
    folders : Folders
        Where runs and results are.
    file : str
        The name of the file.
    command : str
        What measures a network, with ``NAME`` for its name.
    measure : callable
        Gives the figures of a network, those that take long last: what was measured before is kept.
    """
    path = folders.results / file
    networks = (read_json(path) or {}).get("networks", {})
    for name in names:
        model = pretrained(name if name in pretrained_models() else folders.checkpoint(name))
        networks[name], begin = {"command": command.replace("NAME", name)}, time.process_time()
        for figures in measure(model):
            networks[name] |= {"cpu_seconds": round(time.process_time() - begin), **figures}
            write_json(path, {"machine": machine(), "networks": networks}, levels=4)
            print(name, figures, flush=True)


def commands_of(networks: Mapping[str, Mapping[str, object]]) -> str:
    """The commands that measured networks, as a block of code in Markdown."""
    return "\n".join(
        f"    {each['command']}  # {each['cpu_seconds']} CPU seconds" for each in networks.values()
    )
