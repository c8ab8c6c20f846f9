"""Checkpoints: round trips, whole or not at all, and nothing in them is ever run."""

from __future__ import annotations

import copy
import os
import pickle
import resource
import zipfile
from contextlib import ExitStack, contextmanager

import pytest
import torch
from dgl import DGLError
from torch import nn

from dgl_orient.train import checkpoint
from tests.train.small import assert_same_weights, final_state, network, train


@contextmanager
def small_files(size: int):
    """Within it no file can grow beyond a size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_round_trip(tmp_path):
    state = {"weights": {"a": torch.rand(3, 2)}, "history": [{"epoch": 1, "loss": 0.5}], "best": None}
    checkpoint.save(tmp_path / "new" / "net.pth", state)
    loaded = checkpoint.load(tmp_path / "new" / "net.pth")
    assert torch.equal(loaded["weights"]["a"], state["weights"]["a"])
    assert loaded["history"] == state["history"] and loaded["best"] is None
    assert os.listdir(tmp_path / "new") == ["net.pth"]


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "net.pth"
    checkpoint.save(path, {"weights": torch.ones(10)})
    before = path.read_bytes()
    with small_files(10_000), pytest.raises(DGLError):
        checkpoint.save(path, {"weights": torch.zeros(100_000)})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["net.pth"]


def test_a_full_disk_ends_a_training_that_can_go_on(tmp_path):
    train(tmp_path / "whole", num_epochs=3)
    last = tmp_path / "parts" / "run_0" / "last.pth"
    with ExitStack() as disk:

        def network_that_fills_the_disk():
            """As soon as there is a checkpoint, there is no room for another."""
            model = network()
            model.register_forward_pre_hook(
                lambda *_: disk.enter_context(small_files(5000)) if last.exists() else None
            )
            return model

        with pytest.raises(DGLError):
            train(tmp_path / "parts", network_that_fills_the_disk, num_epochs=3)
    assert len(final_state(tmp_path / "parts")["history"]) == 1
    train(tmp_path / "parts", resume=True, num_epochs=3)
    assert_same_weights(tmp_path / "whole", tmp_path / "parts")


def test_a_folder_without_permission_is_a_sentence(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DGLError):
        checkpoint.save(blocked / "net.pth", {})


class Malicious:
    """A pickle that makes a file when it is read."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda bad: bad,
        lambda bad: {"format": checkpoint.FORMAT, "version": checkpoint.VERSION, "weights": bad},
    ],
)
def test_a_malicious_checkpoint_is_refused_and_not_run(tmp_path, wrap):
    made, path = tmp_path / "made", tmp_path / "bad.pth"
    torch.save(wrap(Malicious(made)), path)
    torch.load(path, weights_only=False)  # it would work
    assert made.exists()
    made.unlink()
    with pytest.raises(DGLError, match="bad.pth"):
        checkpoint.load(path)
    assert not made.exists()


def test_a_plain_pickle_is_refused_and_not_run(tmp_path):
    made, path = tmp_path / "made", tmp_path / "bad.pth"
    path.write_bytes(pickle.dumps(Malicious(made)))
    with pytest.raises(DGLError):
        checkpoint.load(path)
    torch.save(Malicious(made), path, _use_new_zipfile_serialization=False)
    with pytest.raises(DGLError):
        checkpoint.load(path)
    assert not made.exists()


def test_a_network_in_place_of_numbers_is_refused(tmp_path):
    torch.save(nn.Linear(2, 2), tmp_path / "module.pth")
    with pytest.raises(DGLError):
        checkpoint.load(tmp_path / "module.pth")


def test_every_truncated_file_is_a_sentence(tmp_path):
    path = tmp_path / "net.pth"
    checkpoint.save(path, {"weights": {"a": torch.rand(50)}})
    content = path.read_bytes()
    for size in range(0, len(content), 97):
        path.write_bytes(content[:size])
        with pytest.raises(DGLError, match="net.pth"):
            checkpoint.load(path)


