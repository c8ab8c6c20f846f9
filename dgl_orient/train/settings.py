"""How to train: all that a recipe says under ``general_pipeline``."""

from __future__ import annotations

import difflib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass

from dgl import DGLError

from .._validation import as_integer, as_plain
from ..data.protocols import PROTOCOLS
from ..data.tables import MOST_POINTS

__all__ = ["Augment", "EarlyStop", "Optimizer", "Scheduler", "Settings"]


#: The largest rate and decay, with which float32 can still be computed.
_MOST = 1e30


class _Checked(ABC):
    """Raises one error with a sentence for each value that cannot be."""

    _where = ""  # what the names begin with in a sentence

    def __post_init__(self) -> None:
        self._make_plain()
        problems = self._problems()
        if problems:
            raise DGLError(" ".join(problems))

    def _make_plain(self) -> None:
        for each in fields(self):
            object.__setattr__(self, each.name, as_plain(getattr(self, each.name)))

    @abstractmethod
    def _problems(self) -> list[str]:
        """A sentence for each of them."""

    def _integer(self, name: str, least: int | None = None, most: float = math.inf) -> list[str]:
        number = as_integer(getattr(self, name))
        if number is not None and (least is None or least <= number <= most):
            return []
        bound = "" if least is None else f" of at least {least}"
        bound += "" if most == math.inf else f" and at most {most:,}"
        return [f"Expected {self._where}{name} to be an integer{bound}, got {getattr(self, name)!r}."]

    def _number(self, name: str, low: float, high: float = math.inf, above: bool = False) -> list[str]:
        """Of ``low`` to ``high``, or, where it must be ``above``, more than ``low``."""
        value = getattr(self, name)
        if _is_number(value) and low <= value <= high and not (above and value == low):
            return []
        wanted = f"above {low:g}" if above else f"of at least {low:g}"
        wanted += "" if high == math.inf else f" and at most {high:g}"
        return [f"Expected {self._where}{name} to be a number {wanted}, got {value!r}."]

    def _flag(self, name: str) -> list[str]:
        value = getattr(self, name)
        if isinstance(value, bool):
            return []
        return [f"Expected {self._where}{name} to be true or false, got {value!r}."]

    def _choice(self, name: str, choices: Sequence[str]) -> list[str]:
        value = getattr(self, name)
        if value in choices:
            return []
        near = _near(value, choices)
        return [f"Expected {self._where}{name} to be one of {', '.join(choices)}, got {value!r}{near}."]

    def _unused(self, used: Sequence[str]) -> list[str]:
        """Values that were given although the chosen ``name`` has no use for them."""
        return [
            f"{self._where}{each.name} has no meaning where {self._where}name is {self.name!r}; leave it out."
            for each in fields(self)
            if each.name not in ("name", *used) and getattr(self, each.name) != each.default
        ]


@dataclass(frozen=True)
class Optimizer(_Checked):
    """What changes the weights, and how much."""

    name: str = "adam"  #: adam, adamw or sgd
    lr: float = 1e-3  #: the learning rate, of the first epoch after any warm-up
    weight_decay: float = 0.0  #: how strongly weights are drawn to 0
    momentum: float = 0.9  #: of sgd only

    _where = "optimizer."
    _uses = {"adam": (), "adamw": (), "sgd": ("momentum",)}

    def _problems(self) -> list[str]:
        problems = self._number("lr", 0, _MOST, above=True) + self._number("weight_decay", 0, _MOST)
        problems += self._number("momentum", 0, 1) + self._choice("name", list(self._uses))
        return problems or self._unused(("lr", "weight_decay", *self._uses[self.name]))

    def as_dict(self) -> dict[str, object]:
        return _plain(self, ("name", "lr", "weight_decay", *self._uses[self.name]))


@dataclass(frozen=True)
class Scheduler(_Checked):
    """How the learning rate changes from epoch to epoch."""

    name: str = "cosine"  #: cosine, step, plateau or none
    eta_min: float = 0.0  #: cosine: the learning rate to which it falls
    warmup_epochs: int = 0  #: cosine: epochs in which it rises first
    step_size: int = 30  #: step: after how many epochs it falls
    gamma: float = 0.1  #: step: by which factor
    factor: float = 0.5  #: plateau: by which factor it falls
    patience: int = 10  #: plateau: after how many epochs without improvement

    _where = "lr_scheduler."
    _uses = {
        "cosine": ("eta_min", "warmup_epochs"),
        "step": ("step_size", "gamma"),
        "plateau": ("factor", "patience"),
        "none": (),
    }

    def _problems(self) -> list[str]:
        problems = self._number("eta_min", 0) + self._integer("warmup_epochs", 0)
        problems += self._integer("step_size", 1) + self._number("gamma", 0, 1, above=True)
        problems += self._number("factor", 0, 1, above=True) + self._integer("patience", 0)
        if self.factor == 1:
            problems.append("Expected lr_scheduler.factor to be below 1, got 1.")
        problems += self._choice("name", list(self._uses))
        return problems or self._unused(self._uses[self.name])

    def as_dict(self) -> dict[str, object]:
        return _plain(self, ("name", *self._uses[self.name]))


