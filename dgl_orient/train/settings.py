"""How to train: all that a recipe says under ``general_pipeline``."""

from __future__ import annotations

from typing import Literal

from pydantic.v1 import Field, validator

from .._problems import Problem, problem_at
from .._schema import Choice, Schema
from ..data.protocols import PROTOCOLS

__all__ = [
    "MAX_POINTS",
    "SGD",
    "Adam",
    "AdamW",
    "Augmentation",
    "ConstantRate",
    "Cosine",
    "EarlyStop",
    "Optimizer",
    "Plateau",
    "Scheduler",
    "Settings",
    "Step",
]

#: The most points that a recipe can ask for in a cloud: a stranger's recipe must not fill the memory.
MAX_POINTS = 1_000_000

#: Beyond it float32 overflows in the first step.
_MAX_RATE = 1e30


class Optimizer(Choice):
    """What updates the weights: :class:`Adam`, :class:`AdamW` or :class:`SGD`."""

    lr: float = Field(
        1e-3, gt=0, le=_MAX_RATE, description="learning rate of the first epoch after the warm-up"
    )
    weight_decay: float = Field(0.0, ge=0, le=_MAX_RATE, description="factor of the L2 penalty")


class Adam(Optimizer):
    """Adam with an L2 penalty."""

    name: Literal["adam"] = Field("adam", description="adam, adamw or sgd")


class AdamW(Optimizer):
    """Adam with decoupled weight decay."""

    name: Literal["adamw"] = Field("adamw", description="adam, adamw or sgd")


class SGD(Optimizer):
    """Stochastic gradient descent."""

    name: Literal["sgd"] = Field("sgd", description="adam, adamw or sgd")
    momentum: float = Field(0.9, ge=0, le=1, description="momentum factor")


_SCHEDULERS = "cosine, step, plateau or none"


class Scheduler(Choice):
    """How the learning rate changes: :class:`Cosine`, :class:`Step`, :class:`Plateau` or constant."""


class Cosine(Scheduler):
    """Cosine annealing after a linear warm-up."""

    name: Literal["cosine"] = Field("cosine", description=_SCHEDULERS)
    eta_min: float = Field(0.0, ge=0, description="learning rate at the end")
    warmup_epochs: int = Field(0, ge=0, description="epochs in which it rises first")


class Step(Scheduler):
    """Decay by a factor every few epochs."""

    name: Literal["step"] = Field("step", description=_SCHEDULERS)
    step_size: int = Field(30, ge=1, description="epochs between two decays")
    gamma: float = Field(0.1, gt=0, le=1, description="factor of a decay")


class Plateau(Scheduler):
    """Decay by a factor when the validation metric has stopped improving."""

    name: Literal["plateau"] = Field("plateau", description=_SCHEDULERS)
    factor: float = Field(0.5, gt=0, lt=1, description="factor of a decay")
    patience: int = Field(10, ge=0, description="epochs without improvement before a decay")


class ConstantRate(Scheduler):
    """A learning rate that does not change."""

    name: Literal["none"] = Field("none", description=_SCHEDULERS)


class EarlyStop(Schema):
    """When to stop before the last epoch."""

    patience: int = Field(20, ge=1, description="epochs without improvement before training stops")


class Augmentation(Schema):
    """Random changes of training clouds besides their rotation."""

    scale: tuple[float, float] | None = Field(None, description="smallest and largest factor")
    anisotropic_scale: tuple[float, float] | None = Field(
        None, description="smallest and largest factor of each axis of the upright cloud"
    )
    translate: float = Field(0.0, ge=0, description="largest translation along each axis")
    jitter: float | tuple[float, float] = Field(
        0.0,
        ge=0,
        description="standard deviation of the noise of each point; or the smallest and the largest",
    )
    point_dropout: float = Field(0.0, ge=0, lt=1, description="largest fraction of points that is dropped")
    view: float = Field(0.0, ge=0, le=1, description="probability of only what is seen from one place")
    density: float = Field(0.0, ge=0, le=_MAX_RATE, description="largest strength of thinning to one side")
    num_points: int | None = Field(
        None, ge=1, le=MAX_POINTS, description="number of points sampled from the cloud in each epoch"
    )
    farthest: bool = Field(False, description="sample twice as many points and keep those farthest apart")

    @validator("scale", "anisotropic_scale")
    def _check_factors(cls, value: tuple[float, float] | None) -> tuple[float, float] | None:
        if value is not None and not 0 < value[0] <= value[1]:
            raise Problem(f"expected two numbers 0 < low <= high, got {list(value)}.")
        return value

    @validator("jitter")
    def _check_jitter(cls, value: float | tuple[float, float]) -> float | tuple[float, float]:
        if isinstance(value, tuple) and value[0] > value[1]:
            raise Problem(f"expected two numbers 0 <= low <= high, got {list(value)}.")
        return value

    @validator("farthest")
    def _check_farthest(cls, value: bool, values: dict[str, object]) -> bool:
        if value and values.get("num_points", 1) is None:
            raise Problem("expected num_points beside it, the number of points to keep.")
        return value


