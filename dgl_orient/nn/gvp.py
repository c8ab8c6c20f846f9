"""The geometric vector perceptron."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .._validation import check_size_pair
from ..geometry import norm

__all__ = ["GVP", "Activation", "tanh"]

Activation = Callable[[Tensor], Tensor]


class GVP(nn.Module):
    r"""Geometric vector perceptron, from `Learning from Protein Structure with Geometric Vector Perceptrons
    <https://arxiv.org/abs/2009.01411>`__, Eqs. 18 and 19 of the paper.

    .. math::
        V_h = W_h V, \quad
        s' = \sigma(W_s [s, \|V_h\|] + b), \quad
        V' = \sigma_v(\cdot) \odot W_\mu V_h

    where the vectors are scaled by :math:`\sigma_v(\|W_\mu V_h\|)`, or with ``vector_gate`` by
    :math:`\sigma_v(W_g s' + b_g)`. Scalars are invariant and vectors equivariant, because vectors are only
    combined linearly and scaled by invariant numbers.

    Parameters
    ----------
    in_sizes : tuple of int
        Numbers of input scalars and vectors.
    out_sizes : tuple of int
        Numbers of output scalars and vectors.
    hidden_vectors : int, optional
        Number of hidden vectors :math:`V_h`; by default the larger number of input and output vectors.
    activation : callable, optional
        :math:`\sigma`; None is the identity.
    vector_activation : callable, optional
        :math:`\sigma_v`; None is no scaling.
    vector_gate : bool
        Scale the vectors by the new scalars and not by their own norm.

    Examples
    --------
    >>> import torch
    >>> from dgl_orient.nn import GVP
    >>> feat, vec = GVP((8, 4), (16, 2))(torch.rand(10, 8), torch.rand(10, 4, 3))
    >>> feat.shape, vec.shape
    (torch.Size([10, 16]), torch.Size([10, 2, 3]))
    """

    def __init__(
        self,
        in_sizes: tuple[int, int],
        out_sizes: tuple[int, int],
        hidden_vectors: int | None = None,
        activation: Activation | None = torch.relu,
        vector_activation: Activation | None = torch.sigmoid,
        vector_gate: bool = False,
    ) -> None:
        super().__init__()
        self.in_sizes = in_feats, in_vectors = check_size_pair("in_sizes", in_sizes)
        self.out_sizes = out_feats, out_vectors = check_size_pair("out_sizes", out_sizes)
        if hidden_vectors is None:
            hidden_vectors = max(in_vectors, out_vectors)
        self.activation, self.vector_activation = activation, vector_activation
        self.scalar = nn.Linear(in_feats + hidden_vectors, out_feats)
        self.hidden = nn.Linear(in_vectors, hidden_vectors, bias=False)
        self.vector = nn.Linear(hidden_vectors, out_vectors, bias=False)
        gated = vector_gate and vector_activation is not None
        self.gate = nn.Linear(out_feats, out_vectors) if gated else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise the parameters."""
        # Sizes are kept from layer to layer. Gates are nearly open or shut, and so differ from each other:
        # nearly equal gates would make all vectors of a node nearly parallel.
        gains = {"scalar": 2**0.5, "hidden": 1.0, "vector": 1.0, "gate": 3.0}
        for name, gain in gains.items():
            layer = getattr(self, name)
            if layer is not None and layer.weight.numel():
                nn.init.normal_(layer.weight, std=gain / layer.in_features**0.5)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def extra_repr(self) -> str:
        return f"{self.in_sizes}, {self.out_sizes}, vector_gate={self.gate is not None}"

    @property
    def is_linear(self) -> bool:
        """Whether there is no activation, so that the GVP commutes with a mean."""
        return self.activation is None and self.vector_activation is None

    def forward(self, feat: Tensor, vec: Tensor) -> tuple[Tensor, Tensor]:
        """Compute new scalars and vectors.

        Parameters
        ----------
        feat : Tensor
            Scalars of shape ``(..., in_feats)``.
        vec : Tensor
            Vectors of shape ``(..., in_vectors, 3)``.

        Returns
        -------
        tuple of Tensor
            Scalars ``(..., out_feats)`` and vectors ``(..., out_vectors, 3)``.
        """
        feat, vec = self.forward_axes_first(feat, vec.movedim(-1, 0))
        return feat, vec.movedim(0, -1)

    # Below, vectors are (3, ..., channels), the axis first: then a map of channels is one large matrix
    # product, and vectors are scaled by products with long rows.

    def forward_axes_first(self, feat: Tensor, vec: Tensor) -> tuple[Tensor, Tensor]:
        """:meth:`forward` for vectors ``(3, ..., in_vectors)``."""
        hidden = self.hidden(vec)
        return self.activate(self.scalar(torch.cat([feat, norm(hidden, dim=0)], -1)), hidden)

    def activate(self, feat: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        r"""The output from the scalars before :math:`\sigma` and from :math:`V_h`."""
        vec = self.vector(hidden)
        if self.activation is not None:
            feat = self.activation(feat)
        if self.gate is not None:
            vec = vec * self.vector_activation(self.gate(feat))
        elif self.vector_activation is not None:
            vec = vec * self.vector_activation(norm(vec, dim=0))
        return feat, vec


def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent, from the sigmoid: PyTorch's own is ten times slower on an AMD EPYC."""
    return torch.add(-1, torch.sigmoid(2 * x), alpha=2)
