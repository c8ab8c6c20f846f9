import torch

import dgl_orient
from dgl_orient.data import ChargedParticles
from dgl_orient.models import DGCNN, OrientedDGCNN, OrientedNBody
from dgl_orient.models.tracing import trace_orientations, trace_poses


def test_tracing_leaves_the_output_and_the_network_as_they_are():
    graph = dgl_orient.point_cloud(torch.rand(60, 3))
    model = OrientedDGCNN.light(5, level_sizes=(12,)).eval()
    trace = trace_orientations(model, lambda: model(graph))
    torch.testing.assert_close(trace.output, model(graph).detach())
    torch.testing.assert_close(trace.orient[:, -1], trace.global_orient.expand(60, -1, -1, -1))
    assert trace.level_sizes == (60, 12, 0)
    assert not model.orientation_encoder._forward_hooks


def test_a_network_without_orientations_has_an_output():
    assert trace_orientations(DGCNN.light(5).eval(), lambda: "output") == ("output", None, None, ())


def test_particles_have_orientations_of_one_level():
    model, graph = OrientedNBody(num_orientations=2), ChargedParticles("test", 5, 1, horizon=10)[0]
    trace = trace_orientations(model, lambda: model(graph))
    assert trace.orient.shape == (5, 1, 2, 3, 3)
    assert trace.global_orient is None and trace.level_sizes == (5,)


def test_poses_rotate_all_vectors_of_the_graph():
    graph = ChargedParticles("test", 5, 1, horizon=10)[0]
    for name, values in graph.ndata.items():
        graph.ndata[name] = values.double()
    model = OrientedNBody().double().eval()
    first, second, third = trace_poses(model, model, graph, num_poses=3, seed=4)
    assert not torch.allclose(second.rotation, third.rotation)
    for pose in (first, second, third):
        for name in ("pos", "vel", "target_pos"):
            torch.testing.assert_close(pose.graph.ndata[name], graph.ndata[name] @ pose.rotation.T)
        torch.testing.assert_close(pose.graph.ndata["charge"], graph.ndata["charge"])
        torch.testing.assert_close(pose.trace.output, first.trace.output @ pose.rotation.T)
