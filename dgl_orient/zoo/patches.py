"""Normals of dense clouds: of patches at the density that they have, with the signs of the whole cloud's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
from dgl import DGLGraph
from dgl.ops import copy_u_sum
from torch import Tensor

from ..graph import bipartite_knn_graph, farthest_point_sampling, patches

if TYPE_CHECKING:
    from .trained_model import TrainedModel

__all__ = ["align_signs", "patch_rows", "predicts_patches"]

#: How many points of the sample of a cloud decide on a normal's sign.
_VOTERS = 3


def predicts_patches(trained: TrainedModel) -> bool:
    """Whether a network predicts dense clouds by patches: if it fits planes, which see local detail alone."""
    return bool(trained.recipe.get("model", {}).get("plane_fit")) and trained.num_points is not None


def patch_rows(graph: DGLGraph, num_points: int) -> Iterator[tuple[np.ndarray, int]]:
    """The patches of a cloud with more points than a network was trained with: see
    :func:`dgl_orient.graph.patches`.

    The last one is a farthest-point sample of the whole cloud, to which no point belongs: there the network
    sees which side is outside.
    """
    pos = graph.ndata["pos"]
    for rows, num_own in patches(pos, num_points):
        yield rows.numpy(), num_own
    if len(pos) > num_points:
        yield farthest_point_sampling(pos, torch.tensor([num_points]), torch.tensor([len(pos)])).numpy(), 0


def align_signs(normals: Tensor, pos: Tensor, sampled: Tensor, sampled_normals: Tensor) -> Tensor:
    """Normals with the signs that those of the nearest sampled points have.

    Parameters
    ----------
    normals, pos : Tensor
        Normals of any signs, and coordinates of all points, ``(N, 3)``.
    sampled : Tensor
        Rows of the sample ``(M,)``.
    sampled_normals : Tensor
        Its normals ``(M, 3)``.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.zoo.patches import align_signs
    >>> pos = torch.tensor([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]])
    >>> normals = torch.tensor([[0.0, 1, 0], [0, -1, 0], [0, 1, 0]])
    >>> align_signs(normals, pos, torch.tensor([0]), torch.tensor([[0.1, 1.0, 0.0]]))[:, 1]
    tensor([1., 1., 1.])
    """
    graph = bipartite_knn_graph(pos[sampled], pos, min(_VOTERS, len(sampled)))
    votes = copy_u_sum(graph, torch.nn.functional.normalize(sampled_normals, dim=1))
    return torch.where((votes * normals).sum(1, keepdim=True) < 0, -normals, normals)
