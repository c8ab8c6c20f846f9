import pytest
import torch
from dgl import DGLError

from dgl_orient.nn.orientation_head import _CANCELLED, _RIDGE, OrientationHead
from tests.clouds import rotation_error


def test_pairs_equal_the_formula():
    head = OrientationHead(5, 2).double()
    vec = torch.randn(4, 5, 3, dtype=torch.float64)
    for actual, v in zip(head.pairs(vec), vec):
        total = (v.T @ v).trace()
        matrix = v.T @ v / total + _RIDGE * torch.eye(3, dtype=torch.float64)
        expected = torch.linalg.inv(matrix) @ (v.T / total.sqrt()) @ head.vectors.weight.T  # (3, 2F)
        torch.testing.assert_close(actual, expected.T.reshape(2, 2, 3), rtol=1e-11, atol=1e-11)


def plain_pairs(head, vec, size=0.0):
    """The formula with PyTorch's own inverse and gradients, and nothing from vectors that are noise."""
    spread = vec.transpose(1, 2) @ vec
    total = spread.diagonal(dim1=1, dim2=2).sum(1).view(-1, 1, 1)
    info = torch.finfo(vec.dtype)
    present = (total > (_CANCELLED * info.eps * size) ** 2) & (total > info.tiny)
    total = torch.where(present, total, 1.0)
    inverse = torch.linalg.inv(spread / total + _RIDGE * torch.eye(3, dtype=vec.dtype))
    mapped = head.vectors.weight @ (vec * (present / total.sqrt()))
    return (mapped @ inverse).unflatten(1, (head.num_orientations, 2))


def vectors_of_all_kinds():
    """Random ones, duplicates, on a line, zeros, noise, tiny and huge ones."""
    vec = torch.randn(12, 5, 3, dtype=torch.float64)
    vec[1] = 0
    vec[2] *= 1e-15
    vec[3] = vec[3, :1]
    vec[4] = torch.randn(5, 1) * vec[4, :1]
    vec[5, 2:] = 0
    vec[6], vec[7] = 1e60 * vec[6], 1e-60 * vec[7]
    vec[8, 0] *= 1e-9
    return vec


@pytest.mark.parametrize("size", [0.0, 1.0, torch.ones((), dtype=torch.float64)])
def test_pairs_equal_the_plain_ones_in_all_derivatives(size):
    head, vec = OrientationHead(5, 2).double(), vectors_of_all_kinds().requires_grad_()
    inputs = (vec, head.vectors.weight)
    results = []
    for pairs in (head.pairs(vec, size), plain_pairs(head, vec, size)):
        weights = torch.randn(pairs.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        first = torch.autograd.grad((pairs * weights).sum(), inputs, create_graph=True)
        second = torch.autograd.grad((first[0] * vec.detach()).sin().sum() + first[1].sin().sum(), inputs)
        results.append([pairs.flatten(1), *(g.flatten(1) for g in (*first, *second))])
    for actual, expected in zip(*results):
        error = (actual - expected).abs().amax(-1)
        assert (error <= 1e-12 * expected.abs().amax(-1)).all(), error


def test_gradients_are_right_to_second_order():
    head = OrientationHead(4, 2).double()
    vec = torch.randn(3, 4, 3, dtype=torch.float64, requires_grad=True)

    def frames(vec, weight):
        return torch.func.functional_call(head, {"vectors.weight": weight}, (vec, 1.0))

    inputs = (vec, head.vectors.weight)
    assert torch.autograd.gradcheck(frames, inputs)
    assert torch.autograd.gradgradcheck(frames, inputs)


def test_no_nodes_have_no_frames():
    head, vec = OrientationHead(5, 2), torch.zeros(0, 5, 3, requires_grad=True)
    frames = head(vec)
    assert frames.shape == (0, 2, 3, 3) and head.degenerate(vec).shape == (0, 2)
    frames.sum().backward()
    assert vec.grad.shape == vec.shape and not head.vectors.weight.grad.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_vectors_that_are_noise_do_not_determine_a_frame(dtype):
    head = OrientationHead(5, 1).to(dtype)
    vec = torch.randn(5, 5, 3, dtype=dtype)
    vec[1] = 0
    vec[2] *= 10 * torch.finfo(dtype).eps  # what rounding leaves of vectors of size 1
    direction = torch.tensor([1.0, 2.0, -1.0], dtype=dtype)
    vec[3] = torch.randn(5, 1, dtype=dtype) * direction  # all along one line
    assert head.degenerate(vec, size=1.0).flatten().tolist() == [False, True, True, True, False]
    assert head.degenerate(vec).flatten().tolist() == [False, True, False, True, False]
    assert rotation_error(head(vec)) < 1e-6


def test_scaled_vectors_determine_the_same_frame():
    head, vec = OrientationHead(5, 1), torch.randn(20, 5, 3)
    for scale in (1e-12, 1e12):
        torch.testing.assert_close(head(vec * scale, size=scale), head(vec), rtol=0, atol=1e-4)


def test_short_first_vectors_do_not_determine_a_frame():
    head = OrientationHead(3, 1).double()
    with torch.no_grad():
        head.vectors.weight.copy_(torch.eye(3)[:2])
    vec = torch.eye(3, dtype=torch.float64).unsqueeze(0)
    assert not head.degenerate(vec)
    vec[0, 0] *= 1e-13
    assert head.degenerate(vec)


def test_gradients_are_finite_at_zero():
    head, vec = OrientationHead(5, 2), torch.zeros(3, 5, 3, requires_grad=True)
    head(vec).sum().backward()
    assert torch.equal(vec.grad, torch.zeros(3, 5, 3))


def test_one_vector_makes_no_frame():
    with pytest.raises(DGLError, match="hidden_vectors"):
        OrientationHead(1, 1)


def test_short_vectors_have_finite_gradients():
    head, weight = OrientationHead(8, 1), torch.randn(200, 1, 3, 3)
    vec = (torch.randn(200, 8, 3) * 3e-20).requires_grad_()
    (weight * head(vec)).sum().backward()
    assert bool(torch.isfinite(vec.grad).all()) and bool(torch.isfinite(head.vectors.weight.grad).all())
    assert float(vec.grad.abs().max()) > 1e15  # as short as they are


def test_gradients_are_the_same_within_autocast():
    head, vec = OrientationHead(8, 2), torch.randn(30, 8, 3)
    weight, actual = torch.randn(30, 2, 3, 3), []
    for enabled in (False, True):
        given = vec.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            (weight * head(given)).sum().backward()
        actual.append(given.grad)
    torch.testing.assert_close(*actual, rtol=0, atol=0)
