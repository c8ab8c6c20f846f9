"""Fine-tuning: a network that begins with the weights of another, of which some are frozen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import NamedTuple

from dgl import DGLError
from torch import Tensor, nn

from .._messages import nearest, shown
from ..weights import checkpoint_path
from . import checkpoint
from .settings import Settings

__all__ = ["InitialWeights", "initial_weights", "initialise", "set_train_mode"]


class InitialWeights(NamedTuple):
    """What a network begins with, by the names of its parameters and buffers."""

    taken: Mapping[str, Tensor]  #: those of another network
    new: tuple[str, ...]  #: the parameters that are randomly initialised
    frozen: tuple[str, ...]  #: the parameters that are not trained

    def __str__(self) -> str:
        modules = dict.fromkeys(name.rpartition(".")[0] or name for name in self.new)
        new = f"new are those of {', '.join(modules)}" if modules else "none are new"
        frozen = f"; {len(self.frozen)} parameters are frozen" if self.frozen else ""
        return f"{len(self.taken)} of {len(self.taken) + len(self.new)} weights, {new}{frozen}"


def initialise(model: nn.Module, settings: Settings) -> InitialWeights | None:
    """Give a network the weights of ``settings.init_from`` where they fit, and freeze ``settings.freeze``.

    Weights fit if they have the same name and shape. So a network for other classes has a new output layer.

    Examples
    --------
    >>> from dgl_orient.models import OrientedDGCNN
    >>> from dgl_orient.train.finetune import initialise
    >>> from dgl_orient.train.settings import Settings
    >>> import dgl_orient
    >>> arguments = dgl_orient.pretrained("oriented-dgcnn-modelnet40").network.init_args | {"num_classes": 3}
    >>> network = OrientedDGCNN(**arguments)
    >>> initialise(network, Settings(init_from="oriented-dgcnn-modelnet40", freeze=True)).new
    ('head.logits.weight', 'head.logits.bias')
    >>> [name for name, weight in network.named_parameters() if weight.requires_grad]
    ['head.logits.weight', 'head.logits.bias']
    """
    if settings.init_from is None:
        return None
    initial = initial_weights(model, settings)
    model.load_state_dict(initial.taken, strict=False)
    frozen = set(initial.frozen)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in frozen and parameter.requires_grad)
    return initial


def initial_weights(model: nn.Module, settings: Settings) -> InitialWeights:
    """What :func:`initialise` would do to a network, which may be on the device ``meta``.

    Raises
    ------
    DGLError
        If no weights fit, if a module to freeze does not exist, or if nothing would be trained.
    """
    source = settings.init_from
    given = checkpoint.load(checkpoint_path(source)).get("weights")
    given = given if isinstance(given, Mapping) else {}
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    taken = {name: given[name] for name in shapes if checkpoint.weight_shape(given.get(name)) == shapes[name]}
    parameters = dict(model.named_parameters())
    new = tuple(name for name in parameters if name not in taken)
    _check_fit(source, model, len(parameters) - len(new), len(parameters))
    frozen = _frozen(model, settings.freeze, taken)
    if len(frozen) == len(parameters):
        raise DGLError(
            f"freeze: nothing is left to train, for all weights of {source} fit; name the modules to freeze "
            f"instead, such as {list(dict(model.named_children()))[:-1]}."
        )
    return InitialWeights(taken, new, frozen)


def _check_fit(source: str, model: nn.Module, num_taken: int, number: int) -> None:
    fit = f"the {number} parameters of this {type(model).__name__}"
    advice = "give model the arguments of that network; configure --init-from writes them"
    if num_taken == 0:
        raise DGLError(f"init_from: no weights of {source} fit {fit}; {advice}.")
    if 2 * num_taken < number:
        warnings.warn(f"Weights of {source} fit only {num_taken} of {fit}; {advice}.", stacklevel=2)


def _frozen(model: nn.Module, freeze: bool | list[str], taken: Mapping[str, Tensor]) -> tuple[str, ...]:
    """The names of the parameters to freeze."""
    names = [name for name, _ in model.named_parameters()]
    if isinstance(freeze, bool):
        return tuple(name for name in names if freeze and name in taken)
    modules = dict(model.named_modules())
    for module in freeze:
        if not module or module not in modules:
            raise DGLError(
                f"freeze: this {type(model).__name__} has no module {shown(module)}; "
                f"{nearest(module, dict(model.named_children()))}"
            )
    return tuple(name for name in names if any(name.startswith(f"{module}.") for module in freeze))


def set_train_mode(model: nn.Module) -> None:
    """Set a network to training mode, but modules whose parameters are all frozen to evaluation mode.

    So the statistics of frozen batch norms stay, and frozen features have no dropout.
    """
    model.train()
    for module in model.modules():
        parameters = list(module.parameters())
        if parameters and not any(parameter.requires_grad for parameter in parameters):
            module.eval()
