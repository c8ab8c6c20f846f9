"""The folder of a training: checkpoints, log and results."""

from __future__ import annotations

import copy
import functools
import json
import os
import platform
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from dgl import DGLError

from .._atomic import reason, write_file
from .._plain import is_plain
from .._training_folders import new_training_folder, training_folders
from . import checkpoint
from .settings import Settings

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two trainings apart
    fcntl = None

__all__ = ["TrainingFolder", "differences", "summary", "versions"]

_LOCK = ".lock"
#: What may change when a training is resumed: it has no influence on the result.
_FREE = {"device", "num_workers", "save_path", "tensorboard"}


class TrainingFolder:
    """The files that a training writes.

    ``run_0/last.pth`` is all that is needed to resume run 0, ``run_0/log.jsonl`` has a line for every
    epoch, ``run_0.pth`` is the best network so far, and ``results.json`` is there when all runs are done.

    Parameters
    ----------
    folder : str or Path
        Where to write it.
    recipe : mapping, optional
        The checked recipe, in plain numbers, strings, lists and dictionaries.
    settings : Settings
        How to train.
    """

    def __init__(self, folder: str | Path, recipe: Mapping[str, object] | None, settings: Settings) -> None:
        self.folder = Path(folder)
        self.recipe = _plain(recipe or {})
        self.settings = settings.as_dict()
        self.results_path = self.folder / "results.json"

    def numbered(self, resume: bool) -> TrainingFolder:
        """A new folder below this one, or to resume the newest whose training began with the same recipe."""
        existing = [self._at(folder) for folder in training_folders(self.folder)]
        if resume and existing:
            return next((each for each in reversed(existing) if each._can_resume()), existing[-1])
        try:
            return self._at(new_training_folder(self.folder))
        except OSError as error:
            raise self._unwritable(error) from error

    def _at(self, folder: Path) -> TrainingFolder:
        moved = copy.copy(self)
        moved.folder, moved.results_path = folder, folder / "results.json"
        return moved

    def _can_resume(self) -> bool:
        try:
            self.last(0)
        except DGLError:
            return False
        return True

    def _unwritable(self, error: OSError) -> DGLError:
        return DGLError(f"Cannot write in {self.folder}: {reason(error)}; name another folder in save_path.")

    def last_path(self, run: int) -> Path:
        return self.folder / f"run_{run}" / "last.pth"

    def log_path(self, run: int) -> Path:
        return self.folder / f"run_{run}" / "log.jsonl"

    def network_path(self, run: int) -> Path:
        return self.folder / f"run_{run}.pth"

    @contextmanager
    def locked(self, resume: bool) -> Iterator[None]:
        """Keep other processes from writing in the folder; raise if something in it might be lost."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._lock(descriptor)
            if not resume and any(each.name != _LOCK for each in self.folder.iterdir()):
                raise DGLError(
                    f"The folder {self.folder} is not empty; continue the training in it with resume "
                    f"(--resume), or name another folder in save_path."
                )
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise DGLError(
                f"Another process is training in {self.folder}; wait for it, or name another folder in "
                f"save_path."
            ) from error

    def last(self, run: int) -> dict[str, object] | None:
        """The last checkpoint of a run, None if there is none yet."""
        path = self.last_path(run)
        if not path.exists():
            return None
        state = checkpoint.load(path)
        kept = [state.get(name) for name in ("recipe", "settings")]
        if not all(isinstance(each, dict) and is_plain(each) for each in kept) or "run" not in state:
            raise DGLError(f"{path} holds a network but no state of a training; remove it to start again.")
        changed = self._changed(state)
        if changed:
            raise DGLError(
                f"The training in {self.folder} began with another recipe: {', '.join(changed)} differ; "
                f"resume with the recipe it began with, or name another folder in save_path."
            )
        return state

    def _changed(self, state: Mapping[str, object]) -> list[str]:
        return differences(state["recipe"], self.recipe) or differences(state["settings"], self.settings)

    def save_last(self, run: int, state: Mapping[str, object]) -> None:
        checkpoint.save(self.last_path(run), {"recipe": self.recipe, "settings": self.settings, **state})

    def save_network(self, run: int, state: Mapping[str, object]) -> None:
        checkpoint.save(self.network_path(run), {"recipe": self.recipe, "versions": versions(), **state})

    def log(self, run: int, record: Mapping[str, object]) -> None:
        """Add an epoch's line to the log of a run."""
        path = self.log_path(run)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise DGLError(
                f"Cannot write {path}: {reason(error)}; free some space, then continue with resume."
            ) from error

    def rewrite_log(self, run: int, history: Sequence[Mapping[str, object]]) -> None:
        """Keep the epochs of this history in the log, without those that have no checkpoint."""
        write_file(self.log_path(run), "".join(json.dumps(each) + "\n" for each in history).encode())

    def results(self) -> dict[str, object] | None:
        """The results of this training if it was finished before, else None."""
        try:
            stored = json.loads(self.results_path.read_text(encoding="utf-8"))
            is_of_another = self._changed(stored)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return None if is_of_another else stored

    def save_results(self, results: Mapping[str, object]) -> None:
        write_file(self.results_path, (json.dumps(results, indent=2) + "\n").encode())


def differences(one: Mapping[str, object], other: Mapping[str, object], where: str = "") -> list[str]:
    """The keys, as in ``optimizer.lr``, that make two recipes train differently.

    Examples
    --------
    >>> from dgl_orient.train.training_folder import differences
    >>> differences({"device": "cpu", "model": {"k": 20}}, {"device": "cuda", "model": {"k": 16}})
    ['model.k']
    """
    changed = []
    for key in dict.fromkeys([*one, *other]):
        before, after = one.get(key), other.get(key)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            changed += differences(before, after, f"{where}{key}.")
        elif key not in _FREE and (before != after or (key in one) != (key in other)):
            changed.append(f"{where}{key}")
    return changed


def summary(runs: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, dict[str, object]]]:
    """Mean and standard deviation over runs of every metric of every test set.

    Examples
    --------
    >>> from dgl_orient.train.training_folder import summary
    >>> summary([{"test": {"accuracy": 0.5}}, {"test": {"accuracy": 0.7}}])["test"]["accuracy"]
    {'mean': 0.6, 'deviation': 0.141..., 'values': [0.5, 0.7]}
    """
    return {
        name: {metric: _spread([run[name][metric] for run in runs]) for metric in metrics}
        for name, metrics in runs[0].items()
    }


def _spread(values: list[float]) -> dict[str, object]:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return {"mean": statistics.fmean(values), "deviation": deviation, "values": values}


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries on which a result may depend."""
    found = {"python": platform.python_version()}
    for name in ("dgl-orient", "torch", "dgl", "numpy"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # used from its folder
            found[name] = "unknown"
    return found


def _plain(recipe: Mapping[str, object]) -> dict[str, object]:
    """As it would be read back from JSON: with lists in the place of tuples."""
    try:
        return json.loads(json.dumps(recipe, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise DGLError(
            f"Expected a recipe of plain numbers, strings, lists and dictionaries, but {error}."
        ) from error