@dataclass(frozen=True)
class EarlyStop(_Checked):
    """When to stop before the last epoch."""

    patience: int = 20  #: after how many epochs without improvement

    _where = "early_stop."

    def _problems(self) -> list[str]:
        return self._integer("patience", 1)

    def as_dict(self) -> dict[str, object]:
        return _plain(self, ("patience",))


@dataclass(frozen=True)
class Augment(_Checked):
    """How clouds of the training set are changed at random, beside being turned."""

    scale: tuple[float, float] | None = None  #: the smallest and the largest factor
    shift: float = 0.0  #: the largest distance along each axis
    jitter: float = 0.0  #: the standard deviation of every point's noise
    drop: float = 0.0  #: the largest share of points that is left out
    sample: int | None = None  #: how many points, drawn anew each time, a cloud is given as
    even: bool = False  #: whether these are, of twice as many that were drawn, those farthest apart
    stretch: tuple[float, float] | None = None  #: as scale, but a factor for each axis

    _where = "augment."

    def __post_init__(self) -> None:
        self._make_plain()
        for name in ("scale", "stretch"):
            if isinstance(getattr(self, name), list):
                object.__setattr__(self, name, tuple(getattr(self, name)))
        super().__post_init__()

    def _problems(self) -> list[str]:
        problems = self._number("shift", 0) + self._number("jitter", 0) + self._number("drop", 0, 1)
        if self.drop == 1:
            problems.append("Expected augment.drop to leave some points, got 1.")
        if self.sample is not None:
            problems += self._integer("sample", 1, MOST_POINTS)
        problems += self._flag("even")
        if self.even is True and self.sample is None:
            problems.append("Expected augment.sample, a number of points, with augment.even.")
        return problems + self._factors("scale") + self._factors("stretch")

    def _factors(self, name: str) -> list[str]:
        value = getattr(self, name)
        pair = isinstance(value, tuple) and len(value) == 2 and all(map(_is_number, value))
        if value is None or (pair and 0 < value[0] <= value[1]):
            return []
        return [f"Expected augment.{name} to be two numbers 0 < low <= high, got {value!r}."]

    def as_dict(self) -> dict[str, object]:
        return _plain(self, [each.name for each in fields(self)])


