import math

import pytest
import torch
from dgl import DGLError
from hypothesis import given
from hypothesis import strategies as st

from dgl_orient.geometry import (
    degenerate,
    frames_from_vectors,
    norm,
    random_rotation,
    subtract_centroid,
    to_global,
    to_local,
)
from tests.clouds import ball, generator, rotation_error

DTYPES = [torch.float32, torch.float64]
PROPER = {torch.float32: 1e-6, torch.float64: 1e-12}


def plain_frames(v1, v2):
    """Eqs. 4 to 7, word for word."""
    u1 = v1 / v1.norm(dim=-1, keepdim=True)
    u2 = v2 - (v2 * u1).sum(-1, keepdim=True) * u1
    u2 = u2 / u2.norm(dim=-1, keepdim=True)
    return torch.stack([u1, u2, torch.linalg.cross(u1, u2)], -1)


def composite_frames(v1, v2, atol=0.0, rtol=None):
    """The same frames step by step, with PyTorch's own gradients."""
    (v1, no_first), (v2, no_second) = (unit_scale(v, atol) for v in (v1, v2))
    u1 = torch.where(no_first, torch.eye(3, dtype=v1.dtype)[0], v1)
    u1 = u1 / u1.norm(dim=-1, keepdim=True)
    rest = reject(v2, u1)
    rtol = 32 * torch.finfo(v1.dtype).eps if rtol is None else rtol
    no_second = no_second | (rest.square().sum(-1, keepdim=True) <= rtol**2)
    axis = torch.nn.functional.one_hot(u1.detach().abs().argmin(-1), 3).to(v1.dtype)
    rest = torch.where(no_second, reject(axis, u1), rest)
    rest = reject(rest / rest.square().sum(-1, keepdim=True).sqrt(), u1)
    u2 = rest / rest.norm(dim=-1, keepdim=True)
    return torch.stack([u1, u2, torch.linalg.cross(u1, u2)], -1)


def unit_scale(vec, atol):
    """Vectors over their lengths, which count as constants, and whether they count as zero."""
    largest = vec.detach().abs().amax(-1, keepdim=True)
    largest = torch.where(largest == 0, 1.0, largest)
    direction = vec.detach() / largest
    relative = direction.norm(dim=-1, keepdim=True)
    none = relative * largest <= atol
    direction = torch.where(none, 0.0, direction / torch.where(none, 1.0, relative))
    info = torch.finfo(vec.dtype)
    linear = vec * torch.where(none, 0.0, 1 / (relative * largest).clamp(info.tiny * 1e18, info.max))
    return linear + (direction - linear.detach()), none


def reject(vec, unit):
    return vec - (vec * unit).sum(-1, keepdim=True) * unit


def ugly_pairs(dtype):
    """Pairs of vectors of all kinds and sizes, each with each."""
    info = torch.finfo(dtype)
    sizes = [1.0, 1e-30, 1e30, info.tiny, info.tiny / 4, info.smallest_normal * 3, info.max / 2]
    sizes += [5e-324] if dtype == torch.float64 else [1e-45]
    directions = torch.cat([torch.eye(3), -torch.eye(3), ball(4).float(), torch.zeros(1, 3)]).to(dtype)
    vectors = torch.cat([directions.clamp(-1, 1) * size for size in sizes])
    first, second = vectors.repeat_interleave(len(vectors), 0), vectors.repeat(len(vectors), 1)
    nearly = first + info.eps * second  # collinear up to rounding, where the sizes are equal
    nearly = torch.where(torch.isfinite(nearly), nearly, second)
    return torch.cat([first, first, first]), torch.cat([second, -first, nearly])


@pytest.mark.parametrize("dtype", DTYPES)
def test_frames_of_ugly_vectors_are_rotations_with_finite_gradients(dtype):
    v1, v2 = (v.requires_grad_() for v in ugly_pairs(dtype))
    frames = frames_from_vectors(v1, v2)
    assert rotation_error(frames) < PROPER[dtype]
    weights = torch.randn(frames.shape, dtype=dtype, generator=generator())
    (frames * weights).sum().backward()
    assert torch.isfinite(v1.grad).all() and torch.isfinite(v2.grad).all()


floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(floats, min_size=6, max_size=6), st.sampled_from(DTYPES))
def test_frames_of_any_vectors_are_rotations(numbers, dtype):
    v1, v2 = torch.tensor(numbers, dtype=dtype).view(2, 3).requires_grad_()
    frames = frames_from_vectors(v1, v2)
    assert rotation_error(frames) < PROPER[dtype]
    gradient = torch.autograd.grad(frames.sum(), (v1, v2))
    assert all(torch.isfinite(g).all() for g in gradient)


def test_frames_equal_the_papers_formula_in_values_and_gradients():
    v1, v2 = ball(50), ball(50, seed=1)
    v1.requires_grad_(), v2.requires_grad_()
    fast, plain = frames_from_vectors(v1, v2), plain_frames(v1, v2)
    torch.testing.assert_close(fast, plain, rtol=0, atol=1e-13)
    weights = torch.randn(fast.shape, dtype=torch.float64, generator=generator())
    for a, b in zip(
        torch.autograd.grad((fast * weights).sum(), (v1, v2)),
        torch.autograd.grad((plain * weights).sum(), (v1, v2)),
    ):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
    few = tuple(v[:4].detach().requires_grad_() for v in (v1, v2))
    assert torch.autograd.gradcheck(frames_from_vectors, few)


def assert_frames_equal_the_composite(v1, v2, **tolerances):
    """In values, gradients and second derivatives, each up to 1e-12 of the largest of its row."""
    results = []
    for function in (frames_from_vectors, composite_frames):
        pair = tuple(v.detach().clone().requires_grad_() for v in (v1, v2))
        frames = function(*pair, **tolerances)
        weights = torch.randn(frames.shape, dtype=v1.dtype, generator=generator())
        first = torch.autograd.grad((frames * weights).sum(), pair, create_graph=True)
        lengths = [1 / g.detach().norm(dim=-1, keepdim=True).clamp_min(1e-300) for g in first]
        second = torch.autograd.grad(sum((g * n).sin().sum() for g, n in zip(first, lengths)), pair)
        results.append([frames.flatten(-2), *first, *second])
    for actual, expected in zip(*results):
        error = (actual - expected).abs().amax(-1)
        assert (error <= 1e-12 * expected.abs().amax(-1)).all(), error.max()


def test_frames_equal_the_composite_in_all_derivatives():
    v1, v2 = ball(60).view(20, 3, 3), ball(60, seed=1).view(20, 3, 3)
    assert_frames_equal_the_composite(v1, v2)
    for size in (1e-150, 1e-30, 1e30, 1e150):
        assert_frames_equal_the_composite(v1 * size, v2 / size)
    v1[1], v2[2], v1[3], v2[3] = 0, 0, 0, 0
    v2[4], v2[5], v2[6], v1[7] = v1[4], -3 * v1[5], torch.eye(3), torch.eye(3)
    v1[8], v2[8] = 0, torch.eye(3)[:1]  # along the axis that takes the place of the first
    assert_frames_equal_the_composite(v1, v2)
    assert_frames_equal_the_composite(v1, v2, atol=0.3, rtol=0.3)
    assert_frames_equal_the_composite(v1[:0], v2[:0])
    nearly = v1[9:] + 1e-3 * v2[9:]
    torch.testing.assert_close(
        frames_from_vectors(v1[9:], nearly), composite_frames(v1[9:], nearly), rtol=0, atol=1e-12
    )


