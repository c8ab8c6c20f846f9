import math

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data.charged_particles import ChargedParticles
from dgl_orient.data.simulation import Physics, simulate

SMALL = dict(num_particles=5, size=6, horizon=50)


def arrays(dataset):
    return dataset.clouds.node


def states(dataset, prefix=""):
    """Positions, velocities and charges of all systems."""
    node, n = arrays(dataset), dataset.num_particles
    return (
        node[prefix + "pos"].reshape(-1, n, 3),
        node[prefix + "vel"].reshape(-1, n, 3),
        node["charge"].reshape(-1, n, 1),
    )


def test_an_item_is_a_cloud_with_its_state_and_target():
    dataset = ChargedParticles("val", **SMALL)
    graph = dataset[2]
    assert len(dataset) == 6 and graph.num_nodes() == 5 and graph.num_edges() == 0
    shapes = {name: tuple(value.shape) for name, value in graph.ndata.items()}
    vectors = dict.fromkeys(("pos", "vel", "target_pos", "target_vel"), (5, 3))
    assert shapes == vectors | {"charge": (5, 1)}
    assert {value.dtype for value in graph.ndata.values()} == {torch.float32}
    assert dataset.gravity is None and dataset.labels is None


def test_the_default_sizes():
    for split, size in {"train": 3000, "val": 2000, "test": 2000}.items():
        dataset = ChargedParticles(split, num_particles=2, horizon=1)
        assert len(dataset) == size and ChargedParticles(split, size=1, horizon=1)[0].num_nodes() == 10


@pytest.mark.parametrize("n", [5, 10, 20])
def test_the_states_at_step_0_have_the_distribution_asked_for(n):
    dataset = ChargedParticles(num_particles=n, size=2000, horizon=1)
    pos, vel, charge = states(dataset)
    assert pos.std() == pytest.approx((n / 5) ** (1 / 3), rel=0.02)
    assert np.abs(pos.mean((0, 1))).max() < 0.05
    assert np.allclose(np.linalg.norm(vel, axis=-1), 0.5)
    assert np.abs(vel.mean((0, 1))).max() < 0.02
    assert set(np.unique(charge)) == {-1, 1} and abs(charge.mean()) < 0.05
    other = ChargedParticles(num_particles=n, size=500, horizon=1, loc_std=1, vel_norm=0)
    assert states(other)[0].std() == pytest.approx(1, rel=0.03)
    assert not states(other)[1].any()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        dict(start=30),
        dict(box=1.0, loc_std=1, cap="component", staggered=True, dt=0.01),
        dict(force_cap=1.0, interaction_strength=0.5),
        dict(force_cap=math.inf),
    ],
)
def test_the_target_is_where_the_simulator_brings_the_system(settings):
    dataset = ChargedParticles(**SMALL, **settings)
    positions, velocities = simulate(*states(dataset), [50], physics=dataset.physics)
    target_pos, target_vel, _ = states(dataset, "target_")
    assert np.allclose(positions[0], target_pos, atol=1e-5)
    assert np.allclose(velocities[0], target_vel, atol=1e-4)


def test_a_later_start_shows_the_same_systems_later():
    first = ChargedParticles(**SMALL)
    later = ChargedParticles(**{**SMALL, "start": 50})
    assert np.array_equal(states(first, "target_")[0], states(later)[0])


def test_every_setting_reaches_the_physics():
    settings = dict(
        interaction_strength=0.5, dt=0.01, box=3.0, force_cap=2.0, cap="component", staggered=True
    )
    assert ChargedParticles(**SMALL, **settings).physics == Physics(**settings)