def test_a_garbled_file_is_a_sentence_or_read_as_it_was(tmp_path):
    """Never are weights read that were not written."""
    path, weights = tmp_path / "net.pth", torch.rand(200)
    checkpoint.save(path, {"weights": weights})
    content = path.read_bytes()
    refused = 0
    for place in range(0, len(content), 11):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            assert torch.equal(checkpoint.load(path)["weights"], weights)
        except DGLError as error:
            assert "net.pth" in str(error)
            refused += 1
    assert refused > 80


def test_a_compressed_file_is_refused(tmp_path):
    checkpoint.save(tmp_path / "net.pth", {"weights": torch.zeros(1000)})
    with (
        zipfile.ZipFile(tmp_path / "net.pth") as plain,
        zipfile.ZipFile(tmp_path / "bomb.pth", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in plain.namelist():
            bomb.writestr(name, plain.read(name))
    with pytest.raises(DGLError):
        checkpoint.load(tmp_path / "bomb.pth")


@pytest.mark.parametrize(
    "state",
    [
        {"state_dict": {}},
        [1, 2],
        torch.ones(2),
        {"format": checkpoint.FORMAT, "version": 99},
        {"format": checkpoint.FORMAT},
    ],
    ids=["other", "list", "tensor", "version", "none"],
)
def test_checkpoints_of_other_programs_and_versions(tmp_path, state):
    torch.save(state, tmp_path / "other.pth")
    with pytest.raises(DGLError, match="other.pth"):
        checkpoint.load(tmp_path / "other.pth")


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(DGLError, match="none.pth"):
        checkpoint.load(tmp_path / "none.pth")
    with pytest.raises(DGLError):
        checkpoint.load(tmp_path)


def test_weights_that_do_not_fit_are_named():
    weights = checkpoint.weights_of(nn.Linear(3, 2))
    with pytest.raises(DGLError, match="net.pth do not fit this Linear: weight differ"):
        checkpoint.load_weights(nn.Linear(4, 2), weights, "net.pth")
    with pytest.raises(DGLError):
        checkpoint.load_weights(nn.Linear(3, 2, bias=False), weights, "net.pth")


def test_weights_are_a_copy():
    layer = nn.Linear(2, 2)
    weights = checkpoint.weights_of(layer)
    with torch.no_grad():
        layer.weight += 1
    assert not torch.equal(weights["weight"], layer.weight)


def test_a_damaged_last_checkpoint_is_a_sentence_and_stays(tmp_path):
    last = tmp_path / "run_0" / "last.pth"
    last.parent.mkdir()
    last.write_bytes(b"PK half a file")
    with pytest.raises(DGLError, match="last.pth"):
        train(tmp_path, resume=True)
    assert last.read_bytes() == b"PK half a file"


def test_the_network_is_not_mistaken_for_the_training(tmp_path):
    train(tmp_path, num_epochs=1)
    (tmp_path / "run_0.pth").replace(tmp_path / "run_0" / "last.pth")
    with pytest.raises(DGLError, match="last.pth"):
        train(tmp_path, resume=True, num_epochs=1)


_STRANGE = {
    "a sparse one": lambda: torch.ones(2, 3).to_sparse(),
    "a compressed one": lambda: torch.ones(2, 3).to_sparse_csr(),
    "one that is not there": lambda: torch.ones(2, 3, device="meta"),
    "a nested one": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "complex numbers": lambda: torch.ones(2, 3, dtype=torch.complex64),
    "rounded numbers": lambda: torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8),
    "no tensor": lambda: 5,
}


@pytest.mark.filterwarnings("ignore:.*(beta state|prototype stage)")
@pytest.mark.parametrize("kind", _STRANGE)
def test_strange_weights_do_not_fit(kind):
    model = nn.Linear(3, 2)
    weights = checkpoint.weights_of(model) | {"weight": _STRANGE[kind]()}
    with checkpoint.no_larger_than(weights):
        pass
    with pytest.raises(DGLError, match="net.pth do not fit this Linear: weight differ"):
        checkpoint.load_weights(model, weights, "net.pth")


@pytest.mark.parametrize(
    "weights, words",
    [
        ({1: torch.ones(1)}, "weight, bias, 1 differ"),
        ({None: torch.ones(1)}, "weight, bias, None differ"),
        ({"a" * 8000: torch.ones(1)}, r"weight, bias, 'a+\.\.\.a+' differ"),
        ({"\x1b[2J": torch.ones(1)}, r"weight, bias, '\\x1b\[2J' differ"),
        (None, "weight, bias differ"),
    ],
)
def test_names_of_strange_weights_fit_on_a_line(weights, words):
    with pytest.raises(DGLError, match=words) as raised:
        checkpoint.load_weights(nn.Linear(3, 2), weights, "net.pth")
    assert len(str(raised.value)) < 300 and str(raised.value).isprintable()


@pytest.mark.parametrize("name", ["format", "version"])
def test_a_head_of_tensors_is_refused(tmp_path, name):
    state = {"format": checkpoint.FORMAT, "version": checkpoint.VERSION, name: torch.zeros(2)}
    torch.save(state, tmp_path / "net.pth")
    with pytest.raises(DGLError):
        checkpoint.load(tmp_path / "net.pth")


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": None},
        {"optimizer": torch.ones(2)},
        {"rate": 5},
        {"result": 5},
        {"model": None},
        {"history": [1]},
        {"history": 3},
        {"best": 5},
        {"settings": 5},
        {"recipe": {"model": torch.ones(3)}},
        {"best_weights": None},
    ],
    ids=str,
)
def test_a_state_that_is_none_is_a_sentence(tmp_path, changes):
    train(tmp_path, num_epochs=1)
    last = tmp_path / "run_0" / "last.pth"
    state = {
        name: value for name, value in checkpoint.load(last).items() if name not in ("format", "version")
    }
    checkpoint.save(last, state | changes)
    with pytest.raises(DGLError, match="last.pth"):
        train(tmp_path, resume=True, num_epochs=1)


