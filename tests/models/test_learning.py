"""Networks learn: every kind reaches an accuracy on unseen shapes after seconds of training."""

from functools import cache

import dgl
import pytest
import torch
from torch.nn.functional import cross_entropy

from dgl_orient import models
from dgl_orient.data import Shapes
from dgl_orient.geometry import random_rotation
from dgl_orient.nn.auxiliary_loss import take_auxiliary_loss
from tests.clouds import generator

CLASSES = ["bottle", "chair", "guitar", "mug", "table"]
#: The network, and the least accuracy on unseen shapes; guessing has 0.2.
PLAIN = {
    "pointnet": (lambda: models.PointNet.light(5, dropout=0.0), 0.7),
    "pointnet2": (
        lambda: models.PointNet2.light(5, radii=((0.5,), (1.0,)), level_sizes=(32, 12), dropout=0.0),
        0.7,
    ),
    "pointcnn": (lambda: models.PointCNN.light(5, level_sizes=(32, 12), dropout=0.0), 0.4),
    "shellnet": (lambda: models.ShellNet.light(5, level_sizes=(32, 16, 8), dropout=0.0), 0.7),
}
#: These learn upright shapes and are tested on rotated ones.
INVARIANT = {
    "gcconv": (lambda: models.GCConvNet.light(5, level_sizes=(32, 16, 8), dropout=0.0), 0.6),
    "riconv": (lambda: models.RIConvNet.light(5, level_sizes=(32, 16, 8), dropout=0.0), 0.6),
    "riframework": (
        lambda: models.RIFramework.light(5, level_sizes=(32, 12), radii=((0.5,), (1.0,)), dropout=0.0),
        0.4,
    ),
    "vn-pointnet": (lambda: models.VNPointNet.light(5, dropout=0.0, k=8), 0.4),
    "vn-dgcnn": (lambda: models.VNDGCNN.light(5, dropout=0.0, k=8), 0.4),
}


@cache
def shapes(split: str, rotated: bool):
    dataset = Shapes(split, num_points=64, num_shapes=100, classes=CLASSES)
    graphs, labels = zip(*(dataset[number] for number in range(len(dataset))))
    if rotated:
        rotations = random_rotation(len(graphs), generator=generator(1))
        for graph, rotation in zip(graphs, rotations):
            graph.ndata["pos"] = graph.ndata["pos"] @ rotation.T
    return graphs, torch.tensor([int(label) for label in labels])


def accuracy_after_training(model, rotated: bool, epochs: int = 10) -> float:
    """Trained on upright shapes, tested on upright or on rotated ones."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.momentum = 0.3  # after 50 steps nothing is left of the initial statistics
    graphs, labels = shapes("train", False)
    optimizer = torch.optim.Adam(model.parameters())
    # The rate falls to 0, so that the statistics of batch norms fit the last weights.
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=5 * epochs)
    for epoch in range(epochs):
        for rows in torch.randperm(len(graphs), generator=generator(epoch)).split(20):
            logits = model(dgl.batch([graphs[row] for row in rows]))
            loss = cross_entropy(logits, labels[rows]) + (take_auxiliary_loss(model) or 0.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    graphs, labels = shapes("test", rotated)
    with torch.no_grad():
        predicted = model.eval()(dgl.batch(graphs)).argmax(1)
    return float((predicted == labels).float().mean())


@pytest.mark.parametrize("name", PLAIN)
def test_plain_networks_learn_upright_shapes(name):
    make, least = PLAIN[name]
    assert accuracy_after_training(make(), rotated=False) > least


@pytest.mark.parametrize("name", INVARIANT)
def test_invariant_networks_learn_upright_shapes_and_recognize_rotated_ones(name):
    make, least = INVARIANT[name]
    assert accuracy_after_training(make(), rotated=True) > least
