"""Numbers of parameters as published, and as the docstrings name them."""

import re

import pytest
import torch

from dgl_orient import models

CLASSES, PARTS = dict(num_classes=40), dict(num_outputs=50, num_categories=16)
#: The network, and its number of parameters in millions, as its authors or those who compare it say.
PUBLISHED = {
    "PointCNN": (lambda: models.PointCNN(**CLASSES), 0.60),
    "PointNet": (lambda: models.PointNet(**CLASSES), 3.47),
    "PointNet2": (lambda: models.PointNet2(**CLASSES), 1.48),
    "PointNet2.msg": (lambda: models.PointNet2.msg(**CLASSES), 1.75),
    "ShellNet": (lambda: models.ShellNet(**CLASSES), 0.47),
    "VNDGCNN": (lambda: models.VNDGCNN(**CLASSES), 2.90),
}
#: Those for which no number is published, or another one.
OURS = {
    "GCConvNet": (lambda: models.GCConvNet(**CLASSES), 1.00),
    "GCConvNetSeg": (lambda: models.GCConvNetSeg(**PARTS), 1.11),
    "PointCNNSeg": (lambda: models.PointCNNSeg(**PARTS), 8.33),
    "PointNetSeg": (lambda: models.PointNetSeg(**PARTS), 8.34),
    "RIConvNet": (lambda: models.RIConvNet(**CLASSES), 0.71),  # published: 0.70
    "RIFramework": (lambda: models.RIFramework(**CLASSES), 1.63),
    "RIFrameworkSeg": (lambda: models.RIFrameworkSeg(**PARTS), 1.65),
    "RIConvNetSeg": (lambda: models.RIConvNetSeg(**PARTS), 0.79),
    "ShellNetSeg": (lambda: models.ShellNetSeg(**PARTS), 0.78),
    "VNPointNet": (lambda: models.VNPointNet(**CLASSES), 1.97),
    "VNPointNetSeg": (lambda: models.VNPointNetSeg(**PARTS), 5.08),
    "VNDGCNNSeg": (lambda: models.VNDGCNNSeg(**PARTS), 1.31),
    "PointNet2Seg": (lambda: models.PointNet2Seg(**PARTS), 1.74),
}


@pytest.mark.parametrize("name", [*PUBLISHED, *OURS])
def test_parameter_counts(name):
    make, millions = (PUBLISHED | OURS)[name]
    with torch.device("meta"):
        number = sum(each.numel() for each in make().parameters())
    assert number / 1e6 == pytest.approx(millions, abs=0.005)
    documented = getattr(models, name.split(".")[0]).__doc__
    assert re.search(rf"{millions:.2f}\s+M\b", documented)