class Settings(Schema):
    """Everything about training that is not the data or the model.

    Settings that hold others may be given as mappings. Values that are out of bounds or of the wrong type
    raise one :class:`dgl.DGLError` that names them all.

    Examples
    --------
    >>> from dgl_orient.train.settings import Settings
    >>> settings = Settings(num_epochs=20, optimizer={"name": "sgd", "lr": 0.1})
    >>> settings.optimizer.momentum, settings.as_dict()["lr_scheduler"]
    (0.9, {'name': 'cosine', 'eta_min': 0.0, 'warmup_epochs': 0})
    """

    num_runs: int = Field(
        1, ge=1, description="Number of trainings, with the seeds seed, seed + 1 and so on."
    )
    seed: int = Field(
        0, description="Seed of initial weights, shuffling, dropout, rotation and augmentation."
    )
    protocol: Literal[PROTOCOLS] | None = Field(
        "z/so3",
        pipelines=("pointcls", "partseg", "normals", "upright"),
        description="Rotations of clouds in training / in validation and test: z/z, z/so3 or so3/so3.",
    )
    train_batch_size: int = Field(32, ge=1, description="Clouds in a training batch, over all processes.")
    eval_batch_size: int = Field(32, ge=1, description="Clouds in a batch of validation and test.")
    num_workers: int = Field(
        0, ge=0, description="Processes that prepare batches; 0 for the main process alone."
    )
    num_epochs: int = Field(100, ge=1, description="Number of epochs.")
    optimizer: Optimizer = Field(Adam(), description="What updates the weights: adam, adamw or sgd.")
    lr_scheduler: Scheduler = Field(Cosine(), description=f"How the learning rate changes: {_SCHEDULERS}.")
    label_smoothing: float = Field(
        0.0,
        ge=0,
        le=1,
        pipelines=("pointcls", "partseg"),
        description="Probability that the target distribution spreads over all classes.",
    )
    part_balance: float = Field(
        0.0,
        ge=0,
        le=1,
        pipelines=("partseg",),
        description="How far all parts of a cloud weigh alike in the loss: 0, all points do, to 1.",
    )
    iou_loss: float = Field(
        0.0,
        ge=0,
        pipelines=("partseg",),
        description="Weight of one minus the expected IoU of each cloud beside the cross entropy.",
    )
    class_balance: float = Field(
        0.0,
        ge=0,
        le=1,
        pipelines=("pointcls", "partseg"),
        description="How far rare classes are repeated in an epoch: 0, never, to 1, as frequent as the mean.",
    )
    signed: bool = Field(
        True,
        pipelines=("normals",),
        description="Whether loss and best epoch distinguish a normal from its opposite.",
    )
    grad_clip: float | None = Field(None, gt=0, description="Largest norm of the gradient of all weights.")
    ema_decay: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Decay of the moving average of the weights, which is validated and kept: 0.999.",
    )
    early_stop: EarlyStop | None = Field(
        None, description="Stop after so many epochs without improvement: {patience: 10}."
    )
    bf16: bool = Field(False, description="Train in bfloat16 except geometry and sums; evaluate in float32.")
    augmentation: Augmentation | None = Field(
        None,
        pipelines=("pointcls", "partseg", "normals", "upright"),
        description="Random changes of training clouds: {scale: [0.8, 1.25], jitter: 0.01}.",
    )
    remove_outliers: bool = Field(
        False,
        pipelines=("pointcls", "partseg", "normals", "upright"),
        description="Remove stray points of all clouds first: those far from their 8 nearest neighbours.",
    )
    init_from: str | None = Field(
        None,
        description="Checkpoint, or name of a pretrained model, whose weights to begin with where they fit.",
    )
    freeze: bool | list[str] = Field(
        False,
        description="Whether weights of init_from are kept as they are; or names of modules: [backbone].",
    )
    tensorboard: bool = Field(False, description="Whether to write logs for TensorBoard, too.")
    save_path: str = Field(
        "results", description="Folder of results, in which each training has a numbered one: results/001."
    )

    @validator("lr_scheduler")
    def _check_warmup(cls, value: Scheduler, values: dict[str, object]) -> Scheduler:
        warmup, epochs = getattr(value, "warmup_epochs", 0), values.get("num_epochs")
        if epochs is not None and warmup >= epochs:
            fewer = Problem(f"expected fewer than num_epochs, got {warmup} and {epochs}.")
            raise problem_at("warmup_epochs", fewer, type(value))
        return value

    @validator("freeze")
    def _check_freeze(cls, value: bool | list[str], values: dict[str, object]) -> bool | list[str]:
        if value and values.get("init_from", "") is None:
            raise Problem("expected init_from beside it, the weights to keep.")
        return value

    @validator("save_path")
    def _check_save_path(cls, value: str) -> str:
        if not value.strip():
            raise Problem(f"expected the name of a folder, got {value!r}.")
        return value
