"""Training: repeatable, chosen by validation, resumed, and sentences for what goes wrong."""

from __future__ import annotations

import json
import math

import pytest
import torch
from dgl import DGLError
from torch import nn

from dgl_orient.data import ChargedParticles, Shapes
from dgl_orient.models import DGCNN, RSCNN, OrientedDGCNNSeg
from dgl_orient.train import bfloat16, checkpoint
from dgl_orient.train.loop import Splits, fit
from dgl_orient.train.settings import Settings
from dgl_orient.train.tasks import NBody, NormalEstimation, PartSegmentation, PointClassification, Task
from tests.train.small import assert_same_weights, final_state, network, settings, splits, train


def failing(call: int, error: BaseException):
    """A network that raises an error when it is called for the given time, from 1."""
    model, calls = network(), []

    def fail(*_) -> None:
        calls.append(None)
        if len(calls) == call:
            raise error

    model.register_forward_pre_hook(fail)
    return model


#: Calls of the network in an epoch: batches of training and of validation.
CALLS = 22 // 5 + math.ceil(13 / 4)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an undisturbed training of two runs."""
    folder = tmp_path_factory.mktemp("whole")
    train(folder, num_runs=2)
    return folder


def test_the_same_seed_gives_the_same_weights(whole, tmp_path):
    torch.rand(100)  # what is sampled elsewhere has no influence
    train(tmp_path, num_runs=2)
    assert_same_weights(whole, tmp_path, num_runs=2)


def test_another_seed_gives_other_weights(whole, tmp_path):
    train(tmp_path, seed=8)
    with pytest.raises(AssertionError):
        assert_same_weights(whole, tmp_path)
    # The second run of one is the first of the other.
    first, second = (
        checkpoint.load(path)["weights"] for path in (whole / "run_1.pth", tmp_path / "run_0.pth")
    )
    assert all(bool((first[name] == second[name]).all()) for name in first)


def test_worker_processes_change_nothing(whole, tmp_path):
    train(tmp_path, num_workers=1)
    assert_same_weights(whole, tmp_path)


