"""What a process does in the tests of several: run as ``torchrun ... -m tests.train.together FOLDER``.

Each writes what it has computed to ``FOLDER/report_RANK.json``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
from dgl import DGLError
from torch import nn

from dgl_orient import OrientedEdgeConv, knn_graph
from dgl_orient.data import Shapes
from dgl_orient.geometry import random_rotation
from dgl_orient.metrics import Accuracy
from dgl_orient.models import DGCNN, OrientedDGCNN
from dgl_orient.train import Splits, distributed, fit
from dgl_orient.train.settings import Settings
from dgl_orient.train.sync_batch_norm import convert_sync_batch_norm
from dgl_orient.train.tasks import PointClassification
from tests.clouds import ball, generator

LIGHT = dict(widths=(8, 8), embed_feats=16, head_feats=(8,), k=6, dropout=0.0)
MODELS = {
    "plain": lambda: DGCNN.light(10, **LIGHT),
    "oriented": lambda: OrientedDGCNN.light(
        10, num_orientations=1, level_sizes=(8,), orientation_k=6, **LIGHT
    ),
}


class CountedAccuracy(Accuracy):
    def result(self) -> dict[str, float]:
        return super().result() | {"count": float(self.totals.sum())}


class CountedClassification(PointClassification):
    """Says also how many clouds were measured."""

    def metric(self) -> CountedAccuracy:
        return CountedAccuracy(self.num_classes)


def train(folder: Path, name: str, resume: bool = False, **values) -> dict:
    # No split can be shared evenly; the last batch of the test set is a single cloud.
    sizes = {"train": 20, "val": 11, "test": 13}
    train, val, test = (Shapes(split, num_points=24, num_shapes=size) for split, size in sizes.items())
    settings = dict(
        num_epochs=3,
        train_batch_size=9,
        eval_batch_size=4,
        optimizer={"name": "sgd", "lr": 2e-3},
        grad_clip=1.0,
    )
    return fit(
        CountedClassification(10, 0.1),
        MODELS[name],
        Splits(train, val, {"test": test}),
        Settings(**(settings | values)),
        folder=folder / name,
        resume=resume,
    )


def parts(rank: int, world: int) -> list[torch.Tensor]:
    """Batches for a norm, of different sizes in every process; far from the origin."""
    generator = torch.Generator().manual_seed(1)
    rows, maps = 5 + torch.randn(7, 4, generator=generator), torch.randn(5, 4, 3, generator=generator)
    return [rows[rank::world], maps[rank::world]]


def norms(rank: int, world: int) -> dict[str, list]:
    """Outputs, gradients and statistics of batch norms after a batch."""
    found = {}
    for values in parts(rank, world):
        norm = (
            convert_sync_batch_norm(nn.Sequential(nn.BatchNorm1d(4)))
            if world > 1
            else nn.Sequential(nn.BatchNorm1d(4))
        )
        values.requires_grad_()
        output = norm(values)
        (output * values.detach().square()).sum().backward()
        statistics = [norm[0].running_mean.tolist(), norm[0].running_var.tolist()]
        evaluated = norm.eval()(values).tolist()
        found[str(values.ndim)] = [output.tolist(), values.grad.tolist(), evaluated, statistics]
    return found


def edge_conv(rank: int, world: int) -> dict[str, list]:
    """Outputs, gradients and statistics of an edge convolution; every process has a cloud of its own."""
    torch.manual_seed(0)
    conv = OrientedEdgeConv(3, 4, batch_norm=True).double()
    if world > 1:
        conv = nn.SyncBatchNorm.convert_sync_batchnorm(conv)
    sizes = [9, 14][rank::world]
    pos, feat = (torch.cat([ball(n, seed + n) for n in sizes]) for seed in (0, 1))
    orient = torch.cat([random_rotation(n, torch.float64, generator(n)) for n in sizes]).unsqueeze(1)
    output = conv(knn_graph(pos, 4, sizes), feat, pos, orient)
    output.square().sum().backward()
    return {
        "output": output.tolist(),
        "gradients": [p.grad.flatten().tolist() for p in conv.parameters()],
        "statistics": [value.flatten().tolist() for value in conv.buffers()],
    }


def refused() -> None:
    raise DGLError("No.")


def main(folder: Path) -> None:
    written = []
    watched = str(folder / "several")

    def watch(event: str, arguments: tuple) -> None:
        if (
            event == "open"
            and str(arguments[0]).startswith(watched)
            and (arguments[2] & (os.O_WRONLY | os.O_RDWR))
        ):
            written.append(str(arguments[0]))

    sys.addaudithook(watch)
    report = {}
    with distributed.process_group("cpu"):
        rank, world = distributed.rank(), distributed.world_size()
        report["norms"], report["edge_conv"] = norms(rank, world), edge_conv(rank, world)
        report["sum"] = float(distributed.all_reduce_sum(torch.tensor(rank + 1.0)))
        report["from main"] = distributed.run_on_main(lambda: os.getpid())
        try:
            distributed.run_on_main(refused)
        except DGLError as error:
            report["refused"] = str(error)
        report["results"] = {name: train(folder / "several", name)["metrics"] for name in MODELS}
        try:
            train(folder / "several", "plain")
        except DGLError as error:
            report["twice"] = str(error)
        report["again"] = train(folder / "several", "plain", resume=True)["metrics"]
        try:
            train(folder / "few", "plain", train_batch_size=1)
        except DGLError as error:
            report["few"] = str(error)
    report["pid"], report["written"] = os.getpid(), written
    (folder / f"report_{rank}.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
