"""Batches of clouds for the tests of transforms."""

import torch

import dgl_orient
from tests.clouds import ball

TYPES = (torch.float32, torch.float64)


def clouds(sizes=(60,), dtype=torch.float32):
    """Clouds with everything that the data sets put on points, and more."""
    n = sum(sizes)
    graph = dgl_orient.point_cloud(5 + ball(n, 1, dtype), list(sizes))
    graph.ndata["normal"] = torch.nn.functional.normalize(ball(n, 2, dtype), dim=1)
    for seed, name in enumerate(["target_pos", "vel", "target_vel", "own", "force"], 3):
        graph.ndata[name] = ball(n, seed, dtype)
    graph.ndata["many"] = ball(4 * n, 9, dtype).view(n, 4, 3)
    graph.ndata["part"] = torch.arange(n)
    graph.ndata["charge"] = torch.ones(n, 1, dtype=dtype)
    return graph


def fields(graph):
    return dict(graph.ndata.items())


def by_cloud(graph, name):
    return graph.ndata[name].split(graph.batch_num_nodes().tolist())
