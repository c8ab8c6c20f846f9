"""Training: the validation set selects the best epoch, the test sets are scored once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import torch
from dgl import DGLError
from torch import nn
from torch.utils.data import Dataset

from .._init_args import describe
from ..data import PointCloudLoader, point_cloud_loader
from . import checkpoint, distributed
from .bfloat16 import check_bfloat16
from .class_balance import with_class_balance
from .engine import evaluate, train_epoch
from .errors import check_weights, explain_errors
from .finetune import initialise
from .progress import Progress, table
from .run import Run, seed_everything
from .settings import Settings
from .splits import Splits, checkpoint_metadata
from .tasks import Task
from .tensorboard import ScalarLog, check_tensorboard, tensorboard_log
from .training_folder import TrainingFolder, summary, versions

__all__ = ["Splits", "fit"]


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
    """Train a network, select its best epoch by the validation set, and score that one by the test sets.

    The settings' protocol and augmentation are applied to the clouds, after the data sets' own transforms,
    and their label smoothing and signedness to a task that was given none: see :meth:`Splits.transformed` and
    :meth:`Task.with_settings <dgl_orient.train.Task.with_settings>`. With a recipe the data sets are used as
    they are, because they were made from it.

    With ``init_from`` in the settings the network begins with the weights of another where they fit, and
    ``freeze`` keeps some of them: see :func:`dgl_orient.train.finetune.initialise`.

    The best network is in ``run_0.pth`` of the folder, for :func:`dgl_orient.pretrained` and ``dgl-orient
    apply``. Of a network that is not registered (:func:`dgl_orient.config.registry.register_model`) only the
    weights are known: it is loaded with ``pretrained(path, network=network)``.

    What an epoch does depends on the weights, the seed and the number of the epoch alone. So a training that
    was killed at any moment and is resumed ends with the weights with which it would have ended, and on the
    CPU the same seed gives the same weights to the last bit.

    Under ``torchrun`` all its processes train one network, with the same batches as one process would. What
    differs is the noise of dropout, and rounding.

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
        The checked recipe of which task, network and data sets were built. It is stored in the checkpoints,
        and a training is resumed with the same one only.
    folder : str or Path, optional
        Where to keep checkpoints, logs and results; if not given, a new folder in ``settings.save_path``,
        such as ``results/001``.
    resume : bool
        Continue the training in the folder, or the newest of this recipe in ``settings.save_path``, if there
        is one.
    device : str
        ``"cpu"`` or ``"cuda"``.
    progress : bool
        Whether to report progress on stderr.

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
    >>> from dgl_orient.train import PointClassification, Settings, Splits, fit
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
    records = TrainingFolder(settings.save_path if folder is None else folder, recipe, settings)
    _check(model, splits, settings)
    if settings.tensorboard:
        check_tensorboard()
    task = task.with_settings(settings)
    if recipe is None and task.transforms_clouds:
        splits = splits.transformed(settings, task.needs_up)
    with (
        distributed.process_group(device) as place,
        torch.random.fork_rng(),
        ExitStack() as stack,
    ):
        _check_processes(splits, settings)
        if settings.bf16:
            check_bfloat16(place)
        if folder is None:
            records = distributed.run_on_main(records.numbered, resume)
        distributed.run_on_main(lambda: stack.enter_context(records.locked(resume)))
        report = Progress(progress, settings, task)
        report.write(f"The folder of this training is {records.folder}.")
        training = _Training(task, model, splits, settings, records, report, place)
        results = training.results(resume)
        report.write(table(results))
        return results


