"""Reductions over segments, with their derivatives."""

import pytest
import torch

from dgl_orient._segment import segment_max, segment_mean, segment_sum

SIZES = torch.tensor([3, 0, 4, 1])
PLAIN = {
    segment_max: lambda part: part.amax(0),
    segment_mean: lambda part: part.mean(0),
    segment_sum: lambda part: part.sum(0),
}


def _plain(function, feat):
    parts = feat.split(SIZES.tolist())
    return torch.stack([PLAIN[function](part) if len(part) else feat.new_zeros(2) for part in parts])


@pytest.mark.parametrize("function", PLAIN)
def test_values_and_two_derivatives_are_the_plain_ones(function):
    feat = torch.randn(8, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, 2, dtype=torch.float64)
    actual = []
    for result in (function(SIZES, feat), _plain(function, feat)):
        (first,) = torch.autograd.grad((weight * result.sin()).sum(), feat, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), feat)
        actual.append((result.detach(), first.detach(), second))
    for one, other in zip(*actual):
        torch.testing.assert_close(one, other)
    assert float(actual[0][2].abs().max()) > 0.1


@pytest.mark.parametrize("function", PLAIN)
def test_empty_segments_are_zero(function):
    assert torch.equal(function(torch.tensor([0, 0]), torch.empty(0, 5)), torch.zeros(2, 5))


def test_the_maximum_can_be_differentiated_repeatedly():
    feat = torch.randn(8, 2, requires_grad=True)
    result = segment_max(SIZES, feat)
    one, other = (torch.autograd.grad(result.sum(), feat, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(one, other) and float(one.sum()) == 6
