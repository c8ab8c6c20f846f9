"""The quality of a trained network's orientations, measured on its test set."""

from __future__ import annotations

import copy
import functools

import torch
from dgl import DGLError, DGLGraph
from torch import Tensor, nn

from ..config.build import data_set
from ..data.progress import progress_bar
from ..graph import knn_graph, point_cloud
from ..metrics.orientation import CORRUPTIONS, OrientationSample, orientation_quality
from ..models.orientation_encoder import OrientationEncoder
from ..models.tracing import trace_orientations
from ..train.training_folder import versions
from .trained_model import TrainedModel

__all__ = ["measure_quality"]


def measure_quality(
    trained: TrainedModel, num_clouds: int = 20, seed: int = 0, progress: bool = True
) -> dict[str, object]:
    """Measure a trained network's orientations beside those of the untrained network.

    The shapes are the first of the network's test set, sampled twice as densely: see
    :func:`dgl_orient.metrics.orientation_quality`.

    Parameters
    ----------
    trained : TrainedModel
        A network with orientations at several scales.
    num_clouds : int
        Maximum number of shapes.
    seed : int
        Of weights, samples and perturbations.
    progress : bool
        Whether a terminal has a progress bar.

    Returns
    -------
    dict
        ``networks``, the quality of each; ``settings``, ``recipe`` and ``versions``.
    """
    if num_clouds < 1:
        raise DGLError(f"Expected at least 1 cloud to measure on, got {num_clouds}.")
    if "data" not in trained.recipe:
        raise DGLError(f"{trained.path} was trained without a recipe, so that its test set is not known.")
    recipe, num_points = trained.recipe, trained.num_points
    networks = {"trained": trained.network, "untrained": _reset_orientations(trained, seed)}
    if num_points is None:
        raise DGLError(
            f"The data set {recipe['data']['name']!r} does not say how many points its clouds have, so that "
            f"no second sample of its shapes can be made; measure a network of another data set."
        )
    shapes = data_set({**recipe, "data": recipe["data"] | {"num_points": 2 * num_points}}, "test")
    num_clouds = min(num_clouds, len(shapes))
    quality = {}
    for name, model in networks.items():
        bar = progress_bar(range(num_clouds), name, "shapes", shown=progress)
        clouds = (_cloud(shapes[index]) for index in bar)
        has_classes = name == "trained" and trained.pipeline == "pointcls"
        sample = functools.partial(_sample, model, has_classes)
        quality[name] = orientation_quality(sample, functools.partial(_vectors, model), clouds, seed=seed)
    amounts = {name: list(amounts) for name, (_, amounts) in CORRUPTIONS.items()}
    settings = {"num_clouds": num_clouds, "num_points": num_points, "seed": seed, "amounts": amounts}
    return {"networks": quality, "settings": settings, "recipe": recipe, "versions": versions()}


def _cloud(item: DGLGraph | tuple[DGLGraph, Tensor]) -> tuple[Tensor, int | None]:
    graph, label = item if isinstance(item, tuple) else (item, None)
    return graph.ndata["pos"], None if label is None else int(label)


def _reset_orientations(trained: TrainedModel, seed: int) -> nn.Module:
    """The network with randomly initialised orientations."""
    if not isinstance(getattr(trained.network, "orientation_encoder", None), OrientationEncoder):
        raise DGLError(
            f"The network {trained.recipe['model']['name']} of {trained.path} has no orientations at several "
            f"scales to measure; give a checkpoint of oriented-dgcnn or oriented-rscnn."
        )
    model = copy.deepcopy(trained.network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed % 2**64)
        model.orientation_encoder.net.reset_parameters()
    return model


def _sample(model: nn.Module, has_classes: bool, pos: Tensor) -> OrientationSample:
    """The orientations of a point cloud, and its logits."""
    if has_classes:
        trace = trace_orientations(model, lambda: model(point_cloud(pos)))
        return OrientationSample(trace.orient, trace.output[0])
    encoder = model.orientation_encoder
    return OrientationSample(
        trace_orientations(encoder, lambda: encoder(knn_graph(pos, encoder.k), pos)).orient
    )


def _vectors(model: nn.Module, pos: Tensor) -> list[Tensor]:
    """The two vectors of each orientation, for each level."""
    encoder = model.orientation_encoder
    return encoder.net.vectors(knn_graph(pos, encoder.k), pos)
