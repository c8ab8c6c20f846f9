"""Answers for every point: parts, or vectors such as normals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from ..nn import EquivariantReadout
from ..nn.inputs import check_positive, check_shape
from .blocks import EdgeConvs, PointwiseMLP, check_head, clouds_of, pool
from .orientation_encoder import OrientationEncoder

__all__ = ["DGCNNSeg", "OrientedDGCNNSeg"]

OUT = ("labels", "vectors")

# For small data and few cores.
_LIGHT = dict(widths=(32, 32, 32), embed_feats=128, head_feats=(128, 64), k=16, dynamic=False)


class _Segmentation(nn.Module, ABC):
    """What both networks have: from a backbone's features to answers.

    A network makes its backbone, then calls :meth:`_add_head`, and has :meth:`_features`.
    """

    def _add_head(
        self,
        num_outputs: int,
        out: str,
        num_categories: int,
        in_feats: int,
        embed_feats: int,
        head_feats: Sequence[int],
        dropout: float,
        num_orientations: int,
    ) -> None:
        if out not in OUT:
            raise DGLError(f"Expected out to be one of {', '.join(OUT)}, got {out!r}.")
        check_positive(0, num_categories=num_categories)
        check_head(head_feats, dropout, num_outputs=num_outputs, embed_feats=embed_feats)
        self.num_categories = num_categories
        self.embed = PointwiseMLP(in_feats, embed_feats)
        of_cloud = 2 * embed_feats + num_categories
        self.head = PointwiseMLP(in_feats + of_cloud, *head_feats, dropout=dropout)
        last = self.head.out_feats
        self.labels = nn.Linear(last, num_outputs) if out == "labels" else None
        self.vectors = EquivariantReadout(last, num_outputs, num_orientations) if out == "vectors" else None

    @abstractmethod
    def _features(self, pos: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        """The points' features and the orientations in which their vectors are read."""

    def forward(self, graph: DGLGraph, category: Tensor | None = None) -> Tensor:
        """Compute the answers.

        Parameters
        ----------
        graph : DGLGraph
            Clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.
        category : Tensor, optional
            The category of each cloud, ``(B,)``, where ``num_categories`` is not 0.

        Returns
        -------
        Tensor
            Logits ``(N, num_outputs)``, or vectors ``(N, num_outputs, 3)``.
        """
        pos, sizes = clouds_of(graph, self)
        feat, orient = self._features(pos, sizes)
        of_cloud = [pool(sizes, self.embed(feat)), *self._one_hot(category, sizes, feat)]
        feat = self.head.of_points_in_clouds(feat, torch.cat(of_cloud, 1), sizes)
        return self.labels(feat) if self.vectors is None else self.vectors(feat, orient)

    def _one_hot(self, category: Tensor | None, sizes: Tensor, like: Tensor) -> list[Tensor]:
        if self.num_categories == 0:
            if category is not None:
                raise DGLError("This network has num_categories=0, but a category was given; leave it out.")
            return []
        check_shape("category, an integer for each cloud,", category, tuple(sizes.shape))
        if category.is_floating_point() or not bool(
            ((category >= 0) & (category < self.num_categories)).all()
        ):
            raise DGLError(f"Expected categories to be integers from 0 to {self.num_categories - 1}.")
        return [nn.functional.one_hot(category.long(), self.num_categories).to(like.dtype)]


