"""The tasks of the leaderboard: their networks and trainings, what counts, and what was published."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import mean

from .. import protocols
from ..modelnet40 import recipes as modelnet40
from ..modelnet40.tables import PAPER as MODELNET40_PAPER
from ..nbody import recipes as nbody
from ..protocols import PROTOCOLS
from ..shapenetpart import recipes as shapenetpart
from ..shapenetpart.results import PAPER as PARTS_PAPER

__all__ = ["TASKS", "BoardTask"]

#: Small networks, which make many epochs in little time.
_LIGHT = {"preset": "light", "dropout": 0.1}


@dataclass(frozen=True)
class BoardTask:
    """A task of the leaderboard."""

    title: str
    #: The section ``model`` of a recipe by name of the network.
    networks: Mapping[str, Mapping[str, object]]
    #: The recipe of a network, given the section, the training, the number of epochs and the seed.
    recipe: Callable[[Mapping[str, object], str, int, int], dict[str, dict]]
    shrink: Callable[[dict[str, dict]], None]  #: makes a recipe that of a smoke test
    trainings: Mapping[str, tuple[str, ...]]  #: name to the protocols by which it is then tested
    metric: str  #: of the tests
    scale: float  #: by which scores are multiplied
    digits: int  #: of scores
    largest: bool  #: whether the best score is the largest
    minutes: float  #: default CPU minutes of a training
    #: A network with a worse validation metric than this has failed to train.
    least: float
    published: Mapping[str, Mapping[str, float]]  #: network to protocol to score
    protocol: str  #: by which networks are sorted


def _light(*names: str) -> dict[str, dict[str, object]]:
    return {name: {"name": name, **_LIGHT} for name in names}


def _named(networks: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, object]]:
    return {name: {"name": name, **section} for name, section in networks.items()}


def _figures(protocols_of_row: tuple[str, ...], rows: Mapping[str, tuple[float, ...]]) -> dict[str, dict]:
    return {name: dict(zip(protocols_of_row, row)) for name, row in rows.items()}


_ALL = ("z/z", "z/so3", "so3/so3")
_PLAIN = ("pointnet", "pointnet2", "pointcnn", "shellnet")
_INVARIANT = ("riconv", "gcconv")
_VECTORS = ("vn-pointnet", "vn-dgcnn")


def _nbody_recipe(model: Mapping[str, object], train: str, epochs: int, seed: int) -> dict[str, dict]:
    return nbody.base_recipe(train, model["name"], seed, epochs)


#: By name on the command line.
TASKS: dict[str, BoardTask] = {
    "cls": BoardTask(
        title="ModelNet40, instance accuracy in percent",
        networks=_light(*_PLAIN, "rscnn", *_INVARIANT, "riframework", *_VECTORS)
        | _named(modelnet40.NETWORKS["cls"])
        | {"oriented-pointnet2": {"name": "oriented-pointnet2", "dropout": 0.2}},
        recipe=partial(modelnet40.base_recipe, "cls"),
        shrink=protocols.shrink,
        trainings=PROTOCOLS,
        metric="accuracy",
        scale=100,
        digits=1,
        largest=True,
        minutes=120,
        least=0.5,
        published=_figures(
            _ALL,
            {
                "pointnet": (85.9, 19.6, 74.7),
                "pointnet2": (91.8, 28.4, 85.0),
                "pointcnn": (92.5, 41.2, 84.5),
                "shellnet": (93.1, 19.9, 87.8),
                "rscnn": (90.3, 48.7, 82.6),
                "riconv": (86.5, 86.4, 86.4),
                "gcconv": (89.0, 89.1, 89.2),
                "riframework": (89.4, 89.4, 89.3),
                "vn-pointnet": (77.5, 77.5, 77.2),
                "vn-dgcnn": (89.5, 89.5, 90.2),
                **MODELNET40_PAPER["cls"],
            },
        ),
        protocol="z/so3",
    ),
    "part": BoardTask(
        title="ShapeNet-Part, class mIoU in percent",
        networks=_light(*_PLAIN, *_INVARIANT, "riframework", *_VECTORS) | _named(shapenetpart.NETWORKS),
        recipe=shapenetpart.base_recipe,
        shrink=protocols.shrink,
        trainings=PROTOCOLS,
        metric="class_miou",
        scale=100,
        digits=1,
        largest=True,
        minutes=120,
        least=0.5,
        published=_figures(
            _ALL[1:],
            {
                "pointnet": (37.8, 74.4),
                "pointnet2": (48.2, 76.7),
                "pointcnn": (34.7, 71.4),
                "shellnet": (47.2, 77.0),
                "riconv": (75.3, 75.3),
                "gcconv": (77.2, 77.3),
                "riframework": (79.2, 79.4),
            },
        )
        | {
            name: {protocol: round(mean(values), 1) for protocol, values in figures.items()}
            for name, figures in PARTS_PAPER.items()
        },
        protocol="z/so3",
    ),
    "normals": BoardTask(
        title="ModelNet40, mean 1 - cos between predicted and true normals",
        networks=_light(*_PLAIN, *_INVARIANT, *_VECTORS) | _named(modelnet40.NETWORKS["normals"]),
        recipe=partial(modelnet40.base_recipe, "normals"),
        shrink=protocols.shrink,
        trainings=PROTOCOLS,
        metric="normal_error",
        scale=1,
        digits=3,
        largest=False,
        minutes=120,
        least=0.6,
        published=_figures(
            _ALL,
            {
                "pointnet2": (0.34, 0.81, 0.55),
                "riconv": (1.33, 1.30, 1.30),
                "gcconv": (0.42, 0.44, 0.42),
                **MODELNET40_PAPER["normals"],
            },
        ),
        protocol="z/so3",
    ),
    "nbody": BoardTask(
        title="N-body, mean squared error",
        networks={
            name: {"name": name}
            for name in ("linear", "gnn", "tfn", "se3-transformer", "egnn", "oriented-nbody")
        },
        recipe=_nbody_recipe,
        shrink=nbody.shrink,
        trainings={"n10": ("n10",), "n20": ("n20",)},
        metric="mse",
        scale=1,
        digits=5,
        largest=False,
        minutes=60,
        least=0.1,
        published=_figures(
            ("n10", "n20"),
            {
                "linear": (0.339, 0.408),
                "gnn": (0.183, 0.256),
                "se3-transformer": (0.351, 0.371),
                "tfn": (0.236, 0.273),
                "egnn": (0.126, 0.212),
                "oriented-nbody": (0.103, 0.206),
            },
        ),
        protocol="n10",
    ),
}
