"""A training small enough to be repeated many times."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from torch import Tensor

from dgl_orient.data import RandomRotate, Shapes
from dgl_orient.models import DGCNN
from dgl_orient.train import Splits, checkpoint, fit
from dgl_orient.train.settings import Settings
from dgl_orient.train.tasks import PointClassification

NUM_CLASSES = 10


@cache
def splits() -> Splits:
    train = Shapes("train", num_points=24, num_shapes=22, transform=RandomRotate("z"))
    val, test = (Shapes(split, num_points=24, num_shapes=13) for split in ("val", "test"))
    return Splits(train, val, {"test": test})


def network(**arguments) -> DGCNN:
    small = dict(widths=(8, 8), embed_feats=16, head_feats=(8,), k=4, dynamic=False, dropout=0.5)
    return DGCNN(NUM_CLASSES, **(small | arguments))


def settings(**values) -> Settings:
    return Settings(**(dict(num_epochs=4, train_batch_size=5, eval_batch_size=4, seed=7) | values))


def train(folder: Path, model=network, resume: bool = False, progress: bool = False, **values) -> dict:
    recipe = {"pipeline_name": "pointcls", "model": {"name": "dgcnn"}}
    task = PointClassification(NUM_CLASSES)
    return fit(task, model, splits(), settings(**values), recipe, folder, resume=resume, progress=progress)


def final_state(folder: Path, run: int = 0) -> dict[str, object]:
    return checkpoint.load(folder / f"run_{run}" / "last.pth")


def final_weights(folder: Path, run: int = 0) -> dict[str, Tensor]:
    """The best weights, and the momenta of the optimizer after the last epoch."""
    state = final_state(folder, run)
    momenta = {
        f"{number}.{name}": value
        for number, values in state["optimizer"]["state"].items()
        for name, value in values.items()
    }
    return checkpoint.load(folder / f"run_{run}.pth")["weights"] | momenta


def assert_same_weights(one: Path, other: Path, num_runs: int = 1) -> None:
    for run in range(num_runs):
        first, second = final_weights(one, run), final_weights(other, run)
        assert first.keys() == second.keys()
        assert all(bool((first[name] == second[name]).all()) for name in first)
