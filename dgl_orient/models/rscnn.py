"""Classification with RS-CNN: plain, and with orientations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from .._checks import check_k
from ..hierarchy import check_level_sizes, farthest_point_hierarchy, subtract_centroid
from ..nn import OrientedRSConv
from ..nn.inputs import check_positive, check_sizes
from .blocks import PointwiseMLP, check_head, clouds_of
from .orientation_encoder import OrientationEncoder

__all__ = ["OrientedRSCNN", "RSCNN"]

# For small data and few cores.
_LIGHT = dict(widths=(16, 32, 64, 128), head_feats=(128,), level_sizes=(128, 32), k=(16, 16))


class RSConvs(nn.Module):
    """RS-CNN's stack of RSConv layers, Eqs. 10 to 12: up a farthest-point hierarchy to one point a cloud.

    Parameters
    ----------
    in_feats : int
        Size of the points' first features; 0 lets all begin with the same learned ones.
    widths : sequence of int
        Sizes of the first features, which an affine map makes of the given ones, and of the layers'.
    level_sizes : sequence of int or float
        Sizes of the levels between the points and the cloud, one fewer than layers.
    k : sequence of int
        Neighbours of a point of each level in the level below.
    num_orientations : int
        Orientations of a point.
    global_orientations : int
        Orientations of a cloud.
    """

    def __init__(
        self,
        in_feats: int,
        widths: Sequence[int],
        level_sizes: Sequence[int | float],
        k: Sequence[int],
        num_orientations: int = 1,
        global_orientations: int = 1,
    ) -> None:
        super().__init__()
        check_level_sizes(level_sizes)
        check_sizes(widths=widths)
        k = [check_k(number) for number in (k if isinstance(k, Sequence) else [k] * len(level_sizes))]
        if len(level_sizes) != len(k) or len(widths) != len(level_sizes) + 2:
            raise DGLError(
                f"Expected a k for each level and two more widths than levels, got {len(level_sizes)} "
                f"levels, {len(k)} k and {len(widths)} widths."
            )
        self.level_sizes, self.k = tuple(level_sizes), tuple(k)
        self.lift = nn.Linear(max(in_feats, 1), widths[0])
        orientations = [num_orientations] * len(level_sizes) + [global_orientations]
        self.convs = nn.ModuleList(
            OrientedRSConv(a, b, number) for a, b, number in zip(widths, widths[1:], orientations)
        )

    def forward(
        self,
        pos: Tensor,
        sizes: Tensor,
        feat: Tensor | None,
        orient: Tensor | None,
        global_orient: Tensor | None,
    ) -> Tensor:
        """The clouds' features, ``(B, widths[-1])``; 0 for a cloud without points."""
        feat = self.lift(pos.new_ones(len(pos), 1) if feat is None else feat)
        present = sizes > 0
        # Far from the origin the centroid could not be represented as exactly as the points' differences.
        pos = subtract_centroid(pos, sizes.cpu())
        hierarchy = farthest_point_hierarchy(pos, self.level_sizes, self.k, sizes)
        for conv, level in zip(self.convs, hierarchy):
            if level.index is None:
                orient = None if global_orient is None else global_orient[present]
            elif orient is not None:
                orient = orient[level.index]
            feat = conv(level.graph, feat, (pos, level.pos), orient)
            pos = level.pos
        result = feat.new_zeros(len(sizes), feat.shape[1])
        return result.index_add(0, present.nonzero().flatten(), feat)


