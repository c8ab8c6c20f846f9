"""Training from the first epoch to the test: the validation set chooses, the test sets are scored once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch
from dgl import DGLError
from torch import nn
from torch.utils.data import Dataset

from .._validation import as_plain
from ..data import PointCloudLoader, point_cloud_loader
from . import checkpoint, distributed
from .bfloat16 import check_bfloat16
from .epochs import evaluate, train_epoch
from .failures import check_weights, explained
from .progress import Progress, table
from .records import Records, summary, versions
from .run import Run, draw_from
from .settings import Settings
from .tasks import Task

__all__ = ["Splits", "fit"]

#: What a network's checkpoint tells of the data set that it was trained with, where it is known.
_FACTS = ("num_classes", "class_names", "num_parts", "part_names", "class_parts", "gravity")


@dataclass(frozen=True)
class Splits:
    """The data sets of a training."""

    train: Dataset  #: to learn from
    val: Dataset  #: to choose the best epoch by
    tests: Mapping[str, Dataset]  #: to score the best epoch by, under their names


def fit(
    task: Task,
    model: nn.Module | Callable[[], nn.Module],
    splits: Splits,
    settings: Settings,
    recipe: Mapping[str, object] | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    device: str = "cpu",
    progress: bool = True,
) -> dict[str, object]:
    """Train a network, choose its best epoch by the validation set, and score that one by the test sets.

    What an epoch does depends on the weights, the seed and the number of the epoch alone. So a training that
    was killed at any moment and is resumed ends with the weights with which it would have ended, and on the
    CPU the same seed gives the same weights to the last bit.

    Under ``torchrun`` all its processes train one network together, with the same batches as one process
    would. What differs is the noise of dropout, and rounding.

    Parameters
    ----------
    task : Task
        What to learn.
    model : nn.Module or callable
        The network; or, for several runs, a function that makes a new one, such as the network's class.
    splits : Splits
        The data sets.
    settings : Settings
        How to train.
    recipe : mapping, optional
        A description of data and network in plain numbers and texts. It is kept with the checkpoints, and a
        training is resumed with the same one only.
    folder : str or Path, optional
        Where to keep checkpoints, logs and results; ``settings.save_path`` if not given.
    resume : bool
        Go on with the training in the folder, if there is one.
    device : str
        ``"cpu"`` or ``"cuda"``.
    progress : bool
        Whether to tell how it goes.

    Returns
    -------
    dict
        What is in ``results.json``: ``metrics`` with mean and deviation over runs for each test set,
        ``runs``, and how they came about.

    Examples
    --------
    >>> import tempfile
    >>> from dgl_orient.data import Shapes
    >>> from dgl_orient.models import DGCNN
    >>> from dgl_orient.train.loop import Splits, fit
    >>> from dgl_orient.train.settings import Settings
    >>> from dgl_orient.train.tasks import PointClassification
    >>> train, val, test = (Shapes(split, 32, 20) for split in ("train", "val", "test"))
    >>> settings = Settings(num_epochs=2, train_batch_size=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = fit(
    ...         PointClassification(10), DGCNN.light(10), Splits(train, val, {"test": test}), settings,
    ...         folder=folder, progress=False,
    ...     )
    >>> list(results["metrics"]["test"])
    ['accuracy', 'class_accuracy']
    """
    records = Records(settings.save_path if folder is None else folder, recipe, settings)
    with distributed.joined(device) as place, torch.random.fork_rng(), ExitStack() as stack:
        _check(model, splits, settings)
        if settings.bf16:
            check_bfloat16(place)
        distributed.on_main(lambda: stack.enter_context(records.held(resume)))
        told = Progress(progress, settings, task)
        training = _Training(task, model, splits, settings, records, told, place)
        results = training.results(resume)
        told.say(table(results))
        return results


class _Training:
    """All runs of a training."""

    def __init__(
        self,
        task: Task,
        model: nn.Module | Callable[[], nn.Module],
        splits: Splits,
        settings: Settings,
        records: Records,
        told: Progress,
        device: torch.device,
    ) -> None:
        self.task, self.model, self.splits, self.settings = task, model, splits, settings
        self.records, self.told, self.device = records, told, device

    def results(self, resume: bool) -> dict[str, object]:
        runs = [self._done(number, resume) for number in range(self.settings.num_runs)]
        stored = distributed.on_main(self.records.results) if resume else None
        if stored is not None:
            return stored
        results = {
            "task": self.task.name,
            "metrics": summary([run["tests"] for run in runs]),
            "runs": runs,
            "recipe": self.records.recipe,
            "settings": self.records.settings,
            "versions": versions(),
            "seed": self.settings.seed,
            "num_processes": distributed.world_size(),
            "seconds": sum(run["seconds"] for run in runs),
        }
        distributed.on_main(self.records.save_results, results)
        return results

    def _done(self, number: int, resume: bool) -> dict[str, object]:
        """The account of a run, for which it may have to be trained first."""
        run = self._begun(number, resume)
        if run.result is None:
            try:
                self._train(run)
                self._finish(run)
            except KeyboardInterrupt:
                self._say_where(run)
                raise
        return _account(run)

    def _begun(self, number: int, resume: bool) -> Run:
        """A run at its beginning, or where it was left."""
        draw_from(self.settings.seed + number)
        model = self.model if isinstance(self.model, nn.Module) else self.model()
        run = Run(number, self.task, model.to(self.device), self.settings)
        state = distributed.on_main(self.records.last, number) if resume else None
        if state is None:
            return run
        run.restore(state, self.records.last_path(number))
        distributed.on_main(self.records.rewrite_log, number, run.history)
        done = "is finished" if run.result is not None else f"goes on after epoch {run.epoch}"
        self.told.say(f"Run {number} in {self.records.folder} {done}.")
        return run

    def _train(self, run: Run) -> None:
        train = self._loader(self.splits.train, run)
        val = self._loader(self.splits.val)
        while not run.is_over:
            with explained(run.epoch + 1, self.records.last_path(run.number), self.settings):
                record = self._epoch(run, train, val)
            is_best = run.add(record)
            distributed.on_main(self._keep, run, is_best)
            self.told.epoch(run.number, record, is_best)

    def _epoch(self, run: Run, train: PointCloudLoader, val: PointCloudLoader) -> dict[str, object]:
        began, lr = time.perf_counter(), run.rate.value
        draw_from(run.seed, run.epoch, distributed.rank())
        train.set_epoch(run.epoch)
        loss = train_epoch(
            self.task,
            run.trained,
            run.optimizer,
            self.told.batches(train, run.number, run.epoch, lr),
            self.device,
            self.settings.grad_clip,
            self.settings.bf16,
            self.told.loss,
        )
        check_weights(run.model)
        metrics = evaluate(self.task, run.model, val, self.device, self.settings.bf16)
        seconds = round(time.perf_counter() - began, 3)
        return {"epoch": run.epoch + 1, "loss": loss, "val": metrics, "lr": lr, "seconds": seconds}

    def _keep(self, run: Run, is_best: bool) -> None:
        """Write what an epoch has brought."""
        self.records.log(run.number, run.history[-1])
        # First the network: if killed in between, the epoch is trained again and gives the same one.
        if is_best:
            self._keep_network(run)
        self.records.save_last(run.number, run.state())

    def _keep_network(self, run: Run) -> None:
        facts = {name: _fact(self.splits.train, name) for name in _FACTS}
        self.records.save_network(
            run.number,
            {
                "task": self.task.name,
                "facts": {name: fact for name, fact in facts.items() if fact is not None},
                "weights": run.best_weights,
                "epoch": run.best["epoch"],
                "val": run.best["val"],
                "tests": run.result,
            },
        )

    def _finish(self, run: Run) -> None:
        """Score the best weights."""
        last = self.records.last_path(run.number)
        checkpoint.load_weights(run.model, run.best_weights, last)
        with explained(run.best["epoch"], last, self.settings):
            run.result = {
                name: evaluate(self.task, run.model, self._loader(dataset), self.device, self.settings.bf16)
                for name, dataset in self.splits.tests.items()
            }
        distributed.on_main(self._keep_finished, run)

    def _keep_finished(self, run: Run) -> None:
        self._keep_network(run)
        self.records.save_last(run.number, run.state())

    def _loader(self, dataset: Dataset, run: Run | None = None) -> PointCloudLoader:
        """Batches to learn from in a run, or to measure by."""
        settings = self.settings
        options = dict(num_workers=settings.num_workers, pin_memory=self.device.type == "cuda")
        if run is None:
            return point_cloud_loader(dataset, settings.eval_batch_size, **options)
        size = settings.train_batch_size
        return point_cloud_loader(
            dataset,
            size,
            shuffle=True,
            seed=run.seed,
            # A small last batch has noisy statistics, and may leave a process without a cloud.
            drop_last=len(dataset) >= size,
            persistent_workers=True,
            **options,
        )

    def _say_where(self, run: Run) -> None:
        last = self.records.last_path(run.number)
        kept = f"the last checkpoint is {last}; go on with resume" if last.exists() else "no checkpoint yet"
        self.told.say(f"Stopped in epoch {run.epoch + 1}: {kept}.")


def _check(model: object, splits: Splits, settings: Settings) -> None:
    if isinstance(model, nn.Module) and settings.num_runs > 1:
        raise DGLError(
            f"For num_runs={settings.num_runs} give a function that makes a new network for every run, not "
            f"one network."
        )
    for name, dataset in {"training": splits.train, "validation": splits.val, **splits.tests}.items():
        if len(dataset) == 0:
            raise DGLError(f"The {name} set is empty; give one with clouds.")
    batch, processes = min(settings.train_batch_size, len(splits.train)), distributed.world_size()
    if batch < processes:
        raise DGLError(
            f"A batch of {batch} clouds cannot be shared by {processes} processes; raise train_batch_size or "
            f"start fewer processes."
        )


def _account(run: Run) -> dict[str, object]:
    """What is told of a run in the results."""
    return {
        "run": run.number,
        "seed": run.seed,
        "epochs": run.epoch,
        "best_epoch": run.best["epoch"],
        "val": run.best["val"],
        "tests": run.result,
        "num_parameters": sum(each.numel() for each in run.model.parameters()),
        "seconds": sum(record["seconds"] for record in run.history),
    }


def _fact(dataset: Dataset, name: str) -> object:
    """What a data set, or the one of which it is a subset, knows under a name."""
    while not hasattr(dataset, name) and hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    value = as_plain(getattr(dataset, name, None))
    if not isinstance(value, (list, tuple)):
        return value
    return [list(each) if isinstance(each, tuple) else each for each in value]
