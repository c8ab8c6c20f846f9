"""The reference layers by gather and scatter compute the same as the library's."""

from __future__ import annotations

import pytest
import torch

import dgl_orient
from benchmarks.gather_scatter import gather_scatter_layers
from dgl_orient.models import OrientedDGCNN, OrientedRSCNN


@pytest.mark.parametrize("make", [OrientedDGCNN.light, OrientedRSCNN.light])
def test_networks_have_the_same_output_and_gradients(make):
    torch.manual_seed(0)
    cloud = dgl_orient.point_cloud(torch.randn(3 * 150, 3).double(), [150] * 3)
    network = make(5, dropout=0.0).double()
    outputs, gradients = [], []
    for context in (torch.enable_grad, gather_scatter_layers):
        with context():
            outputs.append(network(cloud))
            loss = outputs[-1].square().sum()
            gradients.append(torch.autograd.grad(loss, list(network.parameters())))
    torch.testing.assert_close(*outputs, rtol=1e-8, atol=1e-8)
    for one, other in zip(*gradients):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