class RSCNN(nn.Module):
    """The classification network of `Relation-Shape Convolutional Neural Network for Point Cloud Analysis
    <https://arxiv.org/abs/1904.07601>`__ in its form with one scale of neighbourhoods: the plain twin of
    :class:`OrientedRSCNN`, which sees coordinates.

    Parameters
    ----------
    num_classes : int
        Number of outputs.
    widths : sequence of int
        Sizes of the first features and of those of the layers.
    level_sizes : sequence of int or float
        Sizes of the levels between the points and the cloud.
    k : sequence of int
        Neighbours of a point of each level in the level below.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    dropout : float
        Dropout in the head.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import RSCNN
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> RSCNN(40)(clouds).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: int,
        widths: Sequence[int] = (32, 128, 512, 1024),
        level_sizes: Sequence[int | float] = (512, 128),
        k: Sequence[int] = (48, 64),
        head_feats: Sequence[int] = (512, 256),
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        check_head(head_feats, dropout, num_classes=num_classes)
        self.backbone = RSConvs(3, widths, level_sizes, k)
        self.head = PointwiseMLP(widths[-1], *head_feats, dropout=dropout)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def light(cls, num_classes: int, **arguments) -> RSCNN:
        """A small one; arguments as in the constructor."""
        return cls(num_classes, **(_LIGHT | arguments))

    def forward(self, graph: DGLGraph) -> Tensor:
        """Compute the classes' logits.

        Parameters
        ----------
        graph : DGLGraph
            Clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.

        Returns
        -------
        Tensor
            Logits of shape ``(B, num_classes)``.
        """
        pos, sizes = clouds_of(graph, self)
        return self.logits(self.head(self.backbone(pos, sizes, pos, None, None)))


class OrientedRSCNN(nn.Module):
    """RS-CNN with the orientations of `Equivariant Point Cloud Analysis via Learning Orientations for Message
    Passing <https://arxiv.org/abs/2203.14486>`__, section 4.2: its answer does not depend on the pose.

    Parameters
    ----------
    num_classes, widths, level_sizes, k, head_feats, dropout
        As in :class:`RSCNN`.
    num_orientations : int
        Orientations of each scale.
    orientation_k : int
        Neighbours of a point in the network that learns orientations.
    initial_feats : {"canonical", "all_scales", "all_scales+vectors", "constant"}
        The points' first features: their coordinates in the cloud's orientations, in those of every scale,
        these and their places along the cloud's vectors, or a constant.
    orientation : mapping, optional
        Further arguments of :class:`~dgl_orient.GlobalOrientation`: ``hidden_feats``, ``message_layers``,
        ``dropout`` and others.
    orientation_level_sizes : sequence of int or float, optional
        The scales between the points and the cloud; those of ``level_sizes`` if not given.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedRSCNN
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> OrientedRSCNN(40)(clouds).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: int,
        widths: Sequence[int] = (32, 128, 512, 1024),
        level_sizes: Sequence[int | float] = (512, 128),
        k: Sequence[int] = (48, 64),
        head_feats: Sequence[int] = (512, 256),
        dropout: float = 0.5,
        num_orientations: int = 4,
        orientation_k: int = 24,
        initial_feats: str = "canonical",
        orientation: Mapping[str, object] | None = None,
        orientation_level_sizes: Sequence[int | float] | None = None,
    ) -> None:
        super().__init__()
        check_head(head_feats, dropout, num_classes=num_classes)
        check_positive(orientation_k=orientation_k)
        orientation_level_sizes = level_sizes if orientation_level_sizes is None else orientation_level_sizes
        self.orientation_encoder = OrientationEncoder(
            num_orientations, orientation_level_sizes, orientation_k, initial_feats, **(orientation or {})
        )
        of_point = self.orientation_encoder.num_orientations
        self.backbone = RSConvs(
            self.orientation_encoder.num_feats, widths, level_sizes, k, of_point, num_orientations
        )
        self.head = PointwiseMLP(widths[-1], *head_feats, dropout=dropout)
        self.logits = nn.Linear(self.head.out_feats, num_classes)

    @classmethod
    def light(cls, num_classes: int, **arguments) -> OrientedRSCNN:
        """A small one; arguments as in the constructor."""
        small = _LIGHT | dict(num_orientations=2, orientation_k=16)
        return cls(num_classes, **(small | arguments))

    def forward(self, graph: DGLGraph) -> Tensor:
        """Compute the classes' logits.

        Parameters
        ----------
        graph : DGLGraph
            Clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.

        Returns
        -------
        Tensor
            Logits of shape ``(B, num_classes)``.
        """
        pos, sizes = clouds_of(graph, self)
        oriented = self.orientation_encoder(pos, sizes)
        feat = self.backbone(pos, sizes, oriented.feat, oriented.orient, oriented.global_orient)
        return self.logits(self.head(feat))
