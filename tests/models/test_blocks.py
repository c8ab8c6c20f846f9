"""Building blocks of networks."""

import pytest
import torch

from dgl_orient.models.blocks import PointwiseMLP
from tests.clouds import generator


@pytest.mark.parametrize("layers", [(), (6,), (6, 5)])
def test_global_features_equal_repeated_ones(layers):
    sizes = torch.tensor([4, 0, 7, 1])
    feat, global_feat = (
        torch.randn(*shape, generator=generator(), dtype=torch.float64) for shape in ((12, 3), (4, 2))
    )
    inputs = feat.requires_grad_(), global_feat.requires_grad_()
    mlp = PointwiseMLP(5, *layers).double()
    weights = list(mlp.parameters())
    actual = mlp.forward_with_global(*inputs, sizes)
    expected = mlp(torch.cat([feat, global_feat.repeat_interleave(sizes, 0)], 1))
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)
    upstream = torch.randn(actual.shape, generator=generator(), dtype=torch.float64)
    for one, other in zip(
        *(torch.autograd.grad(each, [*inputs, *weights], upstream) for each in (actual, expected))
    ):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)
