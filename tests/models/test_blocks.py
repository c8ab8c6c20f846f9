"""What networks are put together from."""

import pytest
import torch

from dgl_orient.models.blocks import PointwiseMLP
from tests.clouds import generator


@pytest.mark.parametrize("layers", [(), (6,), (6, 5)])
def test_points_are_seen_beside_their_clouds_as_if_these_were_repeated(layers):
    sizes = torch.tensor([4, 0, 7, 1])
    feat, of_cloud = (
        torch.randn(*shape, generator=generator(), dtype=torch.float64) for shape in ((12, 3), (4, 2))
    )
    inputs = feat.requires_grad_(), of_cloud.requires_grad_()
    mlp = PointwiseMLP(5, *layers).double()
    weights = list(mlp.parameters())
    found = mlp.of_points_in_clouds(*inputs, sizes)
    expected = mlp(torch.cat([feat, of_cloud.repeat_interleave(sizes, 0)], 1))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    upstream = torch.randn(found.shape, generator=generator(), dtype=torch.float64)
    for one, other in zip(
        *(torch.autograd.grad(each, [*inputs, *weights], upstream) for each in (found, expected))
    ):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)
