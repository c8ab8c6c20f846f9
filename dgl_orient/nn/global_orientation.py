"""One rotation matrix for a whole point cloud, and one for every scale of a hierarchy over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from dgl import DGLError, DGLGraph
from dgl.ops import copy_u_max, copy_u_mean
from torch import Tensor, nn

from .._validation import (
    check_choice,
    check_coordinates,
    check_dtype,
    check_integers,
    check_k,
    check_level_sizes,
    check_shape,
)
from ..geometry import subtract_centroid, to_local
from ..graph import farthest_point_hierarchy
from ..robust import subtract_robust_centroid
from .edge_features import EdgeFeatures
from .gvp import GVP
from .input_features import (
    NEIGHBOUR_OFFSET,
    InputFeatures,
    centered_input_features,
    inner_products,
    input_features,
    num_inner_products,
    num_input_vectors,
)
from .orientation_head import OrientationHead
from .vgconv import MessageFrom, VGConv

__all__ = ["GlobalOrientation", "ScaleOrientations"]


class ScaleOrientations(NamedTuple):
    """The orientations of all scales, at every point: B point clouds, N points, L scales, F orientations."""

    global_orient: Tensor  #: (B, F, 3, 3) of the point clouds
    point: Tensor  #: (N, L * F, 3, 3) of every scale, the points' own first and the point cloud's last
    canonical: Tensor  #: (N, F, 3) coordinates in the point cloud's orientations, O_glob^T (x - x̄)
    vec: Tensor | None  #: (N, V, 3) the input features' vectors, if there are any
    inner_products: Tensor | None  #: (N, num_inner_products) of these vectors
    projections: Tensor  #: (N, C) of the points on the vectors that give the point cloud's orientations
    centered: Tensor  #: (N, 3) coordinates relative to the robust centroid, x - x̄


class _Encoding(NamedTuple):
    """The encoder's output at one level."""

    vec: Tensor  # (M, C, 3) vectors of its points
    size: Tensor  # () or (M,) their length where nothing cancels
    anchor: Tensor  # (N,) for every point of the point clouds, its nearest point of the level


