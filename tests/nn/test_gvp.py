import pytest
import torch

from dgl_orient.nn import GVP
from dgl_orient.nn.gvp import tanh
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball

STYLES = {
    "norm": dict(),
    "gate": dict(vector_gate=True, vector_activation=torch.tanh),
    "linear": dict(activation=None, vector_activation=None),
    "more hidden vectors": dict(hidden_vectors=7),
}


def plain_gvp(gvp, feat, vec):
    """The formula for one node's scalars (n,) and vectors (m, 3)."""
    hidden = gvp.hidden.weight @ vec
    feat = gvp.scalar.weight @ torch.cat([feat, hidden.norm(dim=1)]) + gvp.scalar.bias
    feat = gvp.activation(feat) if gvp.activation else feat
    vec = gvp.vector.weight @ hidden
    if gvp.gate is not None:
        vec = gvp.vector_activation(gvp.gate.weight @ feat + gvp.gate.bias).unsqueeze(1) * vec
    elif gvp.vector_activation:
        vec = gvp.vector_activation(vec.norm(dim=1, keepdim=True)) * vec
    return feat, vec


@pytest.mark.parametrize("style", STYLES)
def test_values_and_gradients_equal_the_formula(style):
    gvp = GVP((4, 3), (6, 2), **STYLES[style]).double()
    feat = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    vec = torch.randn(5, 3, 3, dtype=torch.float64, requires_grad=True)
    fast = gvp(feat, vec)
    plain = [torch.stack(part) for part in zip(*(plain_gvp(gvp, s, v) for s, v in zip(feat, vec)))]
    for a, b in zip(fast, plain):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    inputs = (feat, vec, *gvp.parameters())
    gradients = [
        torch.autograd.grad(s.square().sum() + v.pow(3).sum(), inputs, materialize_grads=True)
        for s, v in (fast, plain)
    ]
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scalars_are_invariant_and_vectors_equivariant(style, dtype):
    gvp = GVP((4, 3), (6, 2), **STYLES[style]).to(dtype)
    assert_equivariant(
        lambda pos, feat, vec: gvp(feat, vec),
        ball(20, dtype=dtype),
        ("invariant", "vectors"),
        scalars={"feat": torch.randn(20, 4, dtype=dtype)},
        vectors={"vec": torch.randn(20, 3, 3, dtype=dtype)},
    )


def test_gradcheck():
    gvp = GVP((2, 2), (3, 2), vector_gate=True).double()
    inputs = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 2, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(gvp, tuple(x.requires_grad_() for x in inputs))


def test_zero_vectors_have_finite_gradients():
    gvp, vec = GVP((2, 2), (3, 2)), torch.zeros(3, 2, 3, requires_grad=True)
    feat, out = gvp(torch.zeros(3, 2), vec)
    (feat.sum() + out.sum()).backward()
    assert torch.isfinite(vec.grad).all() and torch.equal(out, torch.zeros(3, 2, 3))


def test_reset_parameters_changes_all_weights():
    gvp = GVP((2, 2), (3, 2), vector_gate=True)
    before = [p.clone() for p in gvp.parameters() if p.ndim == 2]
    gvp.reset_parameters()
    assert all(not torch.equal(a, b) for a, b in zip(before, (p for p in gvp.parameters() if p.ndim == 2)))


def test_tanh_and_its_derivatives_are_those_of_pytorch():
    x = torch.linspace(-50, 50, 1001, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(tanh(x), torch.tanh(x), rtol=0, atol=1e-14)
    first, expected = (torch.autograd.grad(f(x).sum(), x, create_graph=True)[0] for f in (tanh, torch.tanh))
    torch.testing.assert_close(first, expected, rtol=0, atol=1e-14)
    second, expected = (torch.autograd.grad(each.sum(), x)[0] for each in (first, expected))
    torch.testing.assert_close(second, expected, rtol=0, atol=1e-14)
