"""Rollouts of N-body networks and of the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.nbody import rollout
from dgl_orient.data.simulation import Physics, simulate


def test_first_step_has_the_test_error(trained, call):
    call(trained, "rollout --epochs 2")
    results = trained / "quick" / "results"
    methods = read_json(results / "rollout.json")["methods"]
    for model in ("oriented-nbody", "egnn"):
        error = read_json(results / "runs" / f"n10_{model}_0_2.json")["tests"]["test"]["mse"]
        first, given = methods[model]["mse"][0], methods[model + rollout.TRUE_VELOCITIES]["mse"][0]
        assert first == given == pytest.approx(error, rel=1e-3)
    assert methods["simulator"]["mse"][0] == 0 and methods["simulator"]["mse"][9] > 0


def test_rollout_needs_trained_networks(tmp_path, call, capsys):
    call(tmp_path, "rollout", exit_code=2)
    assert "train it first" in capsys.readouterr().err


def test_uniform_motion_and_divergence():
    pos, vel, charge = np.zeros((2, 3, 3)), np.ones((2, 3, 3)), np.ones((2, 3, 1))

    def step(pos, vel, charge):
        return pos + 2 * vel * np.array([1, 1e3])[: len(pos), None, None]

    positions, velocities = rollout.roll_out(step, pos, vel, charge, time=2.0)
    np.testing.assert_array_equal(positions[:, 0, 0, 0], 2 * np.arange(11))
    np.testing.assert_array_equal(velocities[:, 0], 1)
    assert np.isnan(positions[1:, 1]).all()


def test_simulator_with_true_velocities_is_the_ground_truth():
    rng = np.random.default_rng(0)
    pos, vel = rng.standard_normal((2, 4, 5, 3))
    charge = np.ones((4, 5, 1))  # they repel each other, so that rounding does not grow
    truth, velocities = simulate(pos, vel, charge, list(range(0, 110, 10)))
    step = rollout._simulator_step(Physics(), 10)
    positions, _ = rollout.roll_out(step, pos, vel, charge, 0.01, velocities)
    np.testing.assert_allclose(positions, truth, rtol=0, atol=1e-9)