def test_gradients_of_ugly_vectors_equal_those_of_the_composite():
    v1, v2 = ugly_pairs(torch.float64)
    clear = ~degenerate(v1, v2, rtol=1e-3) | degenerate(v1, v2)
    v1, v2 = v1[clear].requires_grad_(), v2[clear].requires_grad_()
    frames, expected = frames_from_vectors(v1, v2), composite_frames(v1, v2)
    torch.testing.assert_close(frames, expected, rtol=0, atol=1e-12)
    weights = torch.randn(frames.shape, dtype=torch.float64, generator=generator())
    for a, b in zip(
        torch.autograd.grad((frames * weights).sum(), (v1, v2)),
        torch.autograd.grad((expected * weights).sum(), (v1, v2)),
    ):
        assert ((a - b).abs().amax(-1) <= 1e-12 * b.abs().amax(-1)).all()


def test_frames_are_equivariant_and_independent_of_lengths():
    v1, v2 = ball(50), ball(50, seed=1)
    rotation = random_rotation(dtype=torch.float64, generator=generator(2))
    frames = frames_from_vectors(v1, v2)
    rotated = frames_from_vectors(v1 @ rotation.T, v2 @ rotation.T)
    torch.testing.assert_close(rotated, rotation @ frames, rtol=0, atol=1e-12)
    torch.testing.assert_close(frames_from_vectors(1e-200 * v1, 1e200 * v2), frames, rtol=0, atol=1e-12)


def test_degenerate_pairs_are_counted_and_have_deterministic_frames():
    zero, x, y = torch.zeros(3), torch.tensor([1.0, 0, 0]), torch.tensor([0, 1.0, 0])
    v1 = torch.stack([zero, zero, x, x, y, x, 1e-9 * x])
    v2 = torch.stack([zero, y, zero, -5 * x, y + 1e-7 * x, y, y])
    assert degenerate(v1, v2).tolist() == [True, True, True, True, True, False, False]
    assert degenerate(v1, v2, atol=1e-6).tolist() == [True] * 5 + [False, True]
    assert degenerate(x, y + x, rtol=0.8) and not degenerate(x, y + x, rtol=0.7)
    frames = frames_from_vectors(v1, v2)
    assert torch.equal(frames, frames_from_vectors(v1, v2))
    assert torch.equal(frames[0], torch.eye(3))
    v1.requires_grad_()
    frames_from_vectors(v1, v2)[0].sum().backward()
    assert torch.equal(v1.grad[0], zero)


@pytest.mark.parametrize(
    "v1, v2",
    [
        (torch.zeros(4, 2), torch.zeros(4, 2)),
        (torch.zeros(4, 3), torch.zeros(5, 3)),
        (torch.zeros(4, 3), [0.0, 0.0, 0.0]),
        (torch.zeros(4, 3), torch.zeros(4, 3).double()),
        (torch.zeros(4, 3).long(), torch.zeros(4, 3).long()),
        (torch.tensor([math.nan, 0, 0]), torch.zeros(3)),
        (torch.zeros(3), torch.tensor([math.inf, -math.inf, 0])),
    ],
)
def test_bad_vectors_are_refused(v1, v2):
    for function in (frames_from_vectors, degenerate):
        with pytest.raises(DGLError):
            function(v1, v2)


def test_local_and_global_are_inverse_and_follow_their_formulas():
    orient = random_rotation(20, torch.float64, generator()).view(5, 4, 3, 3)
    vec = ball(5).unsqueeze(1)
    local = to_local(orient, vec)
    torch.testing.assert_close(local, torch.einsum("nfji,nj->nfi", orient, vec[:, 0]))
    torch.testing.assert_close(to_global(orient, local), vec.expand(5, 4, 3))
    torch.testing.assert_close(to_local(orient[0, 0], ball(5)), ball(5) @ orient[0, 0])
    for function in (to_local, to_global):
        for shape in ((5, 3), (4, 3), (5, 1, 2), (5, 3, 3)):
            with pytest.raises(DGLError):
                function(orient, torch.zeros(shape))