@dataclass(frozen=True)
class Settings(_Checked):
    """Everything about training that is not the data or the network.

    Parameters that hold others may be given as mappings. A value that cannot be raises
    :class:`dgl.DGLError`, which names all of them.

    Parameters
    ----------
    num_runs : int
        How often to train, each time with another seed: ``seed``, ``seed + 1`` and so on.
    seed : int
        Of initial weights, the order of clouds, and dropout. How training clouds are turned and changed
        depends on it too, and is the same in all runs.
    protocol : str, optional
        How clouds are turned in training and in test: ``"z/z"``, ``"z/so3"`` or ``"so3/so3"``. None for tasks
        that turn nothing.
    train_batch_size : int
        Clouds in a batch of training, all processes taken together. The last clouds of an epoch's order that
        do not fill a batch are left out of it, unless there is no other batch.
    eval_batch_size : int
        Clouds in a batch of validation and test.
    num_workers : int
        Processes that prepare batches; 0 for none but the one that trains.
    num_epochs : int
        How often each cloud is seen.
    optimizer : Optimizer
        What changes the weights: ``name`` (``adam``, ``adamw``, ``sgd``), ``lr``, ``weight_decay``,
        ``momentum`` (``sgd`` only).
    lr_scheduler : Scheduler
        How the learning rate changes: ``name`` ``cosine`` (``eta_min``, ``warmup_epochs``), ``step``
        (``step_size``, ``gamma``), ``plateau`` (``factor``, ``patience``) or ``none``.
    label_smoothing : float
        The share of certainty that is spread over all classes.
    signed : bool
        Whether the loss of normals counts to which side they point. If not, it is the same for a normal and
        its opposite, and the unsigned error chooses the best epoch.
    grad_clip : float, optional
        The largest norm of the gradient of all weights together; a longer one is shortened.
    early_stop : EarlyStop, optional
        Stop after so many epochs without improvement: ``{patience: 10}``.
    bf16 : bool
        Compute in bfloat16 what tolerates it; geometry and sums stay as they are.
    augment : Augment, optional
        Random changes of training clouds: ``scale`` [low, high], ``stretch`` [low, high] with a factor for
        each axis of the upright cloud, ``shift``, ``jitter``, ``drop``, and ``sample``, a number of points
        that are drawn among the cloud's each time, at random or, if ``even``, as those farthest apart of
        twice as many.
    save_path : str
        The folder of checkpoints, logs and results.

    Examples
    --------
    >>> from dgl_orient.train.settings import Settings
    >>> settings = Settings(num_epochs=20, optimizer={"name": "sgd", "lr": 0.1})
    >>> settings.optimizer.momentum, settings.as_dict()["lr_scheduler"]
    (0.9, {'name': 'cosine', 'eta_min': 0.0, 'warmup_epochs': 0})
    """

    num_runs: int = 1
    seed: int = 0
    protocol: str | None = "z/so3"
    train_batch_size: int = 32
    eval_batch_size: int = 32
    num_workers: int = 0
    num_epochs: int = 100
    optimizer: Optimizer = field(default_factory=Optimizer)
    lr_scheduler: Scheduler = field(default_factory=Scheduler)
    label_smoothing: float = 0.0
    signed: bool = True
    grad_clip: float | None = None
    early_stop: EarlyStop | None = None
    bf16: bool = False
    augment: Augment | None = None
    save_path: str = "results"

    _nested = {"optimizer": Optimizer, "lr_scheduler": Scheduler, "early_stop": EarlyStop, "augment": Augment}

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Settings:
        """Settings from a mapping, as it is read from a file."""
        problems = _unknown_keys(cls, values, "")
        if problems:
            raise DGLError(" ".join(problems))
        return cls(**values)

    def __post_init__(self) -> None:
        self._make_plain()
        problems = []
        for name, kind in self._nested.items():
            try:
                object.__setattr__(self, name, _made(kind, name, getattr(self, name)))
            except DGLError as error:
                problems.append(str(error))
        problems += self._problems()
        if problems:
            raise DGLError(" ".join(problems))

    def _problems(self) -> list[str]:
        problems = self._integer("seed")
        for name, least in dict(num_runs=1, train_batch_size=1, eval_batch_size=1, num_workers=0).items():
            problems += self._integer(name, least)
        problems += self._integer("num_epochs", 1) + self._number("label_smoothing", 0, 1)
        if self.protocol is not None:
            problems += self._choice("protocol", PROTOCOLS)
        if self.grad_clip is not None:
            problems += self._number("grad_clip", 0, above=True)
        problems += self._flag("signed") + self._flag("bf16")
        if not isinstance(self.save_path, str) or not self.save_path.strip():
            problems.append(f"Expected save_path to be the name of a folder, got {self.save_path!r}.")
        return problems or self._contradictions()

    def _contradictions(self) -> list[str]:
        warmup = getattr(self.lr_scheduler, "warmup_epochs", 0)
        if warmup >= self.num_epochs:
            return [
                f"Expected lr_scheduler.warmup_epochs to be fewer than num_epochs, got {warmup} and "
                f"{self.num_epochs}."
            ]
        return []

    def as_dict(self) -> dict[str, object]:
        """Plain numbers, texts and dictionaries, from which :meth:`of` makes the same settings."""
        return _plain(self, [each.name for each in fields(self)])


def _plain(settings: object, names: Sequence[str]) -> dict[str, object]:
    values = {name: getattr(settings, name) for name in names}
    return {name: _plain_value(value) for name, value in values.items()}


def _plain_value(value: object) -> object:
    if is_dataclass(value):
        return value.as_dict()
    return list(value) if isinstance(value, tuple) else value


def _made(kind: type, name: str, value: object) -> object:
    """The nested settings that a mapping describes."""
    default = next(each for each in fields(Settings) if each.name == name)
    may_be_none = default.default_factory is MISSING
    if isinstance(value, kind) or (value is None and may_be_none):
        return value
    if not isinstance(value, Mapping):
        raise DGLError(f"Expected {name} to be a mapping with keys {_keys(kind)}, got {value!r}.")
    problems = _unknown_keys(kind, value, f"{name}.")
    if problems:
        raise DGLError(" ".join(problems))
    return kind(**value)


def _unknown_keys(kind: type, values: Mapping[str, object], where: str) -> list[str]:
    known = [each.name for each in fields(kind)]
    return [
        f"There is no setting {where}{key}{_near(key, known)}; known are {_keys(kind)}."
        for key in values
        if key not in known
    ]


def _keys(kind: type) -> str:
    return ", ".join(each.name for each in fields(kind))


def _near(word: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
