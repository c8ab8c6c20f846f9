import pytest
import torch
from dgl import DGLError

from dgl_orient.data.dataset import PointCloudDataset, PointClouds
from dgl_orient.data.protocols import PROTOCOLS, protocol
from tests.clouds import ball


class Balls(PointCloudDataset):
    gravity = "y"

    def process(self):
        self.clouds = PointClouds.concatenate(
            [{"pos": ball(20, seed, torch.float32).numpy()} for seed in range(4)]
        )


def positions(dataset):
    return torch.stack([graph.ndata["pos"] for graph in dataset])


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("gravity", ["x", "y", "z"])
def test_rotations_are_about_the_gravity_axis_or_any(name, gravity):
    plain = positions(Balls("balls"))
    axis = "xyz".index(gravity)
    rotations = protocol(name, gravity)
    for part, transform in zip(name.split("/"), rotations[1:]):
        turned = positions(Balls("balls", transform=transform))
        upright = torch.allclose(turned[..., axis], plain[..., axis], atol=1e-6)
        assert upright == (part == "z")
        assert not torch.allclose(turned, plain, atol=0.1)
        torch.testing.assert_close(turned.norm(dim=2), plain.norm(dim=2))


def test_two_runs_score_the_same_clouds():
    test = protocol("z/so3", "y").test
    first = positions(Balls("balls", transform=test, seed=1))
    torch.randn(3)
    second = Balls("balls", transform=protocol("z/so3", "y").test, seed=1)
    assert torch.equal(torch.stack([second[i].ndata["pos"] for i in (3, 2, 1, 0)]).flip(0), first)
    assert not torch.equal(positions(Balls("balls", transform=test, seed=2)), first)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("Z/Z", "z/z"), ("z/SO(3)", "z/so3"), ("SO(3)/SO(3)", "so3/so3"), ("z / SO3", "z/so3")],
)
def test_spellings(spelling, name):
    assert protocol(spelling, "y").name == name


@pytest.mark.parametrize(
    ("name", "gravity"),
    [("so3/z", "z"), ("", "z"), (None, "z"), ("z/z", None), ("z/so3", None), ("z/z", "up")],
)
def test_what_is_no_protocol_is_refused(name, gravity):
    with pytest.raises(DGLError):
        protocol(name, gravity)


def test_without_an_upright_axis_there_is_so3():
    assert protocol("so3/so3", None).test.mode == "so3"
