import pytest
import torch
from dgl import DGLError

from dgl_orient.geometry import frames_from_vectors
from dgl_orient.testing import assert_equivariant
from tests.clouds import ball

SIZES = [7, 13]


def mean_of(pos, batch_num_nodes):
    return torch.stack([part.mean(0) for part in pos.split(batch_num_nodes)])


def offsets(pos, batch_num_nodes):
    """Equivariant in every way: positions relative to the own cloud's mean."""
    parts = [part - part[:1] for part in pos.split(batch_num_nodes)]  # exact, however far away
    return torch.cat([part - part.mean(0) for part in parts])


def lopsidedness(pos, batch_num_nodes):
    """A vector of each cloud that does not depend on the order: offsets weighted by their length."""
    parts = offsets(pos, batch_num_nodes).split(batch_num_nodes)
    parts = [part * part.norm(dim=1, keepdim=True) for part in parts]
    return torch.cat([part.sum(0, keepdim=True).expand_as(part) for part in parts])


RIGHT = {
    "invariant": lambda pos, batch_num_nodes: offsets(pos, batch_num_nodes).norm(dim=1),
    "vectors": offsets,
    "frames": lambda pos, batch_num_nodes: frames_from_vectors(
        offsets(pos, batch_num_nodes), lopsidedness(pos, batch_num_nodes)
    ),
    "positions": lambda pos, batch_num_nodes: pos + offsets(pos, batch_num_nodes),
}


@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_what_is_equivariant_passes(kind, offset):
    errors = assert_equivariant(RIGHT[kind], ball(20) + offset, kind, SIZES)
    assert set(errors) == {"rotation", "translation", "permutation", "batching"}
    assert all(error <= 1e-9 for error in errors.values())


WRONG = {
    "rotation": (lambda pos, batch_num_nodes: offsets(pos, batch_num_nodes).abs(), "vectors"),
    "translation": (lambda pos, batch_num_nodes: pos, "vectors"),
    "permutation": (
        lambda pos, batch_num_nodes: torch.cat([torch.arange(float(n)) for n in batch_num_nodes]),
        "invariant",
    ),
    "batching": (lambda pos, batch_num_nodes: pos - pos.mean(0), "vectors"),
}


@pytest.mark.parametrize("symmetry", WRONG)
def test_each_broken_symmetry_is_named_with_its_size(symmetry):
    fn, kind = WRONG[symmetry]
    with pytest.raises(AssertionError, match=rf"{symmetry} changes output 0 \({kind}\) by [\d.e+-]+ of"):
        assert_equivariant(fn, ball(20), kind, SIZES, symmetries=(symmetry,))
    others = tuple(name for name in WRONG if name != symmetry)
    assert_equivariant(fn, ball(20), kind, SIZES, symmetries=others)


@pytest.mark.parametrize(
    "kind, declared, symmetry",
    [
        ("vectors", "invariant", "rotation"),
        ("positions", "vectors", "translation"),
        ("vectors", "positions", "translation"),
    ],
)
def test_a_wrong_kind_is_caught_by_the_symmetry_that_tells_them_apart(kind, declared, symmetry):
    with pytest.raises(AssertionError) as caught:
        assert_equivariant(RIGHT[kind], ball(20) + 3, declared, SIZES)
    assert {part.split()[0] for part in str(caught.value).split("; ")} == {symmetry}


def test_outputs_of_whole_clouds():
    assert_equivariant(mean_of, ball(20), "positions", SIZES, per="cloud")
    with pytest.raises(AssertionError):
        assert_equivariant(mean_of, ball(20), "positions", SIZES)


def test_further_vectors_are_rotated_and_scalars_kept():
    def fn(pos, charge, velocity):
        return charge * velocity, (velocity * (pos - pos.mean(0))).sum(1)

    inputs = dict(scalars={"charge": torch.randn(20, 1).double()}, vectors={"velocity": ball(20, seed=1)})
    assert_equivariant(fn, ball(20), ("vectors", "invariant"), **inputs)
    with pytest.raises(AssertionError, match="rotation changes output 0"):
        assert_equivariant(fn, ball(20), ("invariant", "invariant"), **inputs)
    with pytest.raises(AssertionError, match="Output 1"):
        assert_equivariant(fn, ball(20), ("vectors", "vectors"), **inputs)


def test_all_failures_are_reported():
    with pytest.raises(AssertionError, match="rotation changes.*; translation changes"):
        assert_equivariant(lambda pos: pos, ball(20), "invariant")


def test_tolerance_follows_the_type_and_can_be_set():
    def off_by(error):
        return lambda pos: torch.cat([torch.ones(len(pos), 1).to(pos), error * pos[:, :1]], 1)

    assert_equivariant(off_by(1e-6), ball(20, dtype=torch.float32))
    with pytest.raises(AssertionError, match="1e-09 is allowed"):
        assert_equivariant(off_by(1e-6), ball(20))
    assert_equivariant(off_by(1e-6), ball(20), rtol=1e-4)


def test_every_call_has_the_same_random_state():
    state = torch.get_rng_state()
    assert_equivariant(
        lambda pos: torch.rand(len(pos), dtype=pos.dtype),
        ball(20),
        symmetries=("rotation",),
    )
    assert torch.equal(torch.get_rng_state(), state)


def test_nan_and_wrong_declarations_are_refused():
    with pytest.raises(AssertionError):
        assert_equivariant(lambda pos: pos / 0 * 0, ball(20), "vectors")
    with pytest.raises(AssertionError):
        assert_equivariant(lambda pos: pos, ball(20), ("vectors", "vectors"))
    with pytest.raises(DGLError):
        assert_equivariant(lambda pos: pos, ball(20), "scalar")
    with pytest.raises(DGLError):
        assert_equivariant(lambda pos: pos, ball(20), symmetries=("mirror",))
    with pytest.raises(DGLError):
        assert_equivariant(lambda pos: pos, ball(20), symmetries=("batching",))
    for nothing in (dict(trials=0), dict(symmetries=())):
        with pytest.raises(DGLError):
            assert_equivariant(lambda pos: pos, ball(20), "positions", **nothing)
    with pytest.raises(DGLError):
        assert_equivariant(lambda pos: pos, ball(20).half())
    for output in (None, 3.0, torch.tensor(1.0), torch.arange(20)):
        with pytest.raises(AssertionError):
            assert_equivariant(lambda pos, output=output: output, ball(20))


def test_coincident_points_are_translated_too():
    with pytest.raises(AssertionError):
        assert_equivariant(lambda pos: pos.norm(dim=1), torch.ones(5, 3), symmetries=("translation",))


def test_a_function_may_work_in_place():
    pos = ball()
    kept, values = pos.clone(), {"weight": torch.ones(len(pos), 1, dtype=pos.dtype)}
    assert_equivariant(
        lambda pos, weight: pos.sub_(pos.mean(0)).mul_(weight.mul_(2)), pos, output="vectors", scalars=values
    )
    assert torch.equal(pos, kept) and bool((values["weight"] == 1).all())


def test_tensors_of_rank_2_are_rotated_on_both_sides():
    pos = ball(30)
    errors = assert_equivariant(
        lambda pos: pos.unsqueeze(2) * pos.unsqueeze(1),
        pos - pos.mean(0),
        "tensors",
        symmetries=["rotation", "permutation"],
    )
    assert max(errors.values()) < 1e-9
    with pytest.raises(AssertionError):
        assert_equivariant(lambda pos: torch.diag_embed(pos), pos, "tensors", symmetries=["rotation"])
    with pytest.raises(AssertionError):
        assert_equivariant(lambda pos: pos, pos, "tensors")
