"""How unlike the training data a cloud is: "none of these classes" as a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from dgl import DGLError
from torch import Tensor

from .._plain import is_plain

__all__ = ["Clouds", "Novelty"]

#: Features, logits and labels of clouds.
Clouds = tuple[Tensor, Tensor, Tensor]

_TENSORS = ("means", "precision", "center", "overall_precision", "standard")


@dataclass(frozen=True)
class Novelty:
    r"""A score of the features h and logits y of clouds, 0 for the median of known ones, 1 at the threshold.

    It is the sum of the relative Mahalanobis distance, to the nearest mean :math:`\mu_c` of a class with the
    covariance within classes, less that to the overall mean with the overall covariance, and of the energy,

    .. math:: d(h) = \min_c (h - \mu_c)^\top \Sigma^{-1} (h - \mu_c)
        - (h - \bar\mu)^\top \bar\Sigma^{-1} (h - \bar\mu), \qquad e(y) = -\log \sum_c \exp y_c,

    each standardized, then mapped linearly. Means and covariances are those of training clouds, by
    scikit-learn's :class:`~sklearn.covariance.LedoitWolf`; the threshold is a quantile over clouds that were
    not trained on.
    """

    means: Tensor  #: (C, D) of the classes
    precision: Tensor  #: (D, D) within classes
    center: Tensor  #: (D,)
    overall_precision: Tensor  #: (D, D)
    standard: Tensor  #: (2, 2), mean and standard deviation of both terms over known clouds
    median: float  #: of known clouds, before shifting and scaling
    threshold: float  #: above which a cloud is unknown
    rates: Mapping[str, object]  #: false alarms and detection, as they were measured

    def __call__(self, features: Tensor, logits: Tensor) -> Tensor:
        """The scores ``(B,)`` of clouds with features ``(B, D)`` and logits ``(B, C)``; unknown above 1."""
        if features.shape[1:] != self.center.shape or logits.shape[1:] != self.means.shape[:1]:
            raise DGLError(
                f"The novelty of this model was calibrated for {len(self.center)} features and "
                f"{len(self.means)} classes, but its network has {features.shape[1]} and {logits.shape[1]}; "
                f"calibrate it again."
            )
        return (self._sum(self._terms(features, logits)) - self.median) / (self.threshold - self.median)

    def _terms(self, features: Tensor, logits: Tensor, left_out: Tensor | None = None) -> Tensor:
        """Relative distance and energy ``(B, 2)``, where a class may be left out for each cloud."""
        features, logits = features.double().cpu(), logits.double().cpu()
        apart = features.unsqueeze(1) - self.means.double()  # (B, C, D)
        within = torch.einsum("bcd,de,bce->bc", apart, self.precision.double(), apart)
        if left_out is not None:
            own = torch.nn.functional.one_hot(left_out, len(self.means)).bool()
            within, logits = within.masked_fill(own, torch.inf), logits.masked_fill(own, -torch.inf)
        apart = features - self.center.double()
        overall = torch.einsum("bd,de,be->b", apart, self.overall_precision.double(), apart)
        return torch.stack([within.amin(1) - overall, -logits.logsumexp(1)], 1)

    def _sum(self, terms: Tensor) -> Tensor:
        mean, deviation = self.standard.double()
        return ((terms - mean) / deviation).sum(1)

    @classmethod
    def fit(
        cls,
        train: Clouds,
        known: Clouds,
        novel: tuple[Tensor, Tensor] | None = None,
        false_alarms: float = 0.05,
    ) -> Novelty:
        """Calibrate the score.

        Parameters
        ----------
        train : tuple of Tensor
            Features ``(B, D)``, logits ``(B, C)`` and labels ``(B,)`` of training clouds of all C classes.
        known : tuple of Tensor
            Those of clouds of the same classes that were not trained on; they give the threshold.
        novel : tuple of Tensor, optional
            Features and logits of clouds of other classes, to measure how many are detected.
        false_alarms : float
            The fraction of known clouds that are called unknown.

        Examples
        --------
        >>> import torch
        >>> from dgl_orient.zoo.novelty import Novelty
        >>> _ = torch.manual_seed(0)
        >>> labels = torch.arange(400) % 2
        >>> features = torch.randn(400, 8) + 9 * labels[:, None]
        >>> logits = features[:, :2]
        >>> train, known = zip(*(each.split(200) for each in (features, logits, labels)))
        >>> novelty = Novelty.fit(train, known)
        >>> (novelty(torch.full((1, 8), -20.0), torch.zeros(1, 2)) > 1).item()
        True
        """
        from sklearn.covariance import LedoitWolf

        features, logits, labels = train
        feat, number, num_classes = features.double().numpy(), labels.numpy(), logits.shape[1]
        if len(np.unique(number)) < num_classes:
            raise DGLError(f"Expected training clouds of all {num_classes} classes to calibrate the novelty.")
        means = np.stack([feat[number == each].mean(0) for each in range(num_classes)])
        within = LedoitWolf(assume_centered=True).fit(feat - means[number])
        overall = LedoitWolf().fit(feat)
        arrays = (means, within.precision_, overall.location_, overall.precision_)
        tensors = [torch.as_tensor(array, dtype=torch.float32) for array in arrays]
        raw = cls(*tensors, torch.tensor([[0.0, 0.0], [1.0, 1.0]]), 0.0, 1.0, {})
        terms = raw._terms(*known[:2])
        standard = torch.stack([terms.mean(0), terms.std(0).clamp_min(1e-6)]).float()
        raw = replace(raw, standard=standard)
        score = raw._sum(terms)
        median, threshold = score.quantile(0.5).item(), score.quantile(1 - false_alarms).item()
        threshold = max(threshold, median + 1e-6)
        rates: dict[str, object] = {"false_alarms": false_alarms, "num_known": len(score)}
        if num_classes > 1:
            rates["classes_left_out"] = _rates(score, raw._sum(raw._terms(*known)), threshold)
        if novel is not None:
            rates["other_classes"] = _rates(score, raw._sum(raw._terms(*novel)), threshold)
        return replace(raw, median=median, threshold=threshold, rates=rates)

    def state(self) -> dict[str, object]:
        """What a checkpoint stores of it."""
        return {name: getattr(self, name) for name in (*_TENSORS, "median", "threshold")} | {
            "rates": dict(self.rates)
        }

    @classmethod
    def of(cls, state: object) -> Novelty:
        """From what a checkpoint stores; raise unless it is what :meth:`state` returned."""
        state = state if isinstance(state, Mapping) else {}
        tensors = [state.get(name) for name in _TENSORS]
        numbers = [state.get(name) for name in ("median", "threshold")]
        is_right = all(isinstance(each, Tensor) and each.dtype == torch.float32 for each in tensors)
        if is_right:
            size = tensors[2].numel()
            number = len(tensors[0]) if tensors[0].ndim else 0
            shapes = [(number, size), (size, size), (size,), (size, size), (2, 2)]
            is_right = [tuple(each.shape) for each in tensors] == shapes and number > 0
            is_right = is_right and all(bool(each.isfinite().all()) for each in tensors)
        is_right = is_right and all(isinstance(each, float) for each in numbers) and numbers[0] < numbers[1]
        if not is_right or not isinstance(state.get("rates"), dict) or not is_plain(state["rates"]):
            raise DGLError("the novelty is no score of features; calibrate it again")
        return cls(*tensors, *numbers, state["rates"])


def _rates(known: Tensor, novel: Tensor, threshold: float) -> dict[str, float | int]:
    """How well scores of novel clouds are separated from those of known ones."""
    from sklearn.metrics import roc_auc_score

    truth = np.repeat([0, 1], [len(known), len(novel)])
    auroc = roc_auc_score(truth, torch.cat([known, novel]).numpy())
    detection = (novel > threshold).double().mean().item()
    return {"auroc": round(float(auroc), 4), "detection": round(detection, 4), "num_clouds": len(novel)}
