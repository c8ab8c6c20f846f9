import pytest
import torch

from dgl_orient.nn.frame_head import _RIDGE, FrameHead, _solve
from tests.clouds import rotation_error


def test_pairs_equal_the_formula():
    head = FrameHead(5, 2).double()
    vec = torch.randn(4, 5, 3, dtype=torch.float64)
    for found, v in zip(head.pairs(vec), vec):
        total = (v.T @ v).trace()
        matrix = v.T @ v / total + _RIDGE * torch.eye(3, dtype=torch.float64)
        expected = torch.linalg.inv(matrix) @ (v.T / total.sqrt()) @ head.vectors.weight.T  # (3, 2F)
        torch.testing.assert_close(found, expected.T.reshape(2, 2, 3), rtol=1e-11, atol=1e-11)


def test_solving_equals_inverting():
    matrix = torch.randn(6, 3, 3, dtype=torch.float64)
    matrix = matrix @ matrix.transpose(1, 2) + torch.eye(3, dtype=torch.float64)
    vec = torch.randn(6, 4, 3, dtype=torch.float64)
    torch.testing.assert_close(_solve(matrix, vec), vec @ torch.linalg.inv(matrix))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vectors_that_are_noise_do_not_determine_a_frame(dtype):
    head = FrameHead(5, 1).to(dtype)
    vec = torch.randn(5, 5, 3, dtype=dtype)
    vec[1] = 0
    vec[2] *= 10 * torch.finfo(dtype).eps  # what rounding leaves of vectors of size 1
    direction = torch.tensor([1.0, 2.0, -1.0], dtype=dtype)
    vec[3] = torch.randn(5, 1, dtype=dtype) * direction  # all along one line
    assert head.undetermined(vec, size=1.0).flatten().tolist() == [False, True, True, True, False]
    assert head.undetermined(vec).flatten().tolist() == [False, True, False, True, False]
    assert rotation_error(head(vec)) < 1e-6


def test_scaled_vectors_determine_the_same_frame():
    head, vec = FrameHead(5, 1), torch.randn(20, 5, 3)
    for scale in (1e-12, 1e12):
        torch.testing.assert_close(head(vec * scale, size=scale), head(vec), rtol=0, atol=1e-4)


def test_short_first_vectors_do_not_determine_a_frame():
    head = FrameHead(3, 1).double()
    with torch.no_grad():
        head.vectors.weight.copy_(torch.eye(3)[:2])
    vec = torch.eye(3, dtype=torch.float64).unsqueeze(0)
    assert not head.undetermined(vec)
    vec[0, 0] *= 1e-13
    assert head.undetermined(vec)


def test_gradients_are_finite_at_zero():
    head, vec = FrameHead(5, 2), torch.zeros(3, 5, 3, requires_grad=True)
    head(vec).sum().backward()
    assert torch.equal(vec.grad, torch.zeros(3, 5, 3))
