"""Invariant numbers of vectors, by hand and against plain trigonometry."""

import pytest
import torch

from dgl_orient.geometry import random_rotation
from dgl_orient.graph import ball_query_graph
from dgl_orient.models.invariants import cosine, signed_angle, unit
from dgl_orient.models.riframework import edge_invariants
from tests.clouds import ball, generator


def angle(a, b, c):
    """At b in the triangle a, b, c."""
    return (a - b) @ (c - b) / ((a - b).norm() * (c - b).norm())


def test_the_invariants_of_riframework_equal_their_formulas():
    src = ball(20)
    dst, radius = src[:3], 1.4
    graph = ball_query_graph(src, dst, radius, 8)
    actual = edge_invariants(graph, src, dst, radius)
    for row, (j, i) in enumerate(zip(*(each.tolist() for each in graph.edges()))):
        p, q = dst[i], src[j]
        m = src[graph.predecessors(i)].mean(0)
        s = p + radius * p / p.norm()
        if i == j:
            assert torch.isfinite(actual[row]).all()
            continue
        one, other = torch.linalg.cross(p - s, m - s), torch.linalg.cross(p - s, q - s)
        size = torch.acos(((one @ other) / (one.norm() * other.norm())).clamp(-1, 1))
        angle_of_q = torch.copysign(size, torch.linalg.cross(one, other) @ (p - s))
        expected = [p.norm(), (p - m).norm(), (s - m).norm(), angle(p, m, s), angle(p, s, m)]
        expected += [(q - m).norm(), (q - p).norm(), (q - s).norm()]
        expected += [angle(p, q, m), angle(p, q, s), angle(m, q, s)]
        expected += [(angle_of_q / 4).cos() - (angle_of_q / 4).sin() - 0.75]
        torch.testing.assert_close(actual[row], torch.stack(expected), rtol=1e-9, atol=1e-7)


def test_angles_are_invariant_and_change_their_sign_in_a_mirror():
    a, b, axis = (torch.randn(50, 3, generator=generator(n), dtype=torch.float64) for n in range(3))
    rotation = random_rotation(dtype=torch.float64, generator=generator(3))
    original = signed_angle(a, b, unit(axis))
    rotated = signed_angle(a @ rotation.T, b @ rotation.T, unit(axis @ rotation.T))
    torch.testing.assert_close(rotated, original)
    torch.testing.assert_close(signed_angle(-a, -b, unit(-axis)), -original)
    torch.testing.assert_close(signed_angle(b, a, unit(axis)), -original)


def test_zero_vectors_have_no_direction():
    zero = torch.zeros(1, 3, requires_grad=True)
    other = torch.tensor([[1.0, 2.0, 2.0]])
    value = cosine(zero, other) + unit(zero).sum()
    value.sum().backward()
    assert float(value.detach()) == 0.0 and torch.isfinite(zero.grad).all()
    assert float(cosine(other, 3 * other)) == pytest.approx(1.0)
