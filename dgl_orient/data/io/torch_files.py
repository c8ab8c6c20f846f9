"""Tensors that PyTorch saved."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor

from .arrays import only_cloud
from .attributes import POS_NAMES
from .limits import Limits

__all__ = ["read_tensors"]


def read_tensors(limits: Limits) -> dict[str, np.ndarray]:
    """The tensors of a .pt file by name; nothing in the file is executed.

    A single tensor, and without names of coordinates the only one that can be a cloud, is called ``array``.
    """
    with limits.open() as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it was not written by torch.save of PyTorch 1.6 or later")
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            # Otherwise a small file could stand for any amount of data.
            if any(member.compress_type != zipfile.ZIP_STORED for member in members):
                raise ValueError("it is compressed")
            limits.check_bytes(sum(member.file_size for member in members))
            if sum(member.file_size for member in members) > limits.size or archive.testzip() is not None:
                raise ValueError("its archive is damaged")
        file.seek(0)
        content = torch.load(file, map_location="cpu", weights_only=True)
    if isinstance(content, Tensor):
        return {"array": _as_array(limits, "it", content)}
    if isinstance(content, Mapping):
        tensors = {name: each for name, each in content.items() if isinstance(each, Tensor)}
        arrays = {str(name): _as_array(limits, str(name), each) for name, each in tensors.items()}
        if any(all(name in arrays for name in names) for names in POS_NAMES):
            return arrays
        only = only_cloud({name: (each.shape, each.dtype) for name, each in arrays.items()})
        return arrays if only is None else {"array": arrays[only]}
    raise DGLError(
        f"Expected a tensor or a dict of tensors in {limits.path}, got a {type(content).__name__}."
    )


def _as_array(limits: Limits, name: str, tensor: Tensor) -> np.ndarray:
    if tensor.layout is not torch.strided or tensor.is_meta or tensor.is_quantized or tensor.is_nested:
        raise ValueError(f"{name} is no dense tensor")
    # A view may repeat what is stored any number of times.
    if tensor.numel() * tensor.element_size() > limits.size:
        raise ValueError(f"{name} announces more than it can hold")
    limits.check_points(max(tensor.shape, default=0))
    limits.check_bytes(8 * tensor.numel())
    tensor = tensor.detach().float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.detach()
    return tensor.numpy()