class GlobalOrientation(nn.Module):
    r"""Global orientations of `Equivariant Point Cloud Analysis via Learning Orientations for Message
    Passing <https://arxiv.org/abs/2203.14486>`__, section 4.1, from a hierarchy over the point cloud

    .. math::
        X \supset X^1 \supset \ldots \supset \{\bar x\}

    V-GConv layers run on the points, then from each level to the next, where the neighbours of a point are
    points of the level below; those of the centroid are all points of the level below. The vectors of the
    centroid give :math:`O_{\mathrm{global}}`, and those of the other levels give orientations of coarser and
    coarser neighbourhoods; each point has those of its nearest point of that level. The centroid's features
    are initialised with the mean of the level below.

    Point clouds are separated by the graph's batch information, which some of DGL's functions
    (``add_self_loop`` among them) do not keep.

    A symmetric point cloud may be degenerate, and an empty one is: fixed axes replace the undefined ones,
    which cannot be equivariant; :meth:`degenerate` reports such point clouds. An *exactly* symmetric point
    cloud also has points at equal distances, between which rounding decides which are sampled, and so what
    the orientation is; sampled surfaces have none.

    The levels below the centroid give orientations only in :meth:`scales`; a training that uses
    :meth:`forward` alone leaves their parameters (``heads``) without gradients.

    Parameters
    ----------
    num_orientations : int
        Number of orientations F of each scale.
    level_sizes : sequence of int or float
        Points per level between the points and the centroid, as in
        :func:`~dgl_orient.graph.farthest_point_hierarchy`.
    k : int
        Neighbours of each point in the level below.
    in_feats, in_vectors : int
        Numbers of invariant scalars and of equivariant vectors of the points.
    hidden_feats, hidden_vectors : int
        Numbers of scalars and vectors of the layers.
    num_layers : int
        Number of V-GConv layers on the points, before those between levels. With 0 there is a GVP on each
        point's own vectors instead, many times faster.
    input_features : {"none", "covariance", "covariance+normal"}
        The :func:`~dgl_orient.nn.input_features.input_features` of the first layer. With them orientations
        depend little on which points were sampled.
    neighbour_offset : bool
        Whether the mean offset of the neighbours is among the input features. It depends on which points were
        sampled, and so do orientations with it: between two samples of a ModelNet40 shape those of an
        untrained network differ by 40 degrees at the median, without it by 16.
    message_from, edges, message_layers, vector_gate, dropout
        As in :class:`~dgl_orient.nn.VGConv`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient import GlobalOrientation
    >>> pos = torch.rand(300, 3)
    >>> graph = dgl_orient.knn_graph(pos, k=16, batch_num_nodes=[200, 100])
    >>> net = GlobalOrientation(level_sizes=(64, 16))
    >>> net(graph, pos).shape
    torch.Size([2, 1, 3, 3])
    >>> scales = net.scales(graph, pos)
    >>> scales.point.shape, scales.canonical.shape
    (torch.Size([300, 4, 3, 3]), torch.Size([300, 1, 3]))
    """

    def __init__(
        self,
        num_orientations: int = 1,
        level_sizes: Sequence[int | float] = (256, 64),
        k: int = 16,
        in_feats: int = 0,
        in_vectors: int = 0,
        hidden_feats: int = 32,
        hidden_vectors: int = 16,
        num_layers: int = 2,
        input_features: InputFeatures = "none",
        neighbour_offset: bool = True,
        message_from: MessageFrom = "both",
        edges: EdgeFeatures = "radial",
        message_layers: int = 1,
        vector_gate: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_integers(num_orientations=num_orientations, hidden_feats=hidden_feats)
        check_integers(0, num_layers=num_layers, in_feats=in_feats, in_vectors=in_vectors)
        check_choice("input_features", input_features, InputFeatures)
        check_level_sizes(level_sizes)
        self.level_sizes, self.k, self.input_features = tuple(level_sizes), check_k(k), input_features
        self.in_feats, self.in_vectors, self.hidden_vectors = in_feats, in_vectors, hidden_vectors
        num_vectors = num_input_vectors(input_features)
        #: of the input features' vectors
        self.num_inner_products = num_inner_products(num_vectors)
        # The vectors of the input features from which orientations are made.
        self._used = [n for n in range(num_vectors) if neighbour_offset or n != NEIGHBOUR_OFFSET]
        num_vectors = len(self._used)
        if num_layers == 0 and in_vectors + num_vectors == 0:
            raise DGLError(
                "With num_layers=0 orientations come from the vectors of the points; give input_features or "
                "in_vectors."
            )
        options = dict(
            message_from=message_from,
            edges=edges,
            message_layers=message_layers,
            vector_gate=vector_gate,
            dropout=dropout,
        )
        # A vector of the input features comes with its length.
        first, hidden = (in_feats + num_vectors, in_vectors + num_vectors), (hidden_feats, hidden_vectors)
        self.own = GVP(first, hidden, vector_gate=True) if num_layers == 0 else None
        self.layers = nn.ModuleList(
            VGConv(hidden if number else first, hidden, **options) for number in range(num_layers)
        )
        num_levels = len(self.level_sizes) + 1
        self.pools = nn.ModuleList(VGConv(hidden, hidden, **options) for _ in range(num_levels))
        self.heads = nn.ModuleList(
            OrientationHead(hidden_vectors, num_orientations) for _ in range(num_levels + 1)
        )

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        own = () if self.own is None else (self.own,)
        for layer in (*own, *self.layers, *self.pools, *self.heads):
            layer.reset_parameters()

    def extra_repr(self) -> str:
        return f"level_sizes={self.level_sizes}, k={self.k}, input_features={self.input_features}"

    def forward(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> Tensor:
        """Compute the orientations of the point clouds.

        Parameters
        ----------
        graph : DGLGraph
            A graph over the points; its batch information separates the point clouds.
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
        centroid = self._encode(graph, pos, feat, vec)[-1]
        return self._fill_empty(graph, self.heads[-1](centroid.vec, centroid.size))

    def scales(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> ScaleOrientations:
        """The orientations of every scale, at each point; arguments as in :meth:`forward`."""
        check_coordinates(graph, pos)
        centered, weights = subtract_robust_centroid(pos, graph.batch_num_nodes().cpu())
        geometric = None
        if self.input_features != "none":
            geometric = centered_input_features(graph, centered, weights, self.input_features)
        levels = self._encode(graph, pos, feat, vec, geometric)
        orients = [head(level.vec, level.size) for head, level in zip(self.heads, levels)]
        point = [orient[level.anchor] for orient, level in zip(orients, levels)]
        centroid, direction = levels[-1], centered if geometric is None else geometric[1][:, 0]
        return ScaleOrientations(
            global_orient=self._fill_empty(graph, orients[-1]),
            point=torch.cat(point, 1),
            canonical=to_local(point[-1], centered.unsqueeze(1)),
            vec=None if geometric is None else geometric[1],
            inner_products=None if geometric is None else inner_products(geometric[1]),
            projections=(centroid.vec[centroid.anchor] * direction.unsqueeze(1)).sum(2),
            centered=centered,
        )

    def vectors(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> list[Tensor]:
        """The two vectors of every orientation before Gram-Schmidt, ``(M, F, 2, 3)`` for each level."""
        levels = self._encode(graph, pos, feat, vec)
        return [head.pairs(level.vec, level.size) for head, level in zip(self.heads, levels)]

    def degenerate(
        self, graph: DGLGraph, pos: Tensor, feat: Tensor | None = None, vec: Tensor | None = None
    ) -> Tensor:
        """Booleans ``(B, F)``: which orientations of the point clouds are degenerate."""
        centroid = self._encode(graph, pos, feat, vec)[-1]
        nonempty = graph.batch_num_nodes() > 0
        result = nonempty.new_ones(len(nonempty), self.heads[-1].num_orientations)
        result[nonempty] = self.heads[-1].degenerate(centroid.vec, centroid.size)
        return result

    def _encode(
        self,
        graph: DGLGraph,
        pos: Tensor,
        feat: Tensor | None,
        vec: Tensor | None,
        geometric: tuple[Tensor, Tensor] | None = None,
    ) -> list[_Encoding]:
        """The vectors of each level, from the points to the centroid; ``geometric``: the input features."""
        check_coordinates(graph, pos)
        num_points = graph.batch_num_nodes().cpu()
        # Far from the origin the centroid could not be represented as exactly as differences of points.
        pos = subtract_centroid(pos, num_points)
        # Autocast would round coordinates to a few digits, and every axis differently.
        with torch.autocast(pos.device.type, enabled=False):
            feat, vec, size = self._encode_points(graph, pos, feat, vec, geometric)
            levels = [_Encoding(vec, size, torch.arange(len(pos), device=pos.device))]
            hierarchy = farthest_point_hierarchy(pos, self.level_sizes, self.k, num_points)
            for pool, level in zip(self.pools, hierarchy):
                if level.index is None:
                    start = tuple(copy_u_mean(level.graph, values) for values in (feat, vec))
                else:
                    start = feat[level.index], vec[level.index]
                # Where long vectors cancel, their rounding errors are larger than those of edges.
                length = vec.detach().flatten(1).norm(dim=1, keepdim=True)
                longest = copy_u_max(level.graph, length).squeeze(1)
                feat, vec = pool(level.graph, (feat, start[0]), (vec, start[1]), (pos, level.pos))
                pos = level.pos
                levels.append(_Encoding(vec, pool.vector_size() * (1 + longest), level.anchor))
        return levels

    def _encode_points(
        self,
        graph: DGLGraph,
        pos: Tensor,
        feat: Tensor | None,
        vec: Tensor | None,
        geometric: tuple[Tensor, Tensor] | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Scalars ``(N, C)`` and vectors ``(N, C, 3)`` of the points, and the length of the vectors."""
        values = self._given(pos, feat, vec)
        if geometric is None and self.input_features != "none":
            geometric = input_features(graph, pos, self.input_features)
        if geometric is not None:
            used = (values[:, self._used] for values in geometric)
            values = [torch.cat(both, 1) for both in zip(values, used)]
        if self.own is not None:
            # The vectors of the input features have a length of about 1.
            return *self.own(*values), pos.new_ones(())
        for layer in self.layers:
            values = layer(graph, *values, pos)
        return *values, self.layers[-1].vector_size()

    def _given(self, pos: Tensor, feat: Tensor | None, vec: Tensor | None) -> list[Tensor]:
        """The caller's scalars and vectors, without columns where there are none."""
        values, shapes = [feat, vec], [(len(pos), self.in_feats), (len(pos), self.in_vectors, 3)]
        for number, (name, shape) in enumerate(zip(("feat", "vec"), shapes)):
            if values[number] is None and shape[1] == 0:
                values[number] = pos.new_zeros(shape)
            check_shape(name, values[number], shape)
        check_dtype(self, *values)
        return values

    @staticmethod
    def _fill_empty(graph: DGLGraph, orient: Tensor) -> Tensor:
        """Orientations of all point clouds from those of the nonempty ones; the identity for empty ones."""
        nonempty = graph.batch_num_nodes() > 0
        if len(orient) == len(nonempty):
            return orient
        identity = torch.eye(3, dtype=orient.dtype, device=orient.device)
        result = identity.repeat(len(nonempty), orient.shape[1], 1, 1)
        result[nonempty] = orient
        return result
