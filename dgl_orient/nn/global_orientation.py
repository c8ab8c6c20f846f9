"""One rotation matrix for a whole cloud, and one for every scale on the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, get_args

import torch
from dgl import DGLError, DGLGraph
from dgl.ops import copy_u_max, copy_u_mean
from torch import Tensor, nn

from .._checks import check_k
from ..geometry import to_local
from ..hierarchy import check_level_sizes, farthest_point_hierarchy, subtract_centroid
from .gvp import GVP
from .input_features import InputFeatures, input_features, num_input_vectors, num_products, products
from .inputs import check_coordinates, check_positive, check_shape, check_types
from .orientation_head import OrientationHead
from .vgconv import VGConv

__all__ = ["GlobalOrientation", "ScaleOrientations"]


class ScaleOrientations(NamedTuple):
    """The orientations of all scales, at every point. B clouds, N points, L scales, F orientations each."""

    global_orient: Tensor  #: (B, F, 3, 3) of the clouds
    point: Tensor  #: (N, L * F, 3, 3) of every scale, the points' own first and the cloud's last
    canonical: Tensor  #: (N, F, 3) coordinates seen from the cloud's orientations, O_glob^T (x - x̄)
    products: Tensor | None  #: (N, num_products) of the points' own vectors, with ``input_features``
    along: Tensor  #: (N, C) how far the points lie along the vectors from which the cloud's orientations come


class _Encoded(NamedTuple):
    """What is known of a level."""

    vec: Tensor  # (M, C, 3) its points' vectors
    size: Tensor  # () or (M,) how long they are where nothing cancels
    anchor: Tensor  # (N,) which of them every point of the clouds takes


class GlobalOrientation(nn.Module):
    r"""Global orientations of `Equivariant Point Cloud Analysis via Learning Orientations for Message
    Passing <https://arxiv.org/abs/2203.14486>`__, section 4.1, from a hierarchy over the cloud

    .. math::
        X \supset X^1 \supset \ldots \supset \{\bar x\}

    V-GConv layers run on the points themselves, then from each level to the next, where the neighbours of a
    point are looked for in the level below; those of the centroid are all points of the level below. The
    vectors of the centroid give :math:`O_{glob}`, and those of the other levels give orientations of
    coarser and coarser neighbourhoods, which each point takes from its nearest point of that level. The
    centroid's features begin as the mean of the level below.

    Clouds are told apart by the graph's batch information, which some of DGL's functions (``add_self_loop``
    among them) do not keep.

    A symmetric cloud may leave axes degenerate, and an empty one leaves all of them: there fixed axes take
    their place, which cannot turn with the cloud; :meth:`degenerate` tells for which clouds. An *exactly*
    symmetric cloud also has points at equal distances, between which rounding decides which are sampled, and
    so what the orientation is; sampled surfaces have none.

    The levels below the centroid give orientations only in :meth:`scales`; a training that uses
    :meth:`forward` alone leaves their parameters (``heads``) without gradients.

    Parameters
    ----------
    num_orientations : int
        How many orientations F each scale gets.
    level_sizes : sequence of int or float
        The levels between the points and the centroid, as in
        :func:`~dgl_orient.hierarchy.farthest_point_hierarchy`.
    k : int
        Neighbours of each point in the level below.
    in_feats, in_vectors : int
        Numbers of invariant scalars and of equivariant vectors the points come with.
    hidden_feats, hidden_vectors : int
        Sizes of the layers.
    num_layers : int
        How many V-GConv layers run on the points, before those that lead upwards. 0 leaves a GVP of each
        point's own vectors, many times faster.
    input_features : {"none", "covariance", "covariance+normal"}
        Which of :func:`~dgl_orient.nn.input_features.input_features` the layers begin with. Orientations then
        depend little on which points were sampled.
    **conv
        Further arguments of :class:`~dgl_orient.nn.VGConv`.

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
        **conv,
    ) -> None:
        super().__init__()
        check_positive(num_orientations=num_orientations)
        check_positive(0, num_layers=num_layers)
        if input_features not in get_args(InputFeatures):
            raise DGLError(
                f"Expected input_features to be one of {', '.join(get_args(InputFeatures))}, got "
                f"{input_features!r}."
            )
        check_level_sizes(level_sizes)
        self.level_sizes, self.k, self.input_features = tuple(level_sizes), check_k(k), input_features
        #: of what is told of the points with ``input_features``
        self.num_products = num_products(num_input_vectors(input_features))
        self.in_feats, self.in_vectors, self.hidden_vectors = in_feats, in_vectors, hidden_vectors
        known = num_input_vectors(input_features)
        in_feats, in_vectors = in_feats + known, in_vectors + known
        if num_layers == 0 and in_vectors == 0:
            raise DGLError("Without layers orientations need vectors: give input_features or in_vectors.")
        hidden = (hidden_feats, hidden_feats, hidden_vectors, hidden_vectors)
        first = (in_feats, hidden_feats, in_vectors, hidden_vectors)
        self.own = GVP(*first, vector_gate=True) if num_layers == 0 else None
        self.layers = nn.ModuleList(
            VGConv(*(hidden if number else first), **conv) for number in range(num_layers)
        )
        self.pools = nn.ModuleList(VGConv(*hidden, **conv) for _ in range(len(self.level_sizes) + 1))
        self.heads = nn.ModuleList(
            OrientationHead(hidden_vectors, num_orientations) for _ in range(len(self.level_sizes) + 2)
        )

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        own = () if self.own is None else (self.own,)
        for layer in (*own, *self.layers, *self.pools, *self.heads):
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
        centroid = self._encode(graph, pos, feat, vec)[-1]
        return self._of_clouds(graph, self.heads[-1](centroid.vec, centroid.size))

    def scales(self, graph: DGLGraph, pos: Tensor, feat=None, vec=None) -> ScaleOrientations:
        """The orientations of every scale, carried to each point; arguments as in :meth:`forward`."""
        known = self._input_features(graph, pos)
        encoded = self._encode(graph, pos, feat, vec, known)
        frames = [head(level.vec, level.size) for head, level in zip(self.heads, encoded)]
        point = [frame[level.anchor] for frame, level in zip(frames, encoded)]
        centre, centroid = subtract_centroid(pos, graph.batch_num_nodes().cpu()), encoded[-1]
        place = centre if known is None else known[1][:, 0]
        return ScaleOrientations(
            global_orient=self._of_clouds(graph, frames[-1]),
            point=torch.cat(point, 1),
            canonical=to_local(point[-1], centre.unsqueeze(1)),
            products=known and products(known[1]),
            along=(centroid.vec[centroid.anchor] * place.unsqueeze(1)).sum(2),
        )

    def vectors(self, graph: DGLGraph, pos: Tensor, feat=None, vec=None) -> list[Tensor]:
        """The two vectors of every orientation before Gram-Schmidt, ``(M, F, 2, 3)`` for each level."""
        encoded = self._encode(graph, pos, feat, vec)
        return [head.pairs(level.vec, level.size) for head, level in zip(self.heads, encoded)]

    def degenerate(self, graph: DGLGraph, pos: Tensor, feat=None, vec=None) -> Tensor:
        """Booleans ``(B, F)``: which of the clouds' orientations the geometry does not determine."""
        centroid = self._encode(graph, pos, feat, vec)[-1]
        present = graph.batch_num_nodes() > 0
        result = present.new_ones(len(present), self.heads[-1].num_orientations)
        result[present] = self.heads[-1].degenerate(centroid.vec, centroid.size)
        return result

    def _encode(self, graph: DGLGraph, pos: Tensor, feat, vec, known=None) -> list[_Encoded]:
        """Each level's vectors, from the points to the centroid; the cloud's vectors may be known."""
        check_coordinates(graph, pos)
        clouds = graph.batch_num_nodes().cpu()
        # Far from the origin the centroid could not be represented as exactly as the points' differences.
        pos = subtract_centroid(pos, clouds)
        # Autocast would round coordinates to a few digits, and every axis differently.
        with torch.autocast(pos.device.type, enabled=False):
            feat, vec, size = self._of_points(graph, pos, feat, vec, known)
            encoded = [_Encoded(vec, size, torch.arange(len(pos), device=pos.device))]
            for pool, level in zip(
                self.pools, farthest_point_hierarchy(pos, self.level_sizes, self.k, clouds)
            ):
                if level.index is None:
                    start = tuple(copy_u_mean(level.graph, values) for values in (feat, vec))
                else:
                    start = feat[level.index], vec[level.index]
                # Long vectors that cancel leave more of rounding than edges do.
                longest = copy_u_max(level.graph, vec.detach().flatten(1).norm(dim=1, keepdim=True)).squeeze(
                    1
                )
                feat, vec = pool(level.graph, (feat, start[0]), (vec, start[1]), (pos, level.pos))
                pos = level.pos
                encoded.append(_Encoded(vec, pool.vector_size() * (1 + longest), level.anchor))
        return encoded

    def _of_points(self, graph: DGLGraph, pos: Tensor, feat, vec, known) -> tuple[Tensor, Tensor, Tensor]:
        """The points' features ``(N, C)`` and vectors ``(N, C, 3)``, and how long vectors are."""
        values = self._given(pos, feat, vec)
        known = known or self._input_features(graph, pos)
        if known is not None:
            values = [torch.cat(both, 1) for both in zip(values, known)]
        if self.own is not None:
            # The cloud's vectors have a length of about 1.
            return *self.own(*values), pos.new_ones(())
        for layer in self.layers:
            values = layer(graph, *values, pos)
        return *values, self.layers[-1].vector_size()

    def _input_features(self, graph: DGLGraph, pos: Tensor) -> tuple[Tensor, Tensor] | None:
        return None if self.input_features == "none" else input_features(graph, pos, self.input_features)

    def _given(self, pos: Tensor, feat, vec) -> list[Tensor]:
        """The features and vectors that points come with, without columns where these are none."""
        values, shapes = [feat, vec], [(len(pos), self.in_feats), (len(pos), self.in_vectors, 3)]
        for number, (name, shape) in enumerate(zip(("feat", "vec"), shapes)):
            if values[number] is None and shape[1] == 0:
                values[number] = pos.new_zeros(shape)
            check_shape(name, values[number], shape)
        check_types(self, *values)
        return values

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
