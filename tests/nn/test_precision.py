"""Products that no reduced precision rounds."""

import pytest
import torch

from dgl_orient.nn.precision import exact_matmul, matmul_is_exact


@pytest.mark.parametrize("precision, exact", [("highest", True), ("high", False), ("medium", False)])
def test_products_are_exact_in_any_precision(precision, exact, monkeypatch):
    monkeypatch.setattr("torch.get_float32_matmul_precision", lambda: precision)
    a, b = torch.randn(20, 30), torch.randn(30, 10)
    assert matmul_is_exact(torch.float32) == exact and matmul_is_exact(torch.float64)
    product = exact_matmul(a, b)
    assert product.dtype == torch.float32
    torch.testing.assert_close(product.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)


def test_a_precision_per_backend_counts_as_reduced(monkeypatch):
    def raises():
        raise RuntimeError("set for backends one by one")

    monkeypatch.setattr("torch.get_float32_matmul_precision", raises)
    assert not matmul_is_exact(torch.float32)
