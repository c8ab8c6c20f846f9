"""The quality of a trained network's orientations, measured on its test set: numbers and a plot."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from dgl import DGLError
from torch import Tensor, nn
from tqdm import tqdm

from ..data import PointCloudDataset
from ..graph import knn_graph, point_cloud
from ..metrics.orientation import CORRUPTIONS, OrientationSample, orientation_quality
from ..models.orientation_encoder import OrientationEncoder
from ..plot.quality_figure import quality_figure
from ..plot.saving import output_path, save_any, save_text
from ..plot.seen import trace_orientations
from ..train.records import versions
from .build import Trained, data_set, load_trained

__all__ = ["view_quality"]


def view_quality(
    checkpoint: str | Path,
    out: str | Path | None = None,
    num_clouds: int = 20,
    seed: int = 0,
    progress: bool = True,
) -> list[Path]:
    """Measure a trained network's orientations beside those of a fresh one.

    The shapes are those of the network's test set, sampled twice as densely: see
    :func:`dgl_orient.metrics.orientation_quality` for what is measured.

    Parameters
    ----------
    checkpoint : str or Path
        The file ``run_0.pth`` of a training, or the name of a network that comes with this package.
    out : str or Path, optional
        The picture, .png .pdf or .svg, or a page, .html. The numbers go to a .json file of the same name.
    num_clouds : int
        How many shapes, from the first of the test set on.
    seed : int
        Of all that is drawn at random.
    progress : bool
        Whether a terminal sees a progress bar.

    Returns
    -------
    list of Path
        The files that were written.
    """
    path = output_path(out, "quality")
    if num_clouds < 1:
        raise DGLError(f"Expected at least 1 cloud to measure on, got {num_clouds}.")
    trained = load_trained(checkpoint)
    networks = {"trained": trained.model, "fresh": _fresh(trained, seed)}
    shapes = _dense_test_set(trained)
    number = min(num_clouds, len(shapes))
    found = {}
    for name, model in networks.items():
        bar = tqdm(
            _clouds(shapes, number),
            f"Measuring {name}",
            number,
            unit="shape",
            disable=None if progress else True,
        )
        found[name] = orientation_quality(_seeing(trained, model, name == "trained"), bar, seed=seed)
    recipe = trained.recipe
    title = (
        f"Orientations of {recipe['model']['name']} on {number} test clouds of {recipe['data']['name']}, "
        f"{trained.num_points} points"
    )
    settings = {
        "num_clouds": number,
        "num_points": trained.num_points,
        "seed": seed,
        "amounts": {name: list(amounts) for name, (_, amounts) in CORRUPTIONS.items()},
    }
    about = {"settings": settings, "recipe": recipe, "versions": versions()}
    numbers = json.dumps({"networks": found, **about}, indent=1) + "\n"
    return [
        save_any(quality_figure(found, title), path, title),
        save_text(numbers, path.with_suffix(".json")),
    ]


def _fresh(trained: Trained, seed: int) -> nn.Module:
    """The same network before any training."""
    orientation_encoder = getattr(trained.model, "orientation_encoder", None)
    if not isinstance(orientation_encoder, OrientationEncoder):
        raise DGLError(
            f"The network {trained.recipe['model']['name']} of {trained.path} has no orientations at several "
            f"scales to measure; give a checkpoint of oriented-dgcnn or oriented-rscnn."
        )
    fresh = copy.deepcopy(trained.model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**64)
        fresh.orientation_encoder.net.reset_parameters()
    return fresh


def _dense_test_set(trained: Trained) -> PointCloudDataset:
    """The test set with twice the points, of which each half is a sample of the shape."""
    if trained.num_points is None:
        raise DGLError(
            f"The data set {trained.recipe['data']['name']!r} does not say how many points its clouds have, "
            f"so that no second sample of its shapes can be drawn; measure a network of another data set."
        )
    data = trained.recipe["data"] | {"num_points": 2 * trained.num_points}
    return data_set({**trained.recipe, "data": data}, "test")


def _clouds(shapes: PointCloudDataset, number: int) -> Iterator[tuple[Tensor, int | None]]:
    for index in range(number):
        item = shapes[index]
        graph, label = item if isinstance(item, tuple) else (item, None)
        yield graph.ndata["pos"], None if label is None else int(label)


def _seeing(trained: Trained, model: nn.Module, has_learned: bool) -> Callable[[Tensor], OrientationSample]:
    """How a network looks at a cloud; a fresh one's answers are of no interest."""
    asks = has_learned and trained.pipeline == "pointcls"

    def see(pos: Tensor) -> OrientationSample:
        orientation_encoder = model.orientation_encoder
        graph = knn_graph(pos, orientation_encoder.k)
        if asks:
            seen = trace_orientations(model, lambda: model(point_cloud(pos)))
        else:
            seen = trace_orientations(orientation_encoder, lambda: orientation_encoder(graph, pos))
        vectors = orientation_encoder.net.vectors(graph, pos)
        return OrientationSample(seen.orient, vectors, seen.answer[0] if asks else None)

    return see