def test_an_optimizers_state_of_another_network_is_a_sentence(tmp_path):
    train(tmp_path, num_epochs=1)
    last = tmp_path / "run_0" / "last.pth"
    state = {
        name: value for name, value in checkpoint.load(last).items() if name not in ("format", "version")
    }
    changed = copy.deepcopy(state)
    for values in changed["optimizer"]["state"].values():
        values["exp_avg"] = torch.zeros(7)
    checkpoint.save(last, changed)
    with pytest.raises(DGLError):
        train(tmp_path, resume=True, num_epochs=1)
    state["optimizer"]["param_groups"][0]["lr"] = "a"
    checkpoint.save(last, state)
    with pytest.raises(DGLError):
        train(tmp_path, resume=True, num_epochs=1)


def test_too_little_memory_does_not_call_a_training_wrong(tmp_path, monkeypatch):
    train(tmp_path, num_epochs=1)

    def fail(self, state):
        raise MemoryError

    monkeypatch.setattr(torch.optim.Optimizer, "load_state_dict", fail)
    with pytest.raises(DGLError):
        train(tmp_path, resume=True, num_epochs=1)


def _with_directory(path, entries):
    """An archive of one member, with other entries in its directory."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", b"0" * 100_000)
        (member,) = archive.infolist()
        for name in entries:
            other = copy.copy(member)
            other.filename = name
            archive.filelist.append(other)
            archive.NameToInfo[name] = other


@pytest.mark.parametrize(
    "entries",
    [[f"archive/data/{number}" for number in range(20_000)], ["archive/data.pkl"], ["archive/version"]],
)
def test_members_on_the_same_bytes_are_refused_at_once(tmp_path, entries, monkeypatch):
    _with_directory(tmp_path / "bomb.pth", entries)
    monkeypatch.setattr(zipfile.ZipFile, "testzip", lambda archive: pytest.fail("they were read"))
    with pytest.raises(DGLError):
        checkpoint.load(tmp_path / "bomb.pth")


def test_more_members_than_any_network_has_are_refused_at_once(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "many.pth", "w") as archive:
        for number in range(50_001):
            archive.writestr(f"archive/data/{number}", b"")
    monkeypatch.setattr(zipfile.ZipFile, "testzip", lambda archive: pytest.fail("they were read"))
    with pytest.raises(DGLError):
        checkpoint.load(tmp_path / "many.pth")