def test_the_same_numbers_on_every_machine():
    # 1,000 steps would make a difference in the last digit of one a difference in the first.
    node = arrays(ChargedParticles("test", size=4, seed=7))
    expected = {
        "pos": [[-0.69329, 2.47133, -0.56786], [-0.90884, 0.85893, 3.82864]],
        "vel": [[-0.0545, 0.49657, 0.02127], [-0.40001, 0.19459, -0.22832]],
        "target_pos": [[-0.90312, 3.15895, -0.41934], [-1.27811, 0.96923, 3.57343]],
        "target_vel": [[-0.32403, 0.79335, 0.2799], [-0.34024, 0.03123, -0.27742]],
    }
    for name, rows in expected.items():
        assert np.allclose(node[name][[0, -1]], rows, rtol=0, atol=1e-5)
    assert node["charge"][:10, 0].tolist() == [1, -1, 1, -1, 1, 1, 1, 1, 1, 1]


def test_the_same_arguments_give_the_same_data_and_others_other_data():
    first = arrays(ChargedParticles(**SMALL))
    again = arrays(ChargedParticles(**SMALL))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    for change in (dict(split="val"), dict(split="test"), dict(seed=1), dict(seed=-1), dict(seed=2**32)):
        other = arrays(ChargedParticles(**SMALL, **change))
        assert not np.isin(other["pos"], first["pos"]).any()


def test_more_systems_begin_with_the_fewer():
    fewer, more = (
        arrays(ChargedParticles(**SMALL, noise=0.1)),
        arrays(ChargedParticles(**{**SMALL, "size": 9}, noise=0.1)),
    )
    assert all(np.array_equal(more[name][:30], fewer[name]) for name in fewer)


def test_noise_is_on_all_that_is_seen_and_has_the_deviation_asked_for():
    settings = dict(num_particles=5, size=1000, horizon=1)
    clean, noisy = arrays(ChargedParticles(**settings)), arrays(ChargedParticles(**settings, noise=0.2))
    for name in ("pos", "vel", "target_pos", "target_vel"):
        assert (noisy[name] - clean[name]).std() == pytest.approx(0.2, rel=0.03)
    assert np.array_equal(noisy["charge"], clean["charge"])


def test_kept_data_are_read_again_and_only_for_the_same_arguments(tmp_path, monkeypatch):
    first = arrays(ChargedParticles(**SMALL, save_dir=tmp_path))
    other = arrays(ChargedParticles(**SMALL, save_dir=tmp_path, dt=0.002))
    assert not np.array_equal(first["target_pos"], other["target_pos"])
    monkeypatch.setattr(ChargedParticles, "process", lambda self: pytest.fail("computed again"))
    again = arrays(ChargedParticles(**SMALL, save_dir=tmp_path))
    assert all(np.array_equal(first[name], again[name]) for name in first)


def test_short_work_is_done_in_silence(capfd):
    ChargedParticles(**SMALL)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "change, sentence",
    [
        (dict(split="valid"), "split to be one of 'train', 'val', 'test', got 'valid'"),
        (dict(num_particles=1), "num_particles to be an integer of at least 2, got 1"),
        (dict(size=0), "size to be an integer of at least 1, got 0"),
        (dict(start=-1), "start to be an integer of at least 0"),
        (dict(horizon=1.5), "horizon to be an integer of at least 1, got 1.5"),
        (dict(loc_std=0), "loc_std to be a number above 0"),
        (dict(vel_norm=-1), "vel_norm to be a number of at least 0"),
        (dict(noise=math.nan), "noise to be a number of at least 0"),
        (dict(seed="seven"), "seed to be an integer, got 'seven'"),
        (dict(dt=None), "dt to be a number above 0"),
    ],
)
def test_bad_arguments_raise(change, sentence):
    with pytest.raises(DGLError) as error:
        ChargedParticles(**{**SMALL, **change})
    assert sentence in str(error.value)


@pytest.mark.parametrize("name", ["num_particles", "size", "start", "horizon"])
def test_more_than_can_be_computed_is_refused(name):
    with pytest.raises(DGLError, match=name):
        ChargedParticles("test", **{name: 2**62})
