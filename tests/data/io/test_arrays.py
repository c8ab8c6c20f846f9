"""Arrays and tensors of any layout."""

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data import read_cloud
from tests.data.io.samples import POS, npy, npz, pt, put

BATCH = np.stack([POS, 2 * POS])
SAVED = {
    "a.npy": npy,
    "a.npz": lambda array: npz(array),
    "b.npz": lambda array: npz(anything=array, other=np.arange(2)),
    "c.npz": lambda array: npz(points=array),
    "a.pt": lambda array: pt(torch.tensor(array)),
    "b.pt": lambda array: pt({"data": torch.tensor(array), "epoch": 3}),
    "c.pt": lambda array: pt({"pos": torch.tensor(array)}),
}


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("shape", ["(n, 3)", "(3, n)", "(1, n, 3)", "(1, 3, n)"])
def test_the_axis_of_the_points_is_found(tmp_path, name, shape):
    array = {"(n, 3)": POS, "(3, n)": POS.T, "(1, n, 3)": POS[None], "(1, 3, n)": POS.T[None]}[shape]
    cloud = read_cloud(put(tmp_path, name, SAVED[name](array)))
    assert set(cloud) == {"pos"}
    np.testing.assert_array_equal(cloud["pos"], POS)


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("transposed", [False, True])
def test_one_of_several_clouds_is_chosen(tmp_path, name, transposed):
    path = put(tmp_path, name, SAVED[name](BATCH.swapaxes(1, 2) if transposed else BATCH))
    with pytest.raises(DGLError, match=r"There are 2 clouds in .*index=0"):
        read_cloud(path)
    for index in (0, 1):
        np.testing.assert_array_equal(read_cloud(path, index=index)["pos"], BATCH[index])
    for index in (2, -1, "a"):
        with pytest.raises(DGLError):
            read_cloud(path, index=index)


def test_records_are_read_by_their_names(tmp_path):
    kinds = [("label", "i4"), ("Z", "f4"), ("Y", "f8"), ("X", "f4"), ("name", "U3")]
    records = np.zeros(7, kinds)
    records["X"], records["Y"], records["Z"] = POS.T
    records["label"] = np.arange(7)
    cloud = read_cloud(put(tmp_path, "a.npy", npy(records)))
    np.testing.assert_array_equal(cloud["pos"], POS)
    np.testing.assert_array_equal(cloud["label"], np.arange(7))
    chosen = read_cloud(put(tmp_path, "a.npy", npy(records)), columns=("z", "y", "x"))
    np.testing.assert_array_equal(chosen["pos"], POS[:, ::-1])


def test_half_precision_and_integers(tmp_path):
    half = torch.tensor(POS).bfloat16()
    np.testing.assert_array_equal(read_cloud(put(tmp_path, "a.pt", pt(half)))["pos"], half.double().numpy())
    whole = np.arange(21).reshape(7, 3)
    np.testing.assert_array_equal(read_cloud(put(tmp_path, "a.npy", npy(whole)))["pos"], whole)


class Trap:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize(
    "content",
    [
        Trap(),
        {"pos": torch.tensor(POS), "trap": Trap()},
        [1, 2],
        {"part": torch.arange(7)},
        torch.tensor(POS).to_sparse(),
        torch.empty(7, 3, device="meta"),
        torch.tensor(POS, dtype=torch.complex64),
        "a string",
    ],
)
def test_what_is_no_cloud_of_numbers_is_a_sentence(tmp_path, content, capfd):
    with pytest.raises(DGLError, match=r"a\.pt") as caught:
        read_cloud(put(tmp_path, "a.pt", pt(content)))
    assert "\n" not in str(caught.value) and not capfd.readouterr().out
