"""Matrix products of coordinates that no reduced precision (TF32, bfloat16) may round."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["exact_matmul", "matmul_is_exact"]


def exact_matmul(values: Tensor, matrix: Tensor) -> Tensor:
    """``values @ matrix`` in the precision of the values, whatever precision PyTorch uses for products."""
    if matmul_is_exact(values.dtype):
        return values @ matrix
    return (values.double() @ matrix.double()).to(values.dtype)


def matmul_is_exact(dtype: torch.dtype) -> bool:
    """Whether PyTorch multiplies matrices in their own precision, and not in TF32 or bfloat16."""
    if dtype == torch.float64:
        return True
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # set for backends one by one
        return False
