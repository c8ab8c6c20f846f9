"""Several processes: the same loss as one, every cloud counted once, and only one that writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.train import distributed
from tests.train import together

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where two processes have done what ``together`` says, and this one the same alone."""
    folder = tmp_path_factory.mktemp("together")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, "-m", "tests.train.together", str(folder)],
        cwd=TOP,
        env=os.environ | {"OMP_NUM_THREADS": "1", "DGLBACKEND": "pytorch"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (folder / "said").write_text(done.stderr)
    for name in together.MODELS:
        together.train(folder / "one", name)
    return folder


@pytest.fixture(scope="module")
def reports(folder):
    return [json.loads((folder / f"report_{rank}.json").read_text()) for rank in (0, 1)]


def logged(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()]


@pytest.mark.parametrize("name", together.MODELS)
def test_the_loss_curve_is_that_of_one_process(folder, name):
    one, several = (logged(folder / which / name / "run_0" / "log.jsonl") for which in ("one", "several"))
    assert len(one) == 3
    assert [line["loss"] for line in several] == pytest.approx([line["loss"] for line in one], rel=1e-5)
    assert [line["val"] for line in several] == [pytest.approx(line["val"]) for line in one]


@pytest.mark.parametrize("name", together.MODELS)
def test_every_cloud_is_counted_once(folder, reports, name):
    log = logged(folder / "several" / name / "run_0" / "log.jsonl")
    assert {line["val"]["count"] for line in log} == {11.0}
    for each in reports:
        assert each["results"][name]["test"]["count"]["mean"] == 13.0


def test_all_processes_return_the_same(reports):
    assert reports[0]["results"] == reports[1]["results"]
    assert reports[0]["again"] == reports[1]["again"] == reports[0]["results"]["plain"]


def test_one_process_writes_and_speaks(folder, reports):
    assert reports[1]["written"] == []
    names = {Path(path).name.strip(".").removesuffix(".part") for path in reports[0]["written"]}
    assert names == {"lock", "log.jsonl", "last.pth", "run_0.pth", "results.json"}
    assert (folder / "said").read_text().count("epoch 3/3") == len(together.MODELS)


def test_what_the_main_process_finds_reaches_all(reports):
    for each in reports:
        assert each["from main"] == reports[0]["pid"]
        assert each["refused"] == "No."
        assert "not empty" in each["twice"]
        assert "A batch of 1 clouds cannot be shared by 2 processes" in each["few"]
        assert each["sum"] == 3.0


def test_norms_are_those_of_all_values_together(reports):
    for ndim, (output, grad, evaluated, statistics) in together.norms(0, 1).items():
        for rank, each in enumerate(reports):
            found = [torch.tensor(value) for value in each["norms"][ndim][:3]]
            for value, whole in zip(found, (output, grad, evaluated)):
                torch.testing.assert_close(value, torch.tensor(whole)[rank::2], rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(each["norms"][ndim][3], statistics, rtol=1e-5, atol=1e-5)


def test_edge_batch_norms_are_those_of_all_edges_together(reports):
    alone, (first, second) = together.edge_conv(0, 1), (each["edge_conv"] for each in reports)
    np.testing.assert_allclose(first["output"] + second["output"], alone["output"], rtol=1e-7, atol=1e-9)
    for one, other, both in zip(first["gradients"], second["gradients"], alone["gradients"]):
        np.testing.assert_allclose(np.add(one, other), both, rtol=1e-7, atol=1e-9)
    for each in (first, second):
        for actual, expected in zip(each["statistics"], alone["statistics"]):
            np.testing.assert_allclose(actual, expected, rtol=1e-7)


def test_alone_there_is_nothing_to_share():
    with distributed.process_group("cpu") as device:
        assert device == torch.device("cpu")
        assert (distributed.rank(), distributed.world_size(), distributed.is_main()) == (0, 1, True)
        model = torch.nn.BatchNorm1d(2)
        assert distributed.data_parallel(model) is model


@pytest.mark.parametrize("name", ["toaster", "meta", 3.5])
def test_an_unknown_device_is_a_sentence(name):
    with pytest.raises(DGLError), distributed.process_group(name):
        pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_a_sentence():
    with (
        pytest.raises(DGLError, match="'cuda' asks for GPU 0, but PyTorch sees 0"),
        distributed.process_group("cuda"),
    ):
        pass