class _Training:
    """All runs of a training."""

    def __init__(
        self,
        task: Task,
        model: nn.Module | Callable[[], nn.Module],
        splits: Splits,
        settings: Settings,
        records: TrainingFolder,
        report: Progress,
        device: torch.device,
    ) -> None:
        self.task, self.model, self.splits, self.settings = task, model, splits, settings
        self.records, self.report, self.device = records, report, device

    def results(self, resume: bool) -> dict[str, object]:
        runs = [self._done(number, resume) for number in range(self.settings.num_runs)]
        stored = distributed.run_on_main(self.records.results) if resume else None
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
        distributed.run_on_main(self.records.save_results, results)
        return results

    def _done(self, number: int, resume: bool) -> dict[str, object]:
        """The results of a run, which is trained unless it is finished already."""
        run = self._begun(number, resume)
        if run.result is None:
            try:
                with self._scalar_log(run) as add:
                    self._train(run, add)
                    self._finish(run)
                    add(run.best["epoch"], run.result)
            except KeyboardInterrupt:
                self._report_interrupt(run)
                raise
        return _run_results(run)

    def _begun(self, number: int, resume: bool) -> Run:
        """A run at its beginning, or where it was interrupted."""
        seed_everything(self.settings.seed + number)
        model = self.model if isinstance(self.model, nn.Module) else self.model()
        initial = initialise(model, self.settings)
        if initial is not None:
            self.report.write(f"The network begins with {self.settings.init_from}: {initial}.")
        run = Run(number, self.task, model.to(self.device), self.settings)
        state = distributed.run_on_main(self.records.last, number) if resume else None
        if state is None:
            return run
        run.restore(state, self.records.last_path(number))
        distributed.run_on_main(self.records.rewrite_log, number, run.history)
        done = "is finished" if run.result is not None else f"continues after epoch {run.epoch}"
        self.report.write(f"Run {number} in {self.records.folder} {done}.")
        return run

    def _scalar_log(self, run: Run) -> AbstractContextManager[ScalarLog]:
        """The log for TensorBoard, if there is to be one."""
        if not self.settings.tensorboard or not distributed.is_main():
            return nullcontext(lambda epoch, values: None)
        return tensorboard_log(self.records.log_path(run.number).parent, run.epoch + 1)

    def _train(self, run: Run, add: ScalarLog) -> None:
        balanced = with_class_balance(self.splits.train, self.settings.class_balance)
        train = self._loader(balanced, run)
        val = self._loader(self.splits.val)
        while not run.is_over:
            with explain_errors(run.epoch + 1, self.records.last_path(run.number), self.settings):
                record = self._epoch(run, train, val)
            is_best = run.add(record)
            distributed.run_on_main(self._keep, run, is_best)
            add(run.epoch, {name: value for name, value in record.items() if name != "epoch"})
            self.report.epoch(run.number, record, is_best)

    def _epoch(self, run: Run, train: PointCloudLoader, val: PointCloudLoader) -> dict[str, object]:
        began, lr = time.perf_counter(), run.rate.value
        seed_everything(run.seed, run.epoch, distributed.rank())
        train.set_epoch(run.epoch)
        loss = train_epoch(
            self.task,
            run.trained,
            run.optimizer,
            self.report.batches(train, run.number, run.epoch, lr),
            self.device,
            self.settings.grad_clip,
            self.settings.bf16,
            self.report.loss,
        )
        check_weights(run.model)
        metrics = evaluate(self.task, run.evaluated, val, self.device)
        seconds = round(time.perf_counter() - began, 3)
        return {"epoch": run.epoch + 1, "loss": loss, "val": metrics, "lr": lr, "seconds": seconds}

    def _keep(self, run: Run, is_best: bool) -> None:
        """Write the log and the checkpoints of an epoch."""
        self.records.log(run.number, run.history[-1])
        # First the network: if killed in between, the epoch is trained again and gives the same one.
        if is_best:
            self._keep_network(run)
        self.records.save_last(run.number, run.state())

    def _keep_network(self, run: Run) -> None:
        self.records.save_network(
            run.number,
            {
                "task": self.task.name,
                "model": describe(run.model),
                "metadata": checkpoint_metadata(self.task, self.splits, self.settings),
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
        with explain_errors(run.best["epoch"], last, self.settings):
            run.result = {
                name: evaluate(self.task, run.model, self._loader(dataset), self.device)
                for name, dataset in self.splits.tests.items()
            }
        distributed.run_on_main(self._keep_finished, run)

    def _keep_finished(self, run: Run) -> None:
        self._keep_network(run)
        self.records.save_last(run.number, run.state())

    def _loader(self, dataset: Dataset, run: Run | None = None) -> PointCloudLoader:
        """Batches of training for a run, or of evaluation."""
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

    def _report_interrupt(self, run: Run) -> None:
        last = self.records.last_path(run.number)
        kept = (
            f"the last checkpoint is {last}; continue with resume" if last.exists() else "no checkpoint yet"
        )
        self.report.write(f"Stopped in epoch {run.epoch + 1}: {kept}.")


def _check(model: object, splits: Splits, settings: Settings) -> None:
    if isinstance(model, nn.Module) and settings.num_runs > 1:
        raise DGLError(
            f"For num_runs={settings.num_runs} give a function that makes a new network for every run, not "
            f"one network."
        )
    for name, dataset in {"training": splits.train, "validation": splits.val, **splits.tests}.items():
        if len(dataset) == 0:
            raise DGLError(f"The {name} set is empty; give one with clouds.")


def _check_processes(splits: Splits, settings: Settings) -> None:
    batch, processes = min(settings.train_batch_size, len(splits.train)), distributed.world_size()
    if batch < processes:
        raise DGLError(
            f"A batch of {batch} clouds cannot be shared by {processes} processes; raise train_batch_size or "
            f"start fewer processes."
        )


def _run_results(run: Run) -> dict[str, object]:
    """What ``results.json`` has of a run."""
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
