"""Evaluations of networks that were trained on ModelNet40."""

from __future__ import annotations

import pytest
import torch

from benchmarks.experiments.corruptions import CASES, thin_out
from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.modelnet40.evaluation import Network

ORIENTED, PLAIN = "cls_oriented-dgcnn_z_2_0", "cls_dgcnn_z_2_0"


def _networks(folder, name: str) -> dict:
    return read_json(folder / "quick" / "results" / f"{name}.json")["networks"]


def _record(folder, name: str) -> dict:
    return read_json(folder / "quick" / "results" / "runs" / f"{name}.json")


def _percents(metrics: dict) -> dict:
    return {name: round(100 * value, 3) for name, value in metrics.items()}


def test_predictions_of_oriented_networks_are_rotation_invariant(trained, call, capsys):
    call(trained, f"rotation_consistency {ORIENTED} {PLAIN} cls_dgcnn_so3_2_0", exit_code=2)
    captured = capsys.readouterr()
    assert "1 of 3 failed: cls_dgcnn_so3_2_0" in captured.err and "train it first" in captured.out
    networks = _networks(trained, "rotation_consistency")
    oriented, plain = networks[ORIENTED], networks[PLAIN]
    assert oriented["changed_predictions_percent"] == oriented["changed_shapes_percent"] == 0
    assert oriented["num_predictions"] == 120
    assert oriented["logit_difference"]["max"] < 1e-3 < plain["logit_difference"]["median"]
    assert plain["changed_predictions_percent"] <= plain["changed_shapes_percent"]


def test_uncorrupted_clouds_have_the_accuracy_of_the_protocol(trained, call, monkeypatch):
    few = {"jitter": (0.0, 0.5), "dropout": (0.9,), "outliers": (0.2,), "density": (0.0, 8.0)}
    monkeypatch.setattr("benchmarks.experiments.modelnet40.evaluation.CORRUPTIONS", few)
    call(trained, f"robustness {PLAIN}")
    record, tests = _networks(trained, "robustness")[PLAIN], _record(trained, PLAIN)["tests"]
    for name in ("z/z", "z/so3"):
        assert record[name]["clean"] == record[name]["jitter"]["0.0"] == _percents(tests[name])
        assert list(record[name]["density"]) == ["0.0", "8.0"]
    # Random numbers depend on the index of a shape alone: a second evaluation gives the same.
    (trained / "quick" / "results" / "robustness.json").rename(trained / "first.json")
    call(trained, f"robustness {PLAIN}")
    assert _networks(trained, "robustness") == read_json(trained / "first.json")["networks"]


def test_robust_networks_are_measured_on_corrupted_shapes_and_the_best_is_in_the_summary(trained, call):
    call(trained, f"robust {ORIENTED} {PLAIN} --every 600")
    networks = _networks(trained, "robust")
    assert all(set(each["cases"]) == set(CASES) for each in networks.values())
    assert all(0 <= value <= 100 for each in networks.values() for value in each["cases"].values())
    call(trained, "summary")
    folder = trained / "quick" / "results"
    best = max(networks.values(), key=lambda each: sum(each["cases"].values()))
    assert read_json(folder / "summary.json")["robust"] == best["cases"]
    assert f"robust {ORIENTED} --every 600" in (folder / "README.md").read_text()


def test_splits_have_the_accuracy_of_the_training(trained, call, monkeypatch):
    call(trained, f"splits {ORIENTED}")
    splits, record = _networks(trained, "splits")[ORIENTED], _record(trained, ORIENTED)
    assert splits["val"] == _percents(record["val"])
    assert splits["test"] == _percents(record["tests"]["z/z"])
    assert set(splits["train"]) == set(splits["test"])
    monkeypatch.setattr(Network, "predict", lambda *_: pytest.fail("evaluated again"))
    call(trained, f"splits {ORIENTED}")


def test_votes_are_recorded_by_their_number(trained, call):
    call(trained, f"voting {ORIENTED}")
    figures = _networks(trained, "voting")[ORIENTED]
    assert list(figures["test"]) == ["single", "1", "2", "4", "8", "16"]
    assert figures["test"]["single"] == _percents(_record(trained, ORIENTED)["tests"]["z/so3"])


def test_predictions_as_users_get_them(trained, call):
    call(trained, f"predictions {ORIENTED} --every 1")
    figures = _networks(trained, "predictions")[ORIENTED]
    assert figures["shapes"] == figures["strays"]["shapes"] == 12
    assert list(figures["votes"]) == ["1", "8"] and "unknown" not in figures["votes"]["1"]  # not calibrated
    assert figures["strays"]["clean"]["removed"] == figures["votes"]["1"]["accuracy"]


def test_density_decreases_along_a_direction():
    generator = torch.Generator().manual_seed(0)
    pos = torch.rand(20000, 3, generator=generator)
    kept, index = thin_out(pos, 0.0, generator)
    assert torch.equal(kept, pos) and torch.equal(index, torch.arange(len(pos)))
    # On a line the density is e^(-4t): the fraction that is left is (1 - e^-4) / 4, its mean at 0.2313.
    line = torch.linspace(0, 1, 20001)[:, None] * torch.tensor([1.0, 0, 0])
    kept, index = thin_out(line, 4.0, generator)
    mean = kept[:, 0].mean()
    assert torch.equal(kept, line[index]) and len(kept) / len(line) == pytest.approx(0.2454, abs=0.01)
    assert min(mean, 1 - mean) == pytest.approx(0.2313, abs=0.01)
    assert len(thin_out(pos, 1.0, generator, max_points=100)[1].unique()) == 100
    assert len(thin_out(pos[:5], 1e9, generator)[0]) == 1


def test_summary_writes_page_and_plots(trained, call):
    call(trained, "summary")
    results = trained / "quick" / "results"
    page = (results / "README.md").read_text()
    accuracy = 100 * _record(trained, PLAIN)["tests"]["z/z"]["accuracy"]
    assert f"| dgcnn | {accuracy:.1f} |" in page and "{" not in page
    assert str(trained) not in page
    for name in ("accuracy", "validation_curves"):
        assert f"![{name}.png]({name}.png)" in page
        assert (results / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert read_json(results / "summary.json")["cls"]["dgcnn"]["z/z"] == pytest.approx(accuracy, abs=0.005)
