"""One rotation matrix for a whole cloud, and one for every scale on the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLGraph
from torch import Tensor, nn

from ..geometry import to_local
from ..hierarchy import centred, farthest_point_hierarchy
from .frame_head import FrameHead
from .inputs import check_coordinates, check_positive
from .vgconv import VGConv

__all__ = ["GlobalOrientation", "ScaleOrientations"]


class ScaleOrientations(NamedTuple):
    """The orientations of all scales, at every point. B clouds, N points, L scales, F orientations each."""

    glob: Tensor  #: (B, F, 3, 3) of the clouds
    point: Tensor  #: (N, L * F, 3, 3) of every scale, the points' own first and the cloud's last
    canonical: Tensor  #: (N, F, 3) coordinates seen from the cloud's orientations, O_glob^T (x - x̄)


class GlobalOrientation(nn.Module):
    r"""Global orientations of `Equivariant Point Cloud Analysis via Learning Orientations for Message
    Passing <https://arxiv.org/abs/2203.14486>`__, section 4.1, from a hierarchy over the cloud

    .. math::
        X \supset X^1 \supset \ldots \supset \{\bar x\}

    V-GConv layers run on the points themselves, then from each level to the next, where the neighbours of a
    point are looked for in the level below; those of the centroid are all points of the level below. The
    vectors of the centroid give :math:`O_{glob}`, and those of the other levels give orientations of
    coarser and coarser neighbourhoods, which each point takes from its nearest point of that level.

    A symmetric cloud leaves axes undetermined, and an empty one all of them: there fixed axes take their
    place, which cannot turn with the cloud; :meth:`undetermined` tells for which clouds.

    Parameters
    ----------
    num_orientations : int
        How many orientations F each scale gets.
    sizes : sequence of int or float
        The levels between the points and the centroid, as in
        :func:`~dgl_orient.hierarchy.farthest_point_hierarchy`.
    k : int
        Neighbours of each point in the level below.
    in_feats, in_vectors : int
        Numbers of invariant scalars and of equivariant vectors the points come with.
    hidden_feats, hidden_vectors : int
        Sizes of the layers.
    num_layers : int
        How many V-GConv layers run on the points, before those that lead upwards.
    **conv
        Further arguments of :class:`~dgl_orient.nn.VGConv`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient import GlobalOrientation
    >>> pos = torch.rand(300, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=16, batch_num_nodes=[200, 100])
    >>> net = GlobalOrientation(sizes=(64, 16))
    >>> net(graph, pos).shape
    torch.Size([2, 1, 3, 3])
    >>> scales = net.scales(graph, pos)
    >>> scales.point.shape, scales.canonical.shape
    (torch.Size([300, 4, 3, 3]), torch.Size([300, 1, 3]))
    """

    def __init__(
        self,
        num_orientations: int = 1,
        sizes: Sequence[int | float] = (256, 64),
        k: int = 16,
        in_feats: int = 0,
        in_vectors: int = 0,
        hidden_feats: int = 32,
        hidden_vectors: int = 16,
        num_layers: int = 2,
        **conv,
    ) -> None:
        super().__init__()
        check_positive(num_orientations=num_orientations, num_layers=num_layers)
        self.sizes, self.k = tuple(sizes), k
        hidden = (hidden_feats, hidden_feats, hidden_vectors, hidden_vectors)
        first = VGConv(in_feats, hidden_feats, in_vectors, hidden_vectors, **conv)
        self.layers = nn.ModuleList([first, *(VGConv(*hidden, **conv) for _ in range(num_layers - 1))])
        self.pools = nn.ModuleList(VGConv(*hidden, **conv) for _ in range(len(self.sizes) + 1))
        scale_free = first.edges != "plain"
        self.heads = nn.ModuleList(
            FrameHead(hidden_vectors, num_orientations, scale_free) for _ in range(len(self.sizes) + 2)
        )

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for layer in (*self.layers, *self.pools, *self.heads):
            layer.reset_parameters()

    def forward(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> Tensor:
        """Compute the clouds' orientations.

        Parameters
        ----------
        graph : DGLGraph
            A graph over the points; its batch information tells which of them are a cloud.
        pos : Tensor
            Coordinates ``(N, 3)``.
        feat : Tensor, optional
            Invariant scalars ``(N, in_feats)``.
        vec : Tensor, optional
            Equivariant vectors ``(N, in_vectors, 3)``.

        Returns
        -------
        Tensor
            Rotation matrices of shape ``(B, F, 3, 3)``, the axes in columns.
        """
        *_, (vec, _) = self._encode(graph, pos, feat, vec)
        return self._of_clouds(graph, self.heads[-1](vec))

    def scales(self, graph: DGLGraph, pos: Tensor, feat=None, vec=None) -> ScaleOrientations:
        """The orientations of every scale, carried to each point; arguments as in :meth:`forward`."""
        encoded = self._encode(graph, pos, feat, vec)
        frames = [head(vec) for head, (vec, _) in zip(self.heads, encoded)]
        point = [frame[anchor] for frame, (_, anchor) in zip(frames, encoded)]
        centre = centred(pos, graph.batch_num_nodes().cpu())
        return ScaleOrientations(
            glob=self._of_clouds(graph, frames[-1]),
            point=torch.cat(point, 1),
            canonical=to_local(point[-1], centre.unsqueeze(1)),
        )

    def vectors(self, graph: DGLGraph, pos: Tensor, feat=None, vec=None) -> list[Tensor]:
        """The two vectors of every orientation before Gram-Schmidt, ``(M, F, 2, 3)`` for each level."""
        encoded = self._encode(graph, pos, feat, vec)
        return [head.pairs(vec) for head, (vec, _) in zip(self.heads, encoded)]

    def undetermined(self, graph: DGLGraph, pos: Tensor, feat=None, vec=None) -> Tensor:
        """Booleans ``(B, F)``: which of the clouds' orientations the geometry does not determine."""
        *_, (vec, _) = self._encode(graph, pos, feat, vec)
        present = graph.batch_num_nodes() > 0
        result = present.new_ones(len(present), self.heads[-1].num_orientations)
        result[present] = self.heads[-1].undetermined(vec)
        return result

    def _encode(self, graph: DGLGraph, pos: Tensor, feat, vec) -> list[tuple[Tensor, Tensor]]:
        """Each level's vectors ``(M, C, 3)``, and which of them every point takes."""
        check_coordinates(graph, pos)
        clouds = graph.batch_num_nodes().cpu()
        # Far from the origin the centroid could not be represented as exactly as the points' differences.
        pos = centred(pos, clouds)
        # Autocast would round coordinates to a few digits, and every axis differently.
        with torch.autocast(pos.device.type, enabled=False):
            for layer in self.layers:
                feat, vec = layer(graph, feat, vec, pos)
            encoded = [(vec, torch.arange(len(pos), device=pos.device))]
            for pool, level in zip(self.pools, farthest_point_hierarchy(pos, self.sizes, self.k, clouds)):
                if level.index is None:  # the centroid begins with nothing
                    start = feat.new_zeros(len(level.pos), *feat.shape[1:])
                    start_vec = vec.new_zeros(len(level.pos), *vec.shape[1:])
                else:
                    start, start_vec = feat[level.index], vec[level.index]
                feat, vec = pool(level.graph, (feat, start), (vec, start_vec), (pos, level.pos))
                pos = level.pos
                encoded.append((vec, level.anchor))
        return encoded

    @staticmethod
    def _of_clouds(graph: DGLGraph, frames: Tensor) -> Tensor:
        """Frames of all clouds, from those of the clouds that have points."""
        present = graph.batch_num_nodes() > 0
        if bool(present.all()):
            return frames
        identity = torch.eye(3, dtype=frames.dtype, device=frames.device)
        result = identity.repeat(len(present), frames.shape[1], 1, 1)
        result[present] = frames
        return result
