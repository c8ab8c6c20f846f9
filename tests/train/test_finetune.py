"""Fine-tuning: which weights are taken, which are new, and that frozen ones and their statistics stay."""

from __future__ import annotations

import pytest
import torch
from dgl import DGLError

from dgl_orient.models import DGCNN
from dgl_orient.train import PointClassification, Splits, checkpoint, fit
from dgl_orient.train.finetune import initialise, set_train_mode
from tests.train.small import assert_same_weights, network, settings, splits, train


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The checkpoint of a network for ten classes."""
    folder = tmp_path_factory.mktemp("source")
    train(folder, num_epochs=1)
    return folder / "run_0.pth"


def small(num_classes: int, **arguments) -> DGCNN:
    given = network().init_args | {"num_classes": num_classes} | arguments
    return DGCNN(**given)


def test_weights_that_fit_are_taken_and_the_head_for_other_classes_is_new(source):
    weights, model = checkpoint.load(source)["weights"], small(3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    initial = initialise(model, settings(init_from=str(source)))
    assert set(initial.new) == {"head.logits.weight", "head.logits.bias"} and initial.frozen == ()
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name] if name in initial.new else weights[name])
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_frozen_weights_and_statistics_do_not_change_in_training(source, tmp_path):
    few = [item for item in splits().train if int(item[1]) < 3]
    data = Splits(few, few, {"test": few})
    options = settings(init_from=str(source), freeze=True, protocol=None)
    fit(PointClassification(3), small(3), data, options, folder=tmp_path / "a", progress=False)
    before, after = (checkpoint.load(path)["weights"] for path in (source, tmp_path / "a" / "run_0.pth"))
    changed = {name for name in after if name not in before or not torch.equal(before[name], after[name])}
    assert changed == {"head.logits.weight", "head.logits.bias"}
    options = settings(init_from=str(source), freeze=["backbone"], protocol=None)
    fit(PointClassification(10), small(10), data, options, folder=tmp_path / "b", progress=False)
    after = checkpoint.load(tmp_path / "b" / "run_0.pth")["weights"]
    kept = {name for name in before if torch.equal(before[name], after[name])}
    assert kept == {name for name in before if name.startswith("backbone.")}


def test_modules_are_in_training_mode_unless_all_their_weights_are_frozen(source):
    model = small(3)
    initialise(model, settings(init_from=str(source), freeze=["backbone", "head.embed"]))
    set_train_mode(model)
    assert model.training and model.head.training and model.head.hidden.training
    frozen = [*model.backbone.modules(), *model.head.embed.modules()]
    assert not any(module.training for module in frozen)


def test_fine_tuning_that_is_resumed_ends_with_the_same_weights(source, tmp_path, monkeypatch):
    options = dict(init_from=str(source), freeze=["backbone"])
    train(tmp_path / "whole", **options)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("dgl_orient.train.loop.check_weights", interrupt_third())
        train(tmp_path / "parts", **options)
    assert len(checkpoint.load(tmp_path / "parts" / "run_0" / "last.pth")["history"]) == 2
    train(tmp_path / "parts", resume=True, **options)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")


def interrupt_third():
    """A function that is interrupted when it is called for the third time."""
    calls = []

    def called(*_):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    return called


@pytest.mark.parametrize(
    "change, words",
    [
        (dict(freeze=["backbon"]), "backbone"),
        (dict(freeze=[""]), "no module"),
        (dict(freeze=True), "nothing is left"),
        (dict(freeze=["backbone", "head"]), "nothing is left"),
        (dict(init_from="none.pth"), "none.pth"),
        (dict(init_from="oriented-dgcn-modelnet40"), "oriented-dgcnn-modelnet40"),
    ],
)
def test_what_cannot_be_fine_tuned_is_a_sentence(source, change, words):
    with pytest.raises(DGLError, match=words) as caught:
        initialise(network(), settings(**{"init_from": str(source)} | change))
    assert "\n" not in str(caught.value)


def test_a_network_that_differs_is_refused_or_warned_of(source):
    with pytest.raises(DGLError):
        initialise(torch.nn.Linear(2, 2), settings(init_from=str(source)))
    with pytest.warns(UserWarning):
        initialise(small(10, widths=(12, 12), embed_feats=20), settings(init_from=str(source)))


def test_freezing_needs_weights_to_begin_with():
    with pytest.raises(DGLError, match="init_from"):
        settings(freeze=True)
    with pytest.raises(DGLError, match="freeze"):
        settings(freeze="backbone", init_from="x.pth")
