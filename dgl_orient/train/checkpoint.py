"""Checkpoints: written atomically, and read without executing anything that is in them.

That of a trained network, ``run_0.pth``, is the same whether it was trained by the command line, by
:func:`dgl_orient.train.fit` or by an exported script. It has, beside ``format`` and ``version``,

- ``task``: the name of the task, such as ``"pointcls"``,
- ``recipe``: the checked recipe; empty if there was none,
- ``model``: ``class`` (``"module:Class"``) and ``arguments`` of the network; None if they are not known,
- ``metadata``: ``num_classes``, ``class_names``, ``num_parts``, ``part_names``, ``class_parts`` and
  ``gravity`` as far as they are known, and ``preprocessing``: ``num_points``, ``sampling``, ``columns``,
  ``features`` and ``normalize``,
- ``weights``, ``epoch``, ``val``, ``tests``: of the best epoch,
- ``novelty``, if it is calibrated: tensors and numbers of :class:`dgl_orient.zoo.novelty.Novelty`,
- ``versions`` of the libraries; a pretrained model of this package also has ``release``.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import reprlib
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import torch
from dgl import DGLError
from torch import Tensor, nn

from .._atomic import reason, write_file

__all__ = ["load", "load_weights", "no_larger_than", "save", "weight_shape", "weights_of"]

FORMAT = "dgl_orient checkpoint"
VERSION = 2

# How many values and tensors a network may have beyond twice those of the weights meant for it: enough for a
# small network whose weights are missing, which the error then names.
_MORE_VALUES = 1 << 20
_MORE_TENSORS = 1 << 10
#: No checkpoint has as many tensors.
_MOST_ENTRIES = 50_000


def save(path: str | Path, state: Mapping[str, object]) -> None:
    """Write a checkpoint so that ``path`` holds either what it held before or all of this one.

    Parameters
    ----------
    path : str or Path
        The file.
    state : mapping
        Tensors, numbers, strings, and lists and dictionaries of them.

    Raises
    ------
    DGLError
        If the file cannot be written; what was there before stays.

    Examples
    --------
    >>> import tempfile, torch
    >>> from pathlib import Path
    >>> from dgl_orient.train import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint.save(Path(folder) / "net.pth", {"weight": torch.ones(2)})
    ...     checkpoint.load(Path(folder) / "net.pth")["weight"]
    tensor([1., 1.])
    """
    # In memory first: PyTorch's writer does not say that a disk is full.
    buffer = io.BytesIO()
    torch.save({"format": FORMAT, "version": VERSION, **state}, buffer)
    write_file(Path(path), buffer.getbuffer())


def load(path: str | Path) -> dict[str, object]:
    """What :func:`save` wrote, on the CPU. Nothing in the file is ever executed.

    Raises
    ------
    DGLError
        If there is no such file, if it is damaged, or not a checkpoint that this version reads.
    """
    state = _unpickled(Path(path))
    if not isinstance(state, dict) or not _is_same(state.get("format"), FORMAT):
        raise DGLError(
            f"{path} is not a checkpoint of dgl_orient; give one that was written in training, such as "
            f"run_0.pth."
        )
    if not _is_same(state.get("version"), VERSION):
        raise DGLError(
            f"{path} has version {_shown(state.get('version'))} of the checkpoint format, but this "
            f"dgl_orient reads version {VERSION}; use the dgl_orient that wrote it, or train again."
        )
    return state


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all parameters and buffers, on the CPU."""
    return {name: value.detach().to("cpu", copy=True) for name, value in model.state_dict().items()}


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], path: str | Path) -> None:
    """Give a network the weights of a checkpoint, which is named where they do not fit."""
    own, given = model.state_dict(), weights if isinstance(weights, Mapping) else {}
    wrong = [name for name in own if weight_shape(own.get(name)) != weight_shape(given.get(name))]
    wrong += [name for name in given if name not in own]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise DGLError(
            f"The weights in {path} do not fit this {type(model).__name__}: "
            f"{', '.join(map(_shown, wrong[:3]))}{more}"
            f" differ; make the network with the arguments that it was trained with."
        )
    model.load_state_dict(given)


