"""Tasks on molecules, from recipes to checkpoints and back."""

import pytest
import torch
from dgl import DGLError

from dgl_orient import pretrained
from dgl_orient.config.build import build
from dgl_orient.config.recipe import RecipeError
from dgl_orient.data import QM9
from dgl_orient.models import OrientedMol, PaiNN
from dgl_orient.train import MoleculeProperties, MoleculeTensors, Settings, Splits, fit
from dgl_orient.train.predict import predict
from tests.go import tiny


@pytest.mark.parametrize("pipeline", ["molprop", "moltensor"])
def test_a_checkpoint_predicts_what_was_scored(pipeline):
    trained = pretrained(tiny.trained(pipeline))
    test = build(trained.recipe).splits.tests["test"]
    outputs = torch.stack(list(predict(trained.network, trained.task, test, progress=False)))
    metric = trained.task.metric()
    metric.update(outputs, torch.as_tensor(test.labels))
    assert metric.result() == pytest.approx(trained.scores["test"], rel=1e-5)


def test_the_loss_of_tensors_does_not_depend_on_the_axes():
    output, target = torch.randn(2, 4, 3, 3)
    rotation = torch.linalg.qr(torch.randn(3, 3))[0]
    task = MoleculeTensors(["polarizability"], [2.0])
    rotated = [rotation @ each @ rotation.T for each in (output, target)]
    expected, actual = (task.loss(a, None, b)[0] for a, b in ((output, target), rotated))
    torch.testing.assert_close(actual, expected)


def test_a_network_made_in_python_is_known_by_its_checkpoint(tmp_path):
    options = {key: value for key, value in tiny.molecule_data("molprop").items() if key != "name"}
    train, val, test = (QM9(split, **options) for split in ("train", "val", "test"))
    task = MoleculeProperties(train.targets, train.outputs["scales"], train.units)
    network = PaiNN(**train.outputs, hidden_feats=8, num_layers=1)
    settings = Settings(num_epochs=1)
    fit(task, network, Splits(train, val, {"test": test}), settings, folder=tmp_path, progress=False)
    trained = pretrained(tmp_path / "run_0.pth")
    assert trained.metadata["targets"] == ["alpha", "gap"] and trained.metadata["units"] == ["Bohr³", "eV"]
    network.eval()
    graph, _ = test[0]
    torch.testing.assert_close(trained.network(graph), network(graph))


def test_targets_must_fit_the_pipeline():
    recipe = tiny.recipe("molprop", data={"targets": ["polarizability"]})
    with pytest.raises(DGLError, match="use moltensor"):
        build(recipe)
    with pytest.raises(RecipeError, match="'schnet' is not for moltensor"):
        tiny.recipe("moltensor", model={"name": "schnet"})


def test_a_network_for_other_targets_is_a_sentence():
    task, output = MoleculeProperties(["u0"], [1.0]), torch.zeros(2, 3)
    with pytest.raises(DGLError):
        task.loss(output, None, torch.zeros(2, 1))
    with pytest.raises(DGLError):
        MoleculeProperties(["u0", "u"], [1.0])
    assert OrientedMol().readout.scale.tolist() == [1.0]
