import pytest
import torch
from dgl.transforms import Compose

import dgl_orient
from dgl_orient.data import Shapes, point_cloud_loader
from dgl_orient.data.transforms import AddUp, RandomRotate
from dgl_orient.geometry import random_rotation
from dgl_orient.metrics import UpError, chosen_direction
from dgl_orient.models import UprightNet
from dgl_orient.models.upright import suggested_directions
from dgl_orient.testing import assert_equivariant
from dgl_orient.train import UprightEstimation
from tests.clouds import DEGENERATE, ball, generator

SIZES = [70, 41, 9]


def network(**kw):
    return UprightNet((8, 8), (8, 16), (8,), 6, **kw)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_chosen_direction_rotates_with_the_cloud(dtype):
    pos = ball(sum(SIZES), dtype=dtype) * torch.tensor([1.0, 1.5, 2.5], dtype=dtype)
    model = network().to(dtype).eval()

    def up(pos, batch_num_nodes=None):
        return chosen_direction(model(dgl_orient.point_cloud(pos, batch_num_nodes)))[0].unsqueeze(1)

    assert_equivariant(up, pos, "vectors", SIZES, per="cloud", trials=2)


def test_features_and_vectors_of_points_count():
    pos, feat, vec = ball(60), torch.rand(60, 2).double(), torch.rand(60, 1, 3).double()
    model, outputs = network(in_feats=2, in_vectors=1).double().eval(), []
    for values in ((feat, vec), (feat.flip(0), vec), (feat, -vec)):
        graph = dgl_orient.point_cloud(pos)
        graph.ndata["feat"], graph.ndata["vec"] = values
        outputs.append(model(graph)[..., 3])
    assert all((each - outputs[0]).abs().max() > 1e-6 for each in outputs[1:])


@pytest.mark.parametrize("pos, sizes", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize("training", [True, False])
def test_degenerate_point_clouds_give_unit_directions_and_finite_gradients(pos, sizes, training):
    model = network().double().train(training)
    output = model(dgl_orient.point_cloud(pos, sizes))
    assert torch.isfinite(output).all()
    length = output[..., :3].norm(dim=2)
    torch.testing.assert_close(length, torch.ones_like(length))
    output[..., 3].square().sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("sizes", [[0], []])
def test_no_points_give_no_or_any_directions(sizes):
    output = network().double().eval()(dgl_orient.point_cloud(torch.rand(0, 3).double(), sizes))
    assert output.shape == (len(sizes), 18, 4) and torch.isfinite(output).all()


def test_vectors_of_length_zero_are_not_accurate():
    metric = UpError()
    metric.update(torch.zeros(1, 3), torch.eye(3)[:1])
    assert metric.result() == {"up_accuracy": 0.0, "up_angle": 90.0}


def test_the_normal_of_the_largest_face_is_suggested():
    # A slab that is tilted, with a post at its corner that tilts the axes of the covariance.
    rotation, up = random_rotation(dtype=torch.float64, generator=generator()), torch.eye(3).double()[2]
    slab = torch.rand(300, 3, generator=generator(1)).double() * torch.tensor([3.0, 2.0, 0.0])
    post = torch.tensor([3.0, 2.0, 0.0]) + torch.linspace(0, 2, 60).double()[:, None] * up
    normal = torch.cat([up.expand(300, 3), up.roll(1).expand(60, 3)])
    pos, normal = torch.cat([slab, post]) @ rotation.T, normal @ rotation.T
    directions = suggested_directions(pos, normal, torch.tensor([360]))[0]
    cosine = directions @ rotation[:, 2]
    torch.testing.assert_close(cosine.max(), torch.ones(()).double())
    torch.testing.assert_close(directions[:9], -directions[9:])
    assert cosine[:3].abs().max() < 0.999, "the axes of the covariance are not yet the normal"


def test_it_learns_which_way_is_up():
    torch.manual_seed(0)
    rotated = Compose([AddUp("z"), RandomRotate("so3")])
    graph, _ = next(iter(point_cloud_loader(Shapes("train", 128, 24, ["table"], transform=rotated), 24)))
    model, task = UprightNet((16, 16), (16, 32), (16,), dropout=0.0), UprightEstimation()
    optimizer, accuracies = torch.optim.AdamW(model.parameters(), 1e-2), []
    for _ in range(12):
        output, metric = model(graph), UpError()
        task.update(metric, output, graph, None)
        accuracies.append(metric.result()["up_accuracy"])
        optimizer.zero_grad()
        task.loss(output, graph, None)[0].backward()
        optimizer.step()
    assert accuracies[0] < 0.5 and accuracies[-1] > 0.9
