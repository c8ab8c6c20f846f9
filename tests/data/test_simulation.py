import math

import numpy as np
import pytest
import torch
from dgl import DGLError

import dgl_orient
from dgl_orient.data import simulation
from dgl_orient.data.simulation import Physics, energy, simulate

FREE = Physics(force_cap=math.inf)


def systems(n=5, count=6, spread=1.0, seed=0):
    """Positions, velocities and charges of systems."""
    rng = np.random.default_rng(seed)
    pos, vel = spread * rng.normal(size=(count, n, 3)), 0.5 * rng.normal(size=(count, n, 3))
    return pos, vel, rng.choice([-1.0, 1.0], (count, n, 1))


def plain_force(pos, charge, physics):
    """By adding up over every pair of one system."""
    force = np.zeros_like(pos)
    for i in range(len(pos)):
        for j in range(len(pos)):
            if i != j:
                apart = pos[i] - pos[j]
                strength = physics.interaction_strength * charge[i, 0] * charge[j, 0]
                force[i] += strength * apart / np.linalg.norm(apart) ** 3
    if physics.cap == "component":
        return np.clip(force, -physics.max_force, physics.max_force)
    norm = np.linalg.norm(force, axis=1, keepdims=True)
    return force * np.minimum(1, physics.max_force / np.maximum(norm, 1e-30))


def plain_simulate(pos, vel, charge, steps, physics):
    """A step after the other for one system: kick, drift, wall, record, kick."""
    pos, vel = pos.copy(), vel.copy()
    vel += physics.dt * (1 if physics.staggered else 0.5) * plain_force(pos, charge, physics)
    for step in range(1, steps + 1):
        pos += physics.dt * vel
        for i, axis in np.ndindex(*pos.shape):
            if physics.box is not None and abs(pos[i, axis]) > physics.box:
                side = np.sign(pos[i, axis])
                pos[i, axis] = 2 * side * physics.box - pos[i, axis]
                vel[i, axis] = -side * abs(vel[i, axis])
        force = plain_force(pos, charge, physics)
        if step == steps:
            return pos, vel + (0 if physics.staggered else 0.5 * physics.dt) * force
        vel += physics.dt * force


@pytest.mark.parametrize("n", [2, 3, 4, 5, 10])
@pytest.mark.parametrize(
    "physics",
    [
        Physics(),
        Physics(cap="component", staggered=True),
        Physics(force_cap=0.8, interaction_strength=0.7, dt=0.01),
        Physics(force_cap=0.8, cap="component", dt=0.02, box=0.9),
        Physics(interaction_strength=-2.0, box=1.5, dt=0.005, staggered=True),
    ],
    ids=str,
)
def test_equals_a_plain_loop_over_steps_and_pairs(n, physics):
    pos, vel, charge = systems(n, count=3, spread=0.6)
    pos = np.clip(pos, -0.85, 0.85)
    positions, velocities = simulate(pos, vel, charge, [0, 40], physics=physics)
    assert np.array_equal(positions[0], pos) and np.array_equal(velocities[0], vel)
    for i in range(3):
        expected_pos, expected_vel = plain_simulate(pos[i], vel[i], charge[i], 40, physics)
        assert np.allclose(positions[1, i], expected_pos, rtol=0, atol=1e-9)
        assert np.allclose(velocities[1, i], expected_vel, rtol=0, atol=1e-7)