def test_random_rotations_are_uniform_and_seeded():
    rotations = random_rotation(20_000, torch.float64, generator(3))
    assert rotation_error(rotations) < 1e-12
    assert torch.equal(rotations, random_rotation(20_000, torch.float64, generator(3)))
    # Under the Haar measure E[R] = 0, E[R_ij²] = 1/3 and the trace's density gives E[tr²] = 1, E[tr³] = 1.
    trace = rotations.diagonal(dim1=1, dim2=2).sum(1)
    assert rotations.mean(0).abs().max() < 0.02
    assert (rotations.square().mean(0) - 1 / 3).abs().max() < 0.01
    assert abs(trace.square().mean() - 1) < 0.05 and abs(trace.pow(3).mean() - 1) < 0.15
    assert random_rotation().shape == (3, 3) and random_rotation().dtype == torch.float32
    assert random_rotation(0).shape == (0, 3, 3)
    with pytest.raises(DGLError):
        random_rotation(2, torch.int64)
    for number in ((2, 3), -1, 2.5, "a"):
        with pytest.raises(DGLError):
            random_rotation(number)


def test_norm_has_the_values_of_torch_and_no_nan_gradient_at_zero():
    vec = torch.cat([ball(10), torch.zeros(2, 3, dtype=torch.float64)]).requires_grad_()
    torch.testing.assert_close(norm(vec), vec.norm(dim=-1), rtol=1e-14, atol=1e-150)
    for shape, dim, expected in (((5, 0), -1, (5,)), ((0, 3), 0, (3,)), ((0, 3), 1, (0,))):
        assert torch.equal(norm(torch.zeros(shape), dim), torch.zeros(expected))
    assert torch.autograd.gradgradcheck(lambda x: norm(x, 1), ball(12).view(2, 6, 3).requires_grad_())
    (first,) = torch.autograd.grad(10 * norm(vec).sum(), vec, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), vec)
    assert torch.isfinite(second).all() and torch.equal(second[10:], torch.zeros_like(second[10:]))
    torch.testing.assert_close(torch.func.vmap(norm)(vec), norm(vec))
    norm(vec).sum().backward()
    torch.testing.assert_close(vec.grad[:10], (vec / vec.norm(dim=-1, keepdim=True))[:10].detach())
    assert torch.equal(vec.grad[10:], torch.zeros(2, 3, dtype=torch.float64))


@pytest.mark.parametrize("dtype, rtol", [(torch.float32, 0.0), (torch.float32, 1e-9), (torch.float64, 0.0)])
def test_frames_are_rotations_whatever_counts_as_collinear(dtype, rtol):
    v1 = ball(500, dtype=dtype)
    frames = frames_from_vectors(v1, v1 * ball(500, 1, dtype)[:, :1], rtol=rtol)
    assert rotation_error(frames) < (1e-5 if dtype == torch.float32 else 1e-13)


def test_norms_have_derivatives_in_both_directions():
    vec = ball(5)
    hessian = torch.func.hessian(lambda vec: norm(vec).sum())(vec)
    expected = torch.func.hessian(lambda vec: vec.norm(dim=1).sum())(vec)
    torch.testing.assert_close(hessian, expected)
    vec = torch.cat([vec, torch.zeros(1, 3, dtype=vec.dtype)]).requires_grad_()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(vec, torch.ones_like(vec))
        tangent = torch.autograd.forward_ad.unpack_dual(norm(dual)).tangent
    expected = (vec[:5] / vec[:5].norm(dim=1, keepdim=True)).sum(1)
    torch.testing.assert_close(tangent.detach(), torch.cat([expected.detach(), torch.zeros(1).double()]))


def test_centroids_are_subtracted_exactly_far_from_the_origin():
    pos = (ball(40) * 1024).round() / 1024  # with an offset of a power of two, exactly representable
    sizes = torch.tensor([30, 10])
    near, far = subtract_centroid(pos, sizes), subtract_centroid(pos + 2.0**20, sizes)
    torch.testing.assert_close(far, near, rtol=0, atol=1e-14)
    torch.testing.assert_close(near[30:], pos[30:] - pos[30:].mean(0))
    assert torch.autograd.gradcheck(lambda pos: subtract_centroid(pos, sizes), ball(40).requires_grad_())
