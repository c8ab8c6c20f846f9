"""Tasks on molecules: scalar properties, vectors and tensors."""

from __future__ import annotations

from collections.abc import Sequence

from dgl import DGLError, DGLGraph
from torch import Tensor

from ..geometry import norm
from ..metrics import PropertyError, TensorError
from .tasks import Task

__all__ = ["MoleculeProperties", "MoleculeTensors"]


class _MoleculeTask(Task):
    """A task whose targets are the labels of the graphs."""

    direction = "min"
    transforms_clouds = False  # distances have a meaning
    per_cloud = True

    def __init__(
        self, targets: Sequence[str], scales: Sequence[float], units: Sequence[str] | None = None
    ) -> None:
        self.targets, self.scales = list(targets), [float(scale) for scale in scales]
        self.units = [""] * len(self.targets) if units is None else list(units)
        if not self.targets or not len(self.targets) == len(self.scales) == len(self.units):
            raise DGLError(
                f"Expected a scale and a unit for each target, got {len(self.scales)} and {len(self.units)} "
                f"for {len(self.targets)}."
            )

    def metadata(self) -> dict[str, object]:
        return {"targets": self.targets, "units": self.units}

    def update(
        self, metric: PropertyError | TensorError, output: Tensor, graph: DGLGraph, label: Tensor | None
    ) -> None:
        metric.update(output, self._checked(output, label))

    def _checked(self, output: Tensor, label: Tensor | None) -> Tensor:
        if label is None or output.shape != label.shape:
            given = "none" if label is None else tuple(label.shape)
            raise DGLError(
                f"The network predicts {tuple(output.shape)} for molecules whose targets are {given}; give "
                f"it the data set's outputs."
            )
        return label.to(output)


class MoleculeProperties(_MoleculeTask):
    """Scalar properties of molecules; networks return ``(B, T)``.

    The loss is the absolute error in units of the scales, the mean over all properties.

    Parameters
    ----------
    targets : sequence of str
        Names of the properties.
    scales : sequence of float
        How much each varies.
    units : sequence of str, optional
        Their units.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train import MoleculeProperties
    >>> task = MoleculeProperties(["u0", "gap"], [2.0, 1.0])
    >>> task.loss(torch.tensor([[1.0, 3.0]]), None, torch.tensor([[3.0, 2.0]]))
    (tensor(1.), 1)
    """

    name, main_metric = "molprop", "std_mae"

    def loss(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> tuple[Tensor, int]:
        output = output.float()
        errors = (output - self._checked(output, label)).abs() / output.new_tensor(self.scales)
        return errors.mean(1).sum(), len(errors)

    def metric(self) -> PropertyError:
        return PropertyError(self.targets, self.scales)


class MoleculeTensors(_MoleculeTask):
    """A vector or a tensor of rank 2 of molecules; networks return ``(B, 3)`` or ``(B, 3, 3)``.

    The loss is the norm of the error in units of the scale: it does not depend on the axes.

    Parameters
    ----------
    targets : sequence of str
        The name of the vector or tensor.
    scales : sequence of float
        How much it varies.
    units : sequence of str, optional
        Its unit.
    rank : {1, 2}
        Whether it is a vector or a tensor.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.train import MoleculeTensors
    >>> task = MoleculeTensors(["polarizability"], [2.0])
    >>> task.loss(torch.zeros(1, 3, 3), None, torch.full((1, 3, 3), 2.0))
    (tensor(3.), 1)
    """

    name = "moltensor"

    def __init__(
        self,
        targets: Sequence[str],
        scales: Sequence[float],
        units: Sequence[str] | None = None,
        rank: int = 2,
    ) -> None:
        super().__init__(targets, scales, units)
        if len(self.targets) != 1 or rank not in (1, 2):
            raise DGLError(f"Expected one target of rank 1 or 2, got {self.targets} of rank {rank}.")
        self.rank = rank

    @property
    def main_metric(self) -> str:
        return "vector_error" if self.rank == 1 else "tensor_error"

    def loss(self, output: Tensor, graph: DGLGraph, label: Tensor | None) -> tuple[Tensor, int]:
        output = output.float()
        errors = norm((output - self._checked(output, label)).flatten(1))
        return errors.sum() / self.scales[0], len(errors)

    def metric(self) -> TensorError:
        return TensorError(self.rank)
