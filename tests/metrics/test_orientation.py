"""Orientation quality: hand-worked angles, and which corruptions change which orientations."""

import math

import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.geometry import frames_from_vectors, random_rotation
from dgl_orient.metrics.orientation import (
    CORRUPTIONS,
    OrientationSample,
    degenerate_fraction,
    frame_angles,
    orientation_agreement,
    orientation_quality,
    orientation_smoothness,
)


def about_z(degrees: float) -> torch.Tensor:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return torch.tensor([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=torch.float64)


@pytest.mark.parametrize("degrees", [0.0, 1e-6, 30.0, 120.0, 179.9, 180.0])
def test_angle_is_that_of_the_rotation_between(degrees):
    one = random_rotation(dtype=torch.float64)
    angle = frame_angles(one, one @ about_z(degrees))
    assert float(angle) == pytest.approx(degrees, rel=1e-6, abs=1e-8)
    assert float(frame_angles(one @ about_z(degrees), one)) == float(angle)


def test_unrelated_frames_are_as_far_apart_as_the_docs_say():
    generator = torch.Generator().manual_seed(0)
    angles = frame_angles(*(random_rotation(100_000, torch.float64, generator) for _ in range(2)))
    assert float(angles.mean()) == pytest.approx(126.5, abs=0.3)
    assert float(angles.median()) == pytest.approx(132.3, abs=0.4)


def test_smoothness_compares_with_neighbours_only():
    """Two lines far apart: within each, frames differ by 10 degrees from a point to the next."""
    pos = torch.tensor([[x, 100.0 * line, 0] for line in range(2) for x in range(6)])
    frames = [about_z(90 * line + 10 * x) for line in range(2) for x in range(6)]
    angles = orientation_smoothness(pos, torch.stack(frames), k=1)
    torch.testing.assert_close(angles, torch.full((12,), 10.0, dtype=torch.float64))


def test_agreement_compares_with_the_nearest_point_of_the_other_sample():
    pos = torch.tensor([[0.0, 0, 0], [5, 0, 0]])
    orient = torch.stack([about_z(0), about_z(0)]).unsqueeze(1)
    other = torch.stack([about_z(70), about_z(20), about_z(50)]).unsqueeze(1)
    angles = orientation_agreement(pos, orient, torch.tensor([[9.0, 0, 0], [0.1, 0, 0], [4.8, 0, 0]]), other)
    torch.testing.assert_close(angles, torch.tensor([[20.0], [50.0]], dtype=torch.float64))


def test_zero_and_collinear_pairs_are_degenerate():
    pairs = torch.tensor([[[1.0, 0, 0], [0, 1, 0]], [[1, 0, 0], [-2, 0, 0]], [[0, 0, 0], [0, 1, 0]]])
    nearly = torch.tensor([[[1.0, 0, 0], [1, 1e-4, 0]]])
    assert degenerate_fraction(torch.cat([pairs, nearly]).unsqueeze(1)) == 0.75
    assert degenerate_fraction(nearly.unsqueeze(1), sine=1e-5) == 0


def from_coordinates(pos: torch.Tensor) -> OrientationSample:
    """Orientations that depend on a point's coordinates alone; at the second level all are the same."""
    own = frames_from_vectors(pos, pos.roll(1, dims=1) + torch.tensor([0.3, 0.1, 0.2]))
    same = torch.eye(3).expand(len(pos), 3, 3)
    logits = torch.tensor([0.0, 1.0, 0.0])
    return OrientationSample(torch.stack([own, same], 1).unsqueeze(2), logits)


def constant_vectors(pos: torch.Tensor) -> list[torch.Tensor]:
    pairs = torch.eye(3)[:2].expand(len(pos), 1, 2, 3)
    return [pairs, pairs[:1]]


@pytest.fixture(scope="module")
def actual():
    generator = torch.Generator().manual_seed(0)
    shapes = [(torch.randn(200, 3, generator=generator), 1 + number) for number in range(2)]
    return orientation_quality(from_coordinates, constant_vectors, shapes)


def test_orientations_of_coordinates_alone_drift_under_jitter_alone(actual):
    for name in ("dropout", "outliers"):
        for each in actual["drift"][name]:
            assert [level["p90"] for level in each["levels"]] == [0, 0]
    medians = [each["levels"][0]["median"] for each in actual["drift"]["jitter"]]
    assert 0 < medians[0] < medians[1] < medians[2] < medians[3] < medians[4]
    assert all(each["levels"][1]["mean"] == 0 for each in actual["drift"]["jitter"])


def test_results_are_complete_and_accuracy_is_counted(actual):
    assert actual["shapes"] == 2 and actual["degenerate"] == [0, 0]
    assert actual["accuracy"] == 0.5  # of the labels 1 and 2 the prediction 1 is correct once
    assert [len(actual["drift"][name]) for name in CORRUPTIONS] == [5, 4, 4]
    assert all(each["accuracy"] == 0.5 for each in actual["drift"]["jitter"])
    assert actual["smoothness"][1]["mean"] == 0 < actual["smoothness"][0]["p25"]
    assert actual["agreement"][0]["p25"] < actual["agreement"][0]["median"] < actual["agreement"][0]["p90"]


@pytest.mark.parametrize("name", list(CORRUPTIONS))
def test_corruptions_return_the_rows_of_the_kept_points(name):
    corrupt, amounts = CORRUPTIONS[name]
    pos = torch.randn(400, 3, generator=torch.Generator().manual_seed(3))
    radius = (pos - pos.mean(0)).norm(dim=1).max()
    for amount in amounts:
        changed, rows = corrupt(pos, amount, torch.Generator().manual_seed(0))
        moved = changed[: len(rows)] - pos[rows]
        if name == "jitter":
            assert float(moved.std() / radius) == pytest.approx(amount, rel=0.1)
        else:
            assert float(moved.abs().max()) == 0
        factor = {"jitter": 1, "dropout": 1 - amount, "outliers": 1 + amount}[name]
        assert len(changed) == round(400 * factor)
    # Outliers are in the ball around the cloud.
    assert float((changed - pos.mean(0)).norm(dim=1).max()) <= 1.5 * float(radius)


def test_quality_is_rotation_invariant():
    torch.manual_seed(0)
    net = dgl_orient.OrientationNet(num_orientations=2).double()

    def orientations(pos: torch.Tensor) -> OrientationSample:
        return OrientationSample(net(dgl_orient.knn_graph(pos, 8), pos).unsqueeze(1))

    def vectors(pos: torch.Tensor) -> list[torch.Tensor]:
        return [net.vectors(dgl_orient.knn_graph(pos, 8), pos)]

    pos, rotation = torch.randn(120, 3, dtype=torch.float64), random_rotation(dtype=torch.float64)
    one, other = (
        orientation_quality(orientations, vectors, [(each, None)]) for each in (pos, pos @ rotation.T)
    )
    for kind in ("smoothness", "agreement"):
        for name, value in one[kind][0].items():
            assert value == pytest.approx(other[kind][0][name], abs=1e-6) and value > 0
    assert "accuracy" not in one


def test_no_shapes_are_refused():
    with pytest.raises(DGLError):
        orientation_quality(from_coordinates, constant_vectors, [])
