"""Forces on atoms as gradients of a predicted energy."""

from __future__ import annotations

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

__all__ = ["energy_and_forces"]


def energy_and_forces(
    network: nn.Module, graph: DGLGraph, output: int = 0, create_graph: bool = False
) -> tuple[Tensor, Tensor]:
    r"""The energies of molecules and the forces on their atoms, :math:`F_i = -\partial E / \partial x_i`.

    Forces that are gradients conserve energy, as far as steps of time are short.

    Parameters
    ----------
    network : nn.Module
        A network for molecules whose outputs are scalars.
    graph : DGLGraph
        Molecules, as the network takes them.
    output : int
        Which of the scalars is the energy.
    create_graph : bool
        Whether forces can be differentiated again, to train by them.

    Returns
    -------
    energy : Tensor
        ``(B,)``.
    forces : Tensor
        ``(N, 3)``, in the unit of energy by that of length.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedMol, energy_and_forces
    >>> hydrogen = dgl_orient.point_cloud(torch.tensor([[0.0, 0, 0], [0.74, 0, 0]]))
    >>> hydrogen.ndata["element"] = torch.tensor([1, 1])
    >>> energy, forces = energy_and_forces(OrientedMol(), hydrogen)
    >>> energy.shape, bool(forces.sum(0).abs().max() < 1e-5)
    (torch.Size([1]), True)
    """
    pos = graph.ndata["pos"].detach().requires_grad_()
    moved = graph.local_var()
    moved.ndata["pos"] = pos
    with torch.enable_grad():
        outputs = network(moved)
        if outputs.ndim != 2 or not 0 <= output < outputs.shape[1]:
            raise DGLError(
                f"Expected scalars (B, T) with the energy in column {output} from the network, got "
                f"{tuple(outputs.shape)}."
            )
        energy = outputs[:, output]
        (gradient,) = torch.autograd.grad(energy.sum(), pos, create_graph=create_graph)
    return (energy if create_graph else energy.detach()), -gradient
