"""Classification with DGCNN: plain, and with orientations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgl import DGLGraph
from torch import Tensor, nn

from ..nn.inputs import check_positive
from .blocks import CloudClassifier, EdgeConvs, clouds_of
from .orientation_encoder import OrientationEncoder

__all__ = ["DGCNN", "OrientedDGCNN"]

# For small data and few cores.
_LIGHT = dict(widths=(32, 32, 64, 64), embed_feats=256, head_feats=(128,), k=16, dynamic=False)


class DGCNN(nn.Module):
    """The classification network of `Dynamic Graph CNN for Learning on Point Clouds
    <https://arxiv.org/abs/1801.07829>`__: the plain twin of :class:`OrientedDGCNN`, which sees coordinates.

    Parameters
    ----------
    num_classes : int
        Number of outputs.
    widths : sequence of int
        Sizes of the EdgeConv layers.
    embed_feats : int
        Size of the points' embedding before pooling.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Neighbours of a point.
    dynamic : bool
        Whether neighbours are looked for among the features of each layer anew.
    dropout : float
        Dropout in the head.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import DGCNN
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> DGCNN(40)(clouds).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: int,
        widths: Sequence[int] = (64, 64, 128, 256),
        embed_feats: int = 1024,
        head_feats: Sequence[int] = (512, 256),
        k: int = 20,
        dynamic: bool = True,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.backbone = EdgeConvs(3, widths, k, dynamic=dynamic)
        self.head = CloudClassifier(sum(widths), num_classes, embed_feats, head_feats, dropout)

    @classmethod
    def light(cls, num_classes: int, **arguments) -> DGCNN:
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
        return self.head(sizes, self.backbone(pos, sizes, pos))


class OrientedDGCNN(nn.Module):
    r"""DGCNN with the orientations of `Equivariant Point Cloud Analysis via Learning Orientations for Message
    Passing <https://arxiv.org/abs/2203.14486>`__, section 4.2: its answer does not depend on the pose.

    .. math::
        h^1_i &= \max_{j \in N(x_i)}
            \sigma(M_0([O_{if}^\top (x_j - x_i)]_f, \; x^g_j - x^g_i, \; x^g_i)) \\
        h^{\ell+1}_i &= \max_{j \in N(h^\ell_i)} \sigma(M_\ell(h^\ell_j - h^\ell_i, h^\ell_i))

    with orientations :math:`O_{if}` of several scales, and coordinates :math:`x^g` seen from the cloud's own.
    With ``oriented_layers`` further layers see :math:`[O_{if}^\top (x_j - x_i)]_f` too.

    Parameters
    ----------
    num_classes, widths, embed_feats, head_feats, k, dynamic, dropout
        As in :class:`DGCNN`.
    num_orientations : int
        Orientations of each scale.
    level_sizes : sequence of int or float
        The scales between the points and the cloud.
    orientation_k : int
        Neighbours of a point in the network that learns orientations.
    initial_feats : {"canonical", "all_scales", "all_scales+vectors", "constant"}
        Whether the first layer sees coordinates in the cloud's orientations, in those of every scale, these
        and places along the cloud's vectors, or only the neighbours' coordinates.
    orientation : mapping, optional
        Further arguments of :class:`~dgl_orient.GlobalOrientation`: ``hidden_feats``, ``message_layers``,
        ``dropout`` and others.
    oriented_layers : int
        How many EdgeConv layers, the first ones, see neighbours in orientations: the paper's is 1, and more
        than there are means all.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedDGCNN
    >>> clouds = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> OrientedDGCNN(40)(clouds).shape
    torch.Size([2, 40])
    >>> OrientedDGCNN.light(8)(clouds).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        num_classes: int,
        widths: Sequence[int] = (64, 64, 128, 256),
        embed_feats: int = 1024,
        head_feats: Sequence[int] = (512, 256),
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
        self.head = CloudClassifier(sum(widths), num_classes, embed_feats, head_feats, dropout)

    @classmethod
    def light(cls, num_classes: int, **arguments) -> OrientedDGCNN:
        """A small one; arguments as in the constructor."""
        small = _LIGHT | dict(num_orientations=2, level_sizes=(64,), orientation_k=16)
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
        orient, feat, _, near = self.orientation_encoder(pos, sizes)
        graph = near if self.orientation_encoder.k == self.backbone.k else None
        return self.head(sizes, self.backbone(pos, sizes, feat, orient, graph))