def test_opposite_charges_move_on_the_ellipse_of_kepler():
    # The relative orbit of two masses 1 obeys r'' = -2 r / |r|^3: semi-major axis and period are known.
    apart, speed = 1.0, 1.6
    axis = 1 / (2 / apart - speed**2 / 2)
    period = 2 * math.pi * math.sqrt(axis**3 / 2)
    steps = 20_000
    pos = np.array([[apart / 2, 0, 0], [-apart / 2, 0, 0]])
    vel = np.array([[0, speed / 2, 0], [0, -speed / 2, 0]])
    physics = Physics(dt=period / steps)
    positions, velocities = simulate(pos, vel, [[1.0], [-1.0]], steps, steps // 2, physics)
    relative = positions[:, 0] - positions[:, 1]
    assert np.allclose(relative[1], [-(2 * axis - apart), 0, 0], atol=1e-5)  # the other end of the ellipse
    assert np.allclose(relative[2], relative[0], atol=1e-5)
    assert np.allclose(velocities[2], vel, atol=1e-5)


def test_equal_charges_that_meet_head_on_reverse_where_the_energy_says():
    # v0^2 + 1 / d0 = 1 / d at the turning point, where both stand still.
    pos, vel = np.array([[2.0, 0, 0], [-2.0, 0, 0]]), np.array([[-1.0, 0, 0], [1.0, 0, 0]])
    positions, velocities = simulate(pos, vel, [[1.0], [1.0]], 6000)
    apart = positions[:, 0, 0] - positions[:, 1, 0]
    assert apart.min() == pytest.approx(1 / (1 + 1 / 4), abs=1e-5)
    assert abs(velocities[apart.argmin(), 0, 0]) < 1e-3
    assert not positions[..., 1:].any()


def test_energy_is_kept_and_its_error_falls_with_the_square_of_the_step():
    pos, vel, charge = systems(count=1, spread=2.0)
    drift = []
    for dt in (0.01, 0.005):
        physics = Physics(dt=dt, force_cap=math.inf, interaction_strength=1.3)
        energies = energy(*simulate(pos, vel, charge, round(3 / dt), 10, physics), charge, physics)
        drift.append(np.abs(energies - energies[0]).max())
    assert energies[0, 0] == pytest.approx(float(energy(pos[0], vel[0], charge[0], physics)))
    assert drift[1] < 1e-5
    assert drift[0] / drift[1] == pytest.approx(4, rel=0.05)


def test_energy_of_a_hand_worked_system():
    pos = [[0.0, 0, 0], [3, 0, 0], [0, 4, 0]]
    vel = [[1.0, 0, 0], [0, 2, 0], [0, 0, 0]]
    expected = 0.5 * (1 + 4) + 2 * (-1 / 3 + 1 / 4 - 1 / 5)
    assert float(energy(pos, vel, [[1.0], [-1], [1]], Physics(2.0))) == pytest.approx(expected)


def test_momentum_and_angular_momentum_are_kept():
    pos, vel, charge = systems(n=10)
    positions, velocities = simulate(pos, vel, charge, 300, 50, FREE)
    momentum = velocities.sum(-2)
    assert np.abs(momentum - momentum[0]).max() < 1e-11
    angular = np.cross(positions, velocities).sum(-2)
    assert np.abs(angular - angular[0]).max() < 1e-9


@pytest.mark.parametrize("n", [5, 10, 20])
def test_simulation_is_rotation_and_translation_equivariant(n):
    # 1,000 steps of the usual dt, with forces that are capped.
    pos, vel, charge = systems(n, count=8, spread=(n / 5) ** (1 / 3))
    rotation = dgl_orient.geometry.random_rotation(1, torch.float64, torch.Generator().manual_seed(1))[
        0
    ].numpy()
    offset = np.array([1.0, -2, 3])
    positions, velocities = simulate(pos, vel, charge, 1000, 500)
    rotated = simulate(pos @ rotation.T + offset, vel @ rotation.T, charge, 1000, 500)
    assert np.abs(rotated[0] - (positions @ rotation.T + offset)).max() < 1e-9
    # A velocity may change in a close encounter by 0.1 in each of several steps, and its error with it.
    assert np.abs(rotated[1] - velocities @ rotation.T).max() < 1e-7


def test_a_cap_by_component_is_not_equivariant():
    pos, vel, charge = np.array([[0.03, 0.04, 0], [-0.03, -0.04, 0]]), np.zeros((2, 3)), np.ones((2, 1))
    quarter = np.array([[0.6, 0.8, 0], [-0.8, 0.6, 0], [0, 0, 1]])
    for cap, equivariant in (("norm", True), ("component", False)):
        physics = Physics(cap=cap, force_cap=50.0)
        moved = simulate(pos, vel, charge, [20], physics=physics)[0]
        rotated = simulate(pos @ quarter.T, vel, charge, [20], physics=physics)[0]
        assert np.allclose(rotated, moved @ quarter.T, atol=1e-9) == equivariant


def test_a_common_sign_of_all_charges_changes_nothing():
    pos, vel, charge = systems()
    assert np.array_equal(simulate(pos, vel, charge, [100]), simulate(pos, vel, -charge, [100]))


def test_walls_keep_the_particles_inside_and_their_energy():
    pos, vel, charge = systems(n=4, count=20)
    vel *= 20
    physics = Physics(box=2.0, interaction_strength=0.0)
    positions, velocities = simulate(pos, vel, charge, 1000, 1, physics)
    assert np.abs(positions).max() <= 2
    assert np.abs(positions).max() > 1.99
    assert np.allclose(np.abs(velocities), np.abs(vel))


def test_a_particle_far_outside_begins_inside():
    positions, velocities = simulate(
        [[7.0, 0, 0], [90.0, 0, 0]], np.ones((2, 3)), np.ones((2, 1)), 0, physics=Physics(box=5)
    )
    assert positions[0].tolist() == [[3, 0, 0], [-5, 0, 0]]
    assert velocities[0].tolist() == [[-1, 1, 1], [-1, 1, 1]]


@pytest.mark.parametrize("chunk", [1, 15, 50])
def test_neither_chunks_nor_company_change_a_digit(monkeypatch, chunk):
    pos, vel, charge = systems(n=7, count=9)
    whole = simulate(pos, vel, charge, 50, 25)
    assert np.array_equal(simulate(pos[4], vel[4], charge[4], 50, 25), np.stack(whole)[:, :, 4])
    monkeypatch.setattr(simulation, "_CHUNK", chunk)
    assert np.array_equal(simulate(pos, vel, charge, 50, 25), whole)


def test_velocities_that_are_staggered_go_on_from_any_step_exactly():
    pos, vel, charge = systems()
    physics = Physics(cap="component", staggered=True)
    positions, velocities = simulate(pos, vel, charge, 60, 30, physics)
    onward = simulate(positions[1], velocities[1], charge, [30], physics=physics)
    assert np.array_equal(onward[0][0], positions[2]) and np.array_equal(onward[1][0], velocities[2])


def test_time_can_be_reversed():
    pos, vel, charge = systems()
    positions, velocities = simulate(pos, vel, charge, [200])
    back, _ = simulate(positions[0], -velocities[0], charge, [200])
    assert np.allclose(back[0], pos, atol=1e-9)


def test_shapes_steps_and_types():
    pos, vel, charge = systems(n=3, count=8)
    positions, _ = simulate(pos, vel, charge, 10, 4)
    assert positions.shape == (3, 8, 3, 3) and positions.dtype == np.float64
    chosen, _ = simulate(pos, vel, charge, [4, 8])
    assert np.array_equal(chosen, positions[1:])
    nested, _ = simulate(pos.reshape(2, 4, 3, 3), vel.reshape(2, 4, 3, 3), charge.reshape(2, 4, 3, 1), 10, 4)
    assert np.array_equal(nested.reshape(positions.shape), positions)
    tensors, _ = simulate(
        torch.tensor(pos, requires_grad=True), torch.tensor(vel), torch.tensor(charge).float(), 10, 4
    )
    assert np.array_equal(tensors, positions)
    assert simulate(np.zeros((0, 3, 3)), np.zeros((0, 3, 3)), np.zeros((0, 3, 1)), 5)[0].shape == (6, 0, 3, 3)
    assert energy(positions, positions, charge).shape == (3, 8)


def test_particles_in_one_place_stay_finite():
    pos = np.zeros((3, 3))
    pos[2] = 1e-60
    positions, _ = simulate(pos, np.zeros((3, 3)), [[1.0], [1.0], [-1.0]], 10)
    assert np.isfinite(positions).all()
    assert np.isfinite(energy(pos, pos, [[1.0], [1.0], [-1.0]]))


@pytest.mark.parametrize(
    "change, sentence",
    [
        (dict(pos=np.zeros((2, 2))), "(..., n, 3), got (2, 2)"),
        (dict(pos=np.zeros((1, 3)), vel=np.zeros((1, 3))), "two or more particles"),
        (dict(vel=np.zeros((3, 3))), "got (2, 3) and (3, 3)"),
        (dict(pos=np.full((2, 3), np.nan)), "finite positions"),
        (dict(charge=[1.0, -1.0]), "charges of shape (2, 1)"),
        (dict(pos="here"), "arrays of numbers"),
        (dict(steps=-1), "steps to be an integer of at least 0"),
        (dict(steps=[3, 2]), "increasing ones, got [3, 2]"),
        (dict(steps=[]), "increasing ones"),
        (dict(steps=2.5), "got 2.5"),
        (dict(every=0), "every to be an integer of at least 1"),
    ],
)
def test_bad_systems_raise(change, sentence):
    good = dict(pos=np.eye(2, 3), vel=np.zeros((2, 3)), charge=np.ones((2, 1)), steps=1)
    with pytest.raises(DGLError) as error:
        simulate(**{**good, **change})
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    "change, sentence",
    [
        (dict(dt=0), "dt to be a number above 0, got 0"),
        (dict(dt="fast"), "dt to be a number above 0, got 'fast'"),
        (dict(box=-5), "box to be a number above 0"),
        (dict(box=math.inf), "box to be a number above 0"),
        (dict(force_cap=math.nan), "force_cap to be a number above 0"),
        (dict(interaction_strength=math.inf), "interaction_strength to be a finite number"),
        (dict(cap="force"), "cap to be one of 'norm', 'component'"),
    ],
)
def test_bad_physics_raise(change, sentence):
    with pytest.raises(DGLError) as error:
        Physics(**change)
    assert sentence in str(error.value)


def test_divergence_raises():
    pos, vel, charge = systems()
    with pytest.raises(DGLError):
        simulate(pos, vel, charge, 100, physics=Physics(dt=1e300, force_cap=math.inf))
