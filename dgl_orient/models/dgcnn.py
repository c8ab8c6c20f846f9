"""Classification with DGCNN: plain, and with orientations."""

from __future__ import annotations

from collections.abc import Sequence

from dgl import DGLGraph
from torch import Tensor, nn

from .._validation import LevelSize, NonNegativeInt, PositiveInt, Probability, check_integers
from ..graph import knn_graph
from ..nn.frame_averaging import frame_average
from .blocks import CloudClassifier, EdgeConvs, ModelInputs, model_inputs, raw_features
from .orientation_encoder import PAPER, InitialFeats, OrientationEncoder, OrientationOptions, OrientedPoints

__all__ = ["DGCNN", "CanonicalDGCNN", "OrientedDGCNN"]

# For small data and few cores.
_LIGHT = dict(widths=(32, 32, 64, 64), embed_feats=256, head_feats=(128,), k=16, dynamic=False)


class DGCNN(nn.Module):
    r"""The classification network of `Dynamic Graph CNN for Learning on Point Clouds
    <https://arxiv.org/abs/1801.07829>`__: the plain counterpart of :class:`OrientedDGCNN`, whose input are
    coordinates.

    .. math::
        h^{\ell+1}_i = \max_{j \in N(h^\ell_i)} \sigma(M_\ell(h^\ell_j - h^\ell_i, h^\ell_i)), \qquad h^0_i =
        x_i

    Parameters
    ----------
    num_classes : int
        Number of classes.
    widths : sequence of int
        Sizes of the EdgeConv layers.
    embed_feats : int
        Size of the points' embedding before pooling.
    head_feats : sequence of int
        Sizes of the head's hidden layers.
    k : int
        Number of neighbours of a point.
    dynamic : bool
        Whether the neighbours of each layer are the nearest ones in its input features.
    dropout : float
        Dropout in the head.
    in_feats : int
        Number of further features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of further vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import DGCNN
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> DGCNN(40)(graph).shape
    torch.Size([2, 40])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        widths: Sequence[PositiveInt] = (64, 64, 128, 256),
        embed_feats: PositiveInt = 1024,
        head_feats: Sequence[PositiveInt] = (512, 256),
        k: PositiveInt = 20,
        dynamic: bool = True,
        dropout: Probability = 0.5,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.backbone = EdgeConvs(3 + in_feats + 3 * in_vectors, widths, k, dynamic=dynamic)
        self.head = CloudClassifier(sum(widths), num_classes, embed_feats, head_feats, dropout)

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> DGCNN:
        """A small network; arguments as in the constructor."""
        return cls(num_classes, **(_LIGHT | arguments))

    def forward(self, graph: DGLGraph) -> Tensor:
        """Compute the logits of the classes.

        Parameters
        ----------
        graph : DGLGraph
            Point clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.

        Returns
        -------
        Tensor
            Logits of shape ``(B, num_classes)``.
        """
        inputs = model_inputs(graph, self, self.in_feats, self.in_vectors)
        return self.head(inputs.batch_num_nodes, plain_features(self.backbone, inputs))


class CanonicalDGCNN(DGCNN):
    r"""DGCNN in the axes of the point cloud's covariance: rotation-invariant by
    :class:`~dgl_orient.nn.FrameAveraging` over their signs.

    Parameters
    ----------
    num_classes, widths, embed_feats, head_feats, k, dynamic, dropout, in_feats, in_vectors
        As in :class:`DGCNN`; the vectors rotate with the points.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import CanonicalDGCNN
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> CanonicalDGCNN(40)(graph).shape
    torch.Size([2, 40])
    """

    def forward(self, graph: DGLGraph) -> Tensor:
        """Compute the logits of the classes; arguments as in :class:`DGCNN`."""
        model_inputs(graph, self, self.in_feats, self.in_vectors)  # checks them
        return frame_average(super().forward, graph, self.training)


def plain_features(backbone: EdgeConvs, inputs: ModelInputs) -> Tensor:
    """The features of the backbone from coordinates and further features."""
    graph = knn_graph(inputs.pos, backbone.k, inputs.batch_num_nodes)
    return backbone(graph, raw_features(inputs), inputs.pos)


class OrientedDGCNN(nn.Module):
    r"""DGCNN with the orientations of `Equivariant Point Cloud Analysis via Learning Orientations for Message
    Passing <https://arxiv.org/abs/2203.14486>`__, section 4.2: rotation-invariant classification.

    .. math::
        h^1_i &= \max_{j \in N(x_i)}
            \sigma(M_0([O_{if}^\top (x_j - x_i)]_f, \; x^g_j - x^g_i, \; x^g_i)) \\
        h^{\ell+1}_i &= \max_{j \in N(h^\ell_i)} \sigma(M_\ell(h^\ell_j - h^\ell_i, h^\ell_i))

    with orientations :math:`O_{if}` of several scales, and coordinates :math:`x^g` in the point cloud's
    orientations. With ``oriented_layers`` further layers have :math:`[O_{if}^\top (x_j - x_i)]_f` too.

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
        Number of neighbours of a point.
    dynamic : bool
        Whether the neighbours of each layer are the nearest ones in its input features.
    dropout : float
        Dropout in the head.
    num_orientations : int
        Number of orientations of each scale.
    level_sizes : sequence of int or float
        Points per level of the hierarchy that gives the orientations, without the points and the centroid.
    orientation_k : int
        Number of neighbours of a point in the orientation network.
    initial_feats : {"canonical", "all_scales", "all_scales+vectors", "constant"}
        The initial features of points: coordinates in the point cloud's orientations, in those of every
        scale, these and projections on the point cloud's vectors, or none.
    orientation : OrientationOptions, optional
        Options of the orientation network :class:`~dgl_orient.GlobalOrientation`. Those not given are those
        of orientations from equivariant input features, without V-GConv layers on the points.
    oriented_layers : int
        Number of EdgeConv layers with orientations, the first ones: 1 in the paper; more than there are
        means all.
    in_feats : int
        Number of further invariant features of the points, ``ndata["feat"]`` of shape ``(N, in_feats)``.
    in_vectors : int
        Number of equivariant vectors of the points, ``ndata["vec"]`` of shape ``(N, in_vectors, 3)``.

    Examples
    --------
    >>> import torch, dgl_orient
    >>> from dgl_orient.models import OrientedDGCNN
    >>> graph = dgl_orient.point_cloud(torch.rand(300, 3), [100, 200])
    >>> OrientedDGCNN(40)(graph).shape
    torch.Size([2, 40])
    >>> graph.ndata["feat"] = torch.rand(300, 3)  # colours
    >>> OrientedDGCNN.light(8, in_feats=3)(graph).shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        num_classes: PositiveInt,
        widths: Sequence[PositiveInt] = (64, 64, 128, 256),
        embed_feats: PositiveInt = 1024,
        head_feats: Sequence[PositiveInt] = (512, 256),
        k: PositiveInt = 20,
        dynamic: bool = True,
        dropout: Probability = 0.5,
        num_orientations: PositiveInt = 2,
        level_sizes: Sequence[LevelSize] = (),
        orientation_k: PositiveInt = 20,
        initial_feats: InitialFeats = "all_scales+vectors",
        orientation: OrientationOptions | None = None,
        oriented_layers: PositiveInt = 1,
        in_feats: NonNegativeInt = 0,
        in_vectors: NonNegativeInt = 0,
    ) -> None:
        super().__init__()
        check_integers(orientation_k=orientation_k)
        check_integers(0, in_feats=in_feats, in_vectors=in_vectors)
        self.in_feats, self.in_vectors = in_feats, in_vectors
        self.orientation_encoder = OrientationEncoder(
            num_orientations,
            level_sizes,
            orientation_k,
            initial_feats,
            in_feats,
            in_vectors,
            orientation,
        )
        num_feats, total = self.orientation_encoder.num_feats, self.orientation_encoder.num_orientations
        self.backbone = EdgeConvs(num_feats, widths, k, total, dynamic, oriented_layers)
        self.head = CloudClassifier(sum(widths), num_classes, embed_feats, head_feats, dropout)

    @classmethod
    def paper(cls, num_classes: int, **arguments: object) -> OrientedDGCNN:
        """The network of the paper, its orientations from V-GConv layers; arguments as in the constructor."""
        return cls(num_classes, **(PAPER | dict(level_sizes=(256, 64)) | arguments))

    @classmethod
    def light(cls, num_classes: int, **arguments: object) -> OrientedDGCNN:
        """A small network; arguments as in the constructor."""
        return cls(num_classes, **(_LIGHT | dict(orientation_k=16) | arguments))

    def forward(self, graph: DGLGraph) -> Tensor:
        """Compute the logits of the classes.

        Parameters
        ----------
        graph : DGLGraph
            Point clouds, as :func:`dgl_orient.point_cloud` makes them; edges are ignored.

        Returns
        -------
        Tensor
            Logits of shape ``(B, num_classes)``.
        """
        inputs = model_inputs(graph, self, self.in_feats, self.in_vectors)
        feat, _ = oriented_features(self.orientation_encoder, self.backbone, inputs)
        return self.head(inputs.batch_num_nodes, feat)


def oriented_features(
    encoder: OrientationEncoder, backbone: EdgeConvs, inputs: ModelInputs
) -> tuple[Tensor, OrientedPoints]:
    """The features of the backbone from oriented points, and these."""
    pos, batch_num_nodes, feat, vec = inputs
    points: OrientedPoints = encoder(knn_graph(pos, encoder.k, batch_num_nodes), pos, feat, vec)
    same_graph = encoder.k == backbone.k
    graph = points.graph if same_graph else knn_graph(pos, backbone.k, batch_num_nodes)
    return backbone(graph, points.feat, pos, points.orient), points
