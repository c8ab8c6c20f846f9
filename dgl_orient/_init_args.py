"""Networks that know the arguments they were made with, so that a checkpoint can describe them."""

from __future__ import annotations

import functools
import inspect

from torch import nn

from ._plain import as_plain, is_plain

__all__ = ["describe", "record_init_args"]


def record_init_args(cls: type[nn.Module]) -> type[nn.Module]:
    """Store the arguments of the constructor in the attribute ``init_args`` of every instance.

    Instances of subclasses have it only if their class is decorated too: their arguments may be others.

    Examples
    --------
    >>> from torch import nn
    >>> from dgl_orient._init_args import record_init_args
    >>> @record_init_args
    ... class Net(nn.Module):
    ...     def __init__(self, num_classes, k=20, **options):
    ...         super().__init__()
    >>> Net(10, k=5, dropout=0.5).init_args
    {'num_classes': 10, 'k': 5, 'dropout': 0.5}
    """
    if "__init__" in vars(cls) and hasattr(cls.__init__, "_records_init_args"):
        return cls
    init, signature = cls.__init__, inspect.signature(cls.__init__)

    @functools.wraps(init)
    def __init__(self: nn.Module, *args: object, **kwargs: object) -> None:
        init(self, *args, **kwargs)
        if type(self) is cls:
            self.init_args = _flat(signature.bind(self, *args, **kwargs))

    __init__._records_init_args = True
    cls.__init__ = __init__
    return cls


def _flat(bound: inspect.BoundArguments) -> dict[str, object]:
    """Arguments by name, those of ``**kwargs`` among the others."""
    parameters = bound.signature.parameters
    arguments: dict[str, object] = {}
    for name, value in list(bound.arguments.items())[1:]:  # but self
        arguments |= value if parameters[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
    return arguments


def describe(model: nn.Module) -> dict[str, object] | None:
    """The class and the arguments of a network in plain values; None if it does not know them."""
    arguments = getattr(model, "init_args", None)
    arguments = {name: _plain(value) for name, value in arguments.items()} if arguments is not None else None
    if arguments is None or not is_plain(arguments):
        return None
    cls = type(model)
    return {"class": f"{cls.__module__}:{cls.__qualname__}", "arguments": arguments}


def _plain(value: object) -> object:
    """With lists in the place of tuples, as a recipe has them."""
    value = as_plain(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