@contextlib.contextmanager
def no_larger_than(weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Stop the making of a network that is far larger than the weights meant for it.

    An untrusted checkpoint of a few bytes may ask for a network of any size: it is stopped before memory is
    filled.

    Raises
    ------
    DGLError
        Where the first tensor too many is registered in a module.

    Examples
    --------
    >>> from torch import nn
    >>> from dgl_orient.train import checkpoint
    >>> with checkpoint.no_larger_than({}):
    ...     nn.Linear(1 << 14, 1 << 14)
    Traceback (most recent call last):
    dgl._ffi.base.DGLError: the recipe asks for a network that is larger than its weights
    """
    values = 2 * _num_stored(weights.values()) + _MORE_VALUES
    tensors, thread = 2 * len(weights) + _MORE_TENSORS, threading.get_ident()

    def count(module: nn.Module, name: str, value: Tensor | None) -> None:
        nonlocal values, tensors
        if value is None or threading.get_ident() != thread:
            return
        values, tensors = values - value.numel(), tensors - 1
        if min(values, tensors) < 0:
            raise DGLError("the recipe asks for a network that is larger than its weights")

    hooks = [
        nn.modules.module.register_module_parameter_registration_hook(count),
        nn.modules.module.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _num_stored(values: Iterable[object]) -> int:
    """How many values a file has for tensors, which may share some, or repeat them."""
    stored = {}
    for value in filter(_is_plain, values):
        storage = value.untyped_storage()
        stored[storage.data_ptr()] = storage.nbytes() // value.element_size()
    return sum(stored.values())


def weight_shape(value: object) -> tuple[int, ...] | None:
    """Of a tensor that can be a weight; None for anything else."""
    return tuple(value.shape) if _is_plain(value) else None


def _is_plain(value: object) -> bool:
    """Whether it is a tensor of real numbers that are all there."""
    if not isinstance(value, Tensor) or value.is_nested:
        return False
    return value.layout is torch.strided and not (value.is_meta or value.is_quantized or value.is_complex())


def _is_same(value: object, expected: str | int) -> bool:
    return type(value) is type(expected) and value == expected


def _shown(value: object) -> str:
    """A value of an untrusted file for a message: short and printable."""
    if isinstance(value, str) and value.isprintable() and len(value) <= 100:
        return value
    return reprlib.repr(value) if isinstance(value, (str, int, float, type(None))) else type(value).__name__


def _unpickled(path: Path) -> object:
    try:
        with open(path, "rb") as file:
            _check_archive(file, path)
            file.seek(0)
            return torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise DGLError(f"There is no checkpoint {path}; give a file that was written in training.") from error
    except OSError as error:
        raise DGLError(
            f"Cannot read the checkpoint {path}: {reason(error)}; give a readable file."
        ) from error
    except pickle.UnpicklingError as error:
        raise DGLError(
            f"{path} was refused: it is damaged, or holds more than numbers and strings and might run code; "
            f"get another copy, or train again."
        ) from error
    except DGLError:
        raise
    except Exception as error:  # a damaged archive may make PyTorch fail in any way
        raise _damaged(path) from error


def _check_archive(file: BinaryIO, path: Path) -> None:
    """Raise unless all is as it was written, of which PyTorch itself makes sure only in part."""
    # PyTorch's older formats, and compressed ones, were never written here: refusing them leaves less to
    # attack.
    if not zipfile.is_zipfile(file):
        raise _damaged(path)
    with zipfile.ZipFile(file) as archive:
        if not _is_plain_archive(archive.infolist(), path.stat().st_size) or archive.testzip() is not None:
            raise _damaged(path)


def _is_plain_archive(members: Sequence[zipfile.ZipInfo], num_bytes: int) -> bool:
    """Whether an archive has few members, each stored once and in bytes of its own.

    Otherwise a small file could stand for any amount of data.
    """
    if len(members) > _MOST_ENTRIES or len({member.filename for member in members}) < len(members):
        return False
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        return False
    ends = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < ends or member.compress_size != member.file_size:
            return False
        ends = member.header_offset + zipfile.sizeFileHeader + member.file_size
    return ends <= num_bytes


def _damaged(path: Path) -> DGLError:
    return DGLError(f"{path} is damaged or not a checkpoint at all; get another copy, or train again.")
