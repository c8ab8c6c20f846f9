"""Figures that others have published, for comparison."""

from __future__ import annotations

__all__ = ["CITATION", "LATER", "PAPER", "PROTOCOLS"]

#: How clouds are turned in training / in test.
PROTOCOLS = ("z/z", "z/so3", "so3/so3")

CITATION = (
    "*Equivariant Point Cloud Analysis via Learning Orientations for Message Passing* (Luo et al., CVPR "
    "2022, [arXiv:2203.14486](https://arxiv.org/abs/2203.14486))"
)

#: By task, network and protocol: instance accuracy in percent, or mean 1 - cos of normals.
PAPER: dict[str, dict[str, tuple[float, float, float]]] = {
    "cls": {
        "oriented-dgcnn": (88.4, 88.4, 88.9),
        "oriented-rscnn": (87.6, 87.6, 87.5),
        "dgcnn": (90.3, 33.8, 88.6),
    },
    "normals": {"oriented-dgcnn": (0.20, 0.20, 0.20), "dgcnn": (0.29, 0.32, 0.22)},
}

#: The best accuracy that later work reports from coordinates alone, in any pose.
LATER = 91.9