def test_drawing_leaves_the_global_generator_alone(tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    train(tmp_path / "a", num_epochs=1)
    assert torch.equal(torch.rand(3), expected)


def test_the_files(whole):
    results = json.loads((whole / "results.json").read_text())
    log = [json.loads(line) for line in (whole / "run_1" / "log.jsonl").open()]
    assert [line["epoch"] for line in log] == [1, 2, 3, 4]
    assert all(line.keys() == {"epoch", "loss", "val", "lr", "seconds"} for line in log)
    assert results["recipe"]["model"] == {"name": "dgcnn"} and results["settings"]["num_runs"] == 2
    assert results["versions"].keys() == {"python", "dgl-orient", "torch", "dgl", "numpy"}
    saved = checkpoint.load(whole / "run_0.pth")
    assert saved["metadata"]["class_names"] == splits().train.class_names
    assert saved["task"] == "pointcls" and saved["recipe"] == results["recipe"]
    assert saved["tests"] == results["runs"][0]["tests"]
    assert not list(whole.rglob("*.part"))


class Chosen(PointClassification):
    """A task whose metric on the validation set is given in advance, and counts how often it is asked."""

    def __init__(self, values: list[float]) -> None:
        super().__init__(10)
        self.values, self.asked = values, []

    def metric(self):
        metric = super().metric()
        metric.result = lambda: (
            self.asked.append(metric) or {"accuracy": (self.values + [0.0])[len(self.asked) - 1]}
        )
        return metric


def test_validation_chooses_the_first_of_the_best_epochs_and_the_test_is_scored_once(tmp_path):
    task = Chosen([0.1, 0.5, 0.3, 0.5])
    results = fit(task, network(), splits(), settings(), folder=tmp_path / "a", progress=False)
    assert results["runs"][0]["best_epoch"] == 2
    assert len(task.asked) == 4 + 1  # every epoch's validation, and the test


def test_best_weights_are_those_of_the_best_epoch(tmp_path):
    options = dict(lr_scheduler={"name": "none"})
    fit(Chosen([0.1, 0.5, 0.3]), network, splits(), settings(num_epochs=3, **options), None, tmp_path / "a")
    fit(Chosen([0.1, 0.5]), network, splits(), settings(num_epochs=2, **options), None, tmp_path / "b")
    long, short = (checkpoint.load(tmp_path / name / "run_0.pth") for name in "ab")
    assert long["epoch"] == short["epoch"] == 2
    assert all(torch.equal(long["weights"][name], short["weights"][name]) for name in long["weights"])


def test_the_moving_average_is_what_is_validated_and_kept(tmp_path):
    model, steps, last = network(), [], {}

    class Recorded(PointClassification):
        def forward(self, net, graph, label):
            if net.training:
                steps.append({name: value.clone() for name, value in model.state_dict().items()})
            elif net is not model:  # in validation, after the last step
                last.update({name: value.clone() for name, value in model.state_dict().items()})
            return super().forward(net, graph, label)

    options = dict(num_epochs=1, ema_decay=0.6)
    fit(Recorded(10), model, splits(), settings(**options), folder=tmp_path, progress=False)
    kept, after = checkpoint.load(tmp_path / "run_0.pth")["weights"], [*steps[1:], last]
    assert len(after) > 2 and any(not torch.equal(value, kept[name]) for name, value in after[-1].items())
    for name in (each for each, value in kept.items() if value.is_floating_point()):
        average = after[0][name]
        for number, weights in enumerate(after[1:], start=1):
            decay = min(0.6, (1 + number) / (10 + number))
            average = decay * average + (1 - decay) * weights[name]
        torch.testing.assert_close(kept[name], average)
        torch.testing.assert_close(model.state_dict()[name], average)


def test_gradients_are_clipped_by_their_common_norm(tmp_path):
    """With plain gradient descent a step is as long as the clipped gradient times the learning rate."""
    torch.manual_seed(0)
    model = network()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    options = dict(num_epochs=1, train_batch_size=22, lr_scheduler={"name": "none"}, grad_clip=1e-3)
    train(tmp_path, model, optimizer={"name": "sgd", "lr": 10.0, "momentum": 0.0}, **options)
    steps = [(after.detach() - old).flatten() for after, old in zip(model.parameters(), before)]
    assert float(torch.cat(steps).norm()) == pytest.approx(1e-2, rel=1e-3)


def test_early_stopping(tmp_path):
    task = Chosen([0.1, 0.5, 0.3, 0.5, 0.4, 0.9])
    chosen = settings(num_epochs=20, early_stop={"patience": 3})
    run = fit(task, network, splits(), chosen, None, tmp_path, progress=False)["runs"][0]
    assert (run["epochs"], run["best_epoch"]) == (5, 2)


def test_it_learns(tmp_path):
    """The loss falls, and two kinds of solids are distinguished."""
    classes = ["bottle", "table"]
    sets = [
        Shapes(split, num_points=64, num_shapes=24, classes=classes) for split in ("train", "val", "test")
    ]
    results = fit(
        PointClassification(2, label_smoothing=0.1),
        lambda: DGCNN(2, widths=(16,), embed_feats=32, head_feats=(), k=8, dynamic=False),
        Splits(sets[0], sets[1], {"test": sets[2]}),
        Settings(num_epochs=10, train_batch_size=4, optimizer={"lr": 3e-3}, grad_clip=5.0, protocol=None),
        folder=tmp_path,
        progress=False,
    )
    assert results["metrics"]["test"]["accuracy"]["mean"] >= 0.9


@pytest.mark.parametrize(
    "name, scheduler, ema_decay",
    [
        ("adam", {"name": "cosine", "warmup_epochs": 1}, None),
        ("adamw", {"name": "step", "step_size": 1, "gamma": 0.5}, 0.8),
        ("sgd", {"name": "plateau", "patience": 0}, None),
    ],
    ids=["adam", "adamw", "sgd"],
)
def test_a_stopped_training_goes_on_to_the_same_weights(tmp_path, name, scheduler, ema_decay):
    options = dict(optimizer={"name": name, "lr": 0.01}, lr_scheduler=scheduler, grad_clip=1.0)
    options |= dict(ema_decay=ema_decay)
    train(tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", lambda: failing(2 * CALLS + 2, KeyboardInterrupt()), **options)
    train(tmp_path / "parts", resume=True, **options)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")
    logs = [
        [json.loads(line) | {"seconds": 0} for line in (tmp_path / part / "run_0" / "log.jsonl").open()]
        for part in ("whole", "parts")
    ]
    assert logs[0] == logs[1]


def test_a_log_with_lines_of_lost_epochs_is_cut(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, lambda: failing(2 * CALLS + 2, KeyboardInterrupt()))
    log = tmp_path / "run_0" / "log.jsonl"
    log.write_text(log.read_text() + '{"epoch": 3, "loss": 1.0}\n{"epo')
    train(tmp_path, resume=True)
    assert [json.loads(line)["epoch"] for line in log.open()] == [1, 2, 3, 4]


def test_a_finished_training_says_so_and_returns_its_results(whole, capsys):
    before = (whole / "run_1" / "last.pth").read_bytes()
    results = train(whole, resume=True, progress=True, num_runs=2)
    assert results == json.loads((whole / "results.json").read_text())
    assert "Run 1 in" in (said := capsys.readouterr().err) and "finished" in said
    assert (whole / "run_1" / "last.pth").read_bytes() == before


def test_resume_without_anything_to_resume_begins(tmp_path):
    assert train(tmp_path / "new", resume=True)["runs"][0]["epochs"] == 4


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DGLError, match="resume.*save_path"):
        train(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "mine.txt"]


def test_resuming_with_another_recipe_names_what_differs(whole):
    with pytest.raises(DGLError, match=r"num_epochs, optimizer\.lr differ"):
        train(whole, resume=True, num_runs=2, num_epochs=3, optimizer={"lr": 0.5})
    with pytest.raises(DGLError, match=r"model\.name differ"):
        recipe = {"pipeline_name": "pointcls", "model": {"name": "rscnn"}}
        fit(PointClassification(10), network, splits(), settings(num_runs=2), recipe, whole, resume=True)


def test_resuming_with_another_network_is_a_sentence(whole):
    with pytest.raises(DGLError, match="do not fit this DGCNN.*embed"):
        train(whole, lambda: network(embed_feats=32), resume=True, num_runs=2)


def poisoned(call: int):
    """A network whose output is NaN from the given call on."""
    model, calls = network(), []

    def poison(module, inputs, output):
        calls.append(None)
        return output * torch.nan if len(calls) >= call else output

    model.register_forward_hook(poison)
    return model


@pytest.mark.parametrize(
    "call, words", [(2 * CALLS + 3, "loss is nan for batch 3"), (2 * CALLS + 5, "outputs")]
)
def test_nan_is_a_sentence_and_the_last_good_checkpoint_stays(whole, tmp_path, call, words):
    with pytest.raises(
        DGLError, match=f"{words}.* in epoch 3;.*optimizer.lr.*last good checkpoint is .*last.pth"
    ):
        train(tmp_path, lambda: poisoned(call))
    assert len(final_state(tmp_path)["history"]) == 2
    train(tmp_path, resume=True)
    assert_same_weights(whole, tmp_path)


def test_weights_that_became_infinite_in_the_last_batch_are_not_kept(tmp_path):
    def make() -> nn.Module:
        model = network()
        model.head.logits.weight.register_hook(lambda gradient: gradient * torch.inf)
        return model

    # The only batch of the epoch: its loss is still finite.
    with pytest.raises(DGLError, match="weights head.logits.* in epoch 1;.*there is no checkpoint yet"):
        train(tmp_path, make, train_batch_size=22)
    assert not (tmp_path / "run_0").exists() and not (tmp_path / "run_0.pth").exists()


def test_features_that_became_infinite_name_the_learning_rate(tmp_path):
    def overflow(*arguments) -> torch.Tensor:
        batches.append(arguments)
        return arguments[2] * (1 if len(batches) == 1 else torch.inf)

    def make() -> nn.Module:
        model = network(dynamic=True)  # it searches neighbours among the features of the first layer
        model.backbone.convs[0].register_forward_hook(overflow)
        return model

    batches: list = []
    with pytest.raises(DGLError, match="batch 2 in epoch 1; lower optimizer.lr"):
        train(tmp_path, make)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.cuda.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 4 bytes."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory_is_a_sentence(tmp_path, error):
    with pytest.raises(DGLError, match="Out of memory in epoch 2.*train_batch_size, which is 5.*last.pth"):
        train(tmp_path, lambda: failing(CALLS + 2, error))
    assert len(final_state(tmp_path)["history"]) == 1


def test_another_error_is_left_as_it_is(tmp_path):
    with pytest.raises(RuntimeError, match="a mistake"):
        train(tmp_path, lambda: failing(1, RuntimeError("a mistake")))


def test_a_batch_of_one_cloud_is_a_sentence(tmp_path):
    with pytest.raises(DGLError, match="raise train_batch_size"):
        train(tmp_path, train_batch_size=1)


def test_what_cannot_be_trained_is_a_sentence(tmp_path):
    with pytest.raises(DGLError):
        train(tmp_path, network(), num_runs=2)
    with pytest.raises(DGLError):
        fit(PointClassification(10), network, Splits(splits().train, [], {}), settings(), folder=tmp_path)
    with pytest.raises(DGLError):
        fit(PointClassification(10), network, splits(), settings(), folder=tmp_path, device="toaster")


def test_bfloat16_is_refused_where_it_would_crash(tmp_path, monkeypatch):
    monkeypatch.setattr(bfloat16, "_PRODUCT", "import os; os.abort()")
    bfloat16._works.cache_clear()
    with pytest.raises(DGLError, match="ONEDNN_MAX_CPU_ISA"):
        train(tmp_path, bf16=True)
    assert not any(tmp_path.iterdir())
    monkeypatch.undo()
    bfloat16._works.cache_clear()
    bfloat16.check_bfloat16(torch.device("cpu"))


def test_bfloat16_is_of_training_alone_and_weights_stay_in_float32(tmp_path):
    dtypes = []

    def make() -> RSCNN:
        model = RSCNN.light(10, widths=(4, 8, 8), level_sizes=(8,), k=(4,), head_feats=(8,))
        model.logits.register_forward_hook(
            lambda module, inputs, output: dtypes.append((module.training, output.dtype))
        )
        return model

    train(tmp_path, make, bf16=True, num_epochs=2)
    assert set(dtypes) == {(True, torch.bfloat16), (False, torch.float32)}
    weights = checkpoint.load(tmp_path / "run_0.pth")["weights"].values()
    assert {value.dtype for value in weights} == {torch.float32, torch.int64}


def segmentation(num_outputs: int, **arguments) -> OrientedDGCNNSeg:
    small = dict(widths=(8,), embed_feats=16, head_feats=(8,), k=4, num_orientations=1, level_sizes=(8,))
    return OrientedDGCNNSeg.light(num_outputs, orientation_k=6, **(small | arguments))


class Drift(nn.Module):
    """Straight on, by a learned time."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Parameter(torch.zeros(()))

    def forward(self, graph):
        return graph.ndata["pos"] + self.time * graph.ndata["vel"]


def _tasks() -> dict[str, tuple[Task, object, tuple]]:
    shapes = [Shapes(split, num_points=32, num_shapes=12) for split in ("train", "val", "test")]
    charged = [
        ChargedParticles(split, num_particles=3, size=8, horizon=20) for split in ("train", "val", "test")
    ]
    return {
        "partseg": (
            PartSegmentation(shapes[0].class_parts, 0.1),
            lambda: segmentation(shapes[0].num_parts, num_categories=10),
            shapes,
        ),
        "normals": (NormalEstimation(), lambda: segmentation(1, out="vectors"), shapes),
        "nbody": (NBody(), Drift, charged),
    }


@pytest.mark.parametrize("name", ["partseg", "normals", "nbody"])
def test_every_task_trains(tmp_path, name):
    task, make, (first, val, test) = _tasks()[name]
    results = fit(
        task,
        make,
        Splits(first, val, {"test": test}),
        Settings(num_epochs=3, train_batch_size=4, optimizer={"lr": 0.01}),
        folder=tmp_path,
        progress=False,
    )
    history = final_state(tmp_path)["history"]
    assert history[-1]["loss"] < history[0]["loss"]
    assert task.main_metric in results["metrics"]["test"]