class DGCNNSeg(_Segmentation):
    r"""The segmentation network of `Dynamic Graph CNN for Learning on Point Clouds
    <https://arxiv.org/abs/1801.07829>`__: the plain twin of :class:`OrientedDGCNNSeg`, which sees
    coordinates.

    The points' features of all EdgeConv layers, together with those of the whole cloud, give

    .. math::
        y_i = \mathrm{MLP}(h_i)

    that is, labels, or vectors as three numbers each.

    Parameters
    ----------
    num_outputs : int
        Number of labels, or of vectors.
    out : {"labels", "vectors"}
        Which of them.
    num_categories : int
        Number of categories of whole clouds, one of which is then told for every cloud; 0 for none.
    widths, embed_feats, head_feats, k, dynamic, dropout
        As in :class:`~dgl_orient.models.DGCNN`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import DGCNNSeg
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> DGCNNSeg(50, num_categories=16)(clouds, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    >>> DGCNNSeg.light(1, out="vectors")(clouds).shape
    torch.Size([300, 1, 3])
    """

    def __init__(
        self,
        num_outputs: int,
        out: str = "labels",
        num_categories: int = 0,
        widths: Sequence[int] = (64, 64, 64),
        embed_feats: int = 1024,
        head_feats: Sequence[int] = (256, 256, 128),
        k: int = 20,
        dynamic: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.backbone = EdgeConvs(3, widths, k, dynamic=dynamic)
        self._add_head(num_outputs, out, num_categories, sum(widths), embed_feats, head_feats, dropout, 1)

    @classmethod
    def light(cls, num_outputs: int, **arguments) -> DGCNNSeg:
        """A small one; arguments as in the constructor."""
        return cls(num_outputs, **(_LIGHT | arguments))

    def _features(self, pos: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        # All points have the world's orientation: what is read in it is the MLP's own three numbers.
        world = torch.eye(3, dtype=pos.dtype, device=pos.device).expand(len(pos), 1, 3, 3)
        return self.backbone(pos, sizes, pos), world


class OrientedDGCNNSeg(_Segmentation):
    r"""DGCNN's segmentation network with the orientations of `Equivariant Point Cloud Analysis via Learning
    Orientations for Message Passing <https://arxiv.org/abs/2203.14486>`__, sections 4.2 and 4.3.

    The points' features of all EdgeConv layers, together with those of the whole cloud, give

    .. math::
        y_i = \mathrm{MLP}(h_i) \qquad \text{or} \qquad e_i = \frac{1}{F} \sum_f O_{if} \, \mathrm{MLP}_f(h_i)

    that is, labels that do not depend on the pose, or vectors that turn with the cloud.

    Parameters
    ----------
    num_outputs, out, num_categories, widths, embed_feats, head_feats, k, dynamic, dropout
        As in :class:`DGCNNSeg`.
    num_orientations, level_sizes, orientation_k, initial_feats, orientation, oriented_layers
        As in :class:`~dgl_orient.models.OrientedDGCNN`.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedDGCNNSeg
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> OrientedDGCNNSeg(50, num_categories=16)(clouds, torch.tensor([3, 11])).shape
    torch.Size([300, 50])
    >>> OrientedDGCNNSeg(1, out="vectors")(clouds).shape
    torch.Size([300, 1, 3])
    """

    def __init__(
        self,
        num_outputs: int,
        out: str = "labels",
        num_categories: int = 0,
        widths: Sequence[int] = (64, 64, 64),
        embed_feats: int = 1024,
        head_feats: Sequence[int] = (256, 256, 128),
        k: int = 20,
        dynamic: bool = True,
        dropout: float = 0.5,
        num_orientations: int = 4,
        level_sizes: Sequence[int | float] = (256, 64),
        orientation_k: int = 24,
        initial_feats: str = "canonical",
        orientation: Mapping[str, object] | None = None,
        oriented_layers: int = 1,
    ) -> None:
        super().__init__()
        check_positive(orientation_k=orientation_k)
        self.orientation_encoder = OrientationEncoder(
            num_orientations, level_sizes, orientation_k, initial_feats, **(orientation or {})
        )
        total = self.orientation_encoder.num_orientations
        self.backbone = EdgeConvs(
            self.orientation_encoder.num_feats, widths, k, total, dynamic, oriented_layers
        )
        self._add_head(num_outputs, out, num_categories, sum(widths), embed_feats, head_feats, dropout, total)

    @classmethod
    def light(cls, num_outputs: int, **arguments) -> OrientedDGCNNSeg:
        """A small one; arguments as in the constructor."""
        small = _LIGHT | dict(num_orientations=2, level_sizes=(64,), orientation_k=16)
        return cls(num_outputs, **(small | arguments))

    def _features(self, pos: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
        orient, feat, _, near = self.orientation_encoder(pos, sizes)
        graph = near if self.orientation_encoder.k == self.backbone.k else None
        return self.backbone(pos, sizes, feat, orient, graph), orient
