"""QM9: splits, units, and polarizabilities in the axes of the positions."""

import csv

import numpy as np
import pytest
import torch
from dgl import DGLError

from dgl_orient.data import QM9
from dgl_orient.data.polarizability_frames import align_polarizabilities, thole_polarizabilities
from dgl_orient.data.qm9_tables import PROPERTIES, read_tables
from dgl_orient.geometry import to_global
from tests.molecules import write_qm9


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    return folder, write_qm9(folder)


def test_splits_are_disjoint_complete_and_seeded(tables):
    folder, molecules = tables
    indices = [QM9(split, raw_dir=folder).clouds.cloud["index"] for split in ("train", "val", "test")]
    assert sorted(np.concatenate(indices).tolist()) == list(range(1, len(molecules) + 1))
    assert [len(each) for each in indices] == [34, 3, 3]
    other = QM9("train", raw_dir=folder, split_seed=1).clouds.cloud["index"]
    assert not np.array_equal(other, indices[0])
    small, large = (QM9("train", raw_dir=folder, size=n).clouds.cloud["index"] for n in (5, 20))
    assert set(small) < set(large) < set(indices[0])


def test_a_molecule_is_the_one_of_the_table(tables):
    folder, molecules = tables
    dataset = QM9("val", targets=["alpha"], raw_dir=folder)
    for number, index in enumerate(dataset.clouds.cloud["index"]):
        element, pos, tensor = molecules[index - 1]
        graph, target = dataset[number]
        assert graph.ndata["element"].tolist() == element.tolist()
        torch.testing.assert_close(graph.ndata["pos"], torch.tensor(pos, dtype=torch.float32))
        assert float(target) == pytest.approx(np.trace(tensor) / 3, rel=1e-6)


def test_energies_of_atomization_are_those_of_the_literature(tmp_path):
    write_qm9(tmp_path, 2)
    path = tmp_path / "qm9_part1.csv"
    first, second = csv.DictReader(path.read_text().splitlines())
    methane = {"Elements": ["C", "H", "H", "H", "H"], "XYZ_Ang": np.eye(5, 3).tolist()}
    columns = [PROPERTIES[name].column for name in ("u0", "u", "h", "g")]
    methane |= dict(zip(columns, (-40.47893, -40.476062, -40.475117, -40.498597)))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, first)
        writer.writeheader()
        writer.writerows([first | methane, second])
    values = read_tables(tmp_path).properties[0]
    names = list(PROPERTIES)
    expected = {"u0": -17.1722, "u": -17.2868, "h": -17.3897, "g": -16.1519}
    for name, value in expected.items():
        assert values[names.index(name)] == pytest.approx(value, abs=1e-4)


def test_polarizabilities_are_in_the_axes_of_the_positions(tables):
    folder, molecules = tables
    dataset = QM9("train", targets=["polarizability"], raw_dir=folder, margin=1e-4)
    assert len(dataset) > 25
    for number, index in enumerate(dataset.clouds.cloud["index"]):
        np.testing.assert_allclose(dataset.labels[number], molecules[index - 1][2], rtol=1e-3, atol=1e-3)


def test_the_margin_is_small_where_directions_of_axes_make_no_difference():
    z, x = np.array([6, 1, 1, 1]), np.array([[0, 0, 0], [1, 0, 0], [-0.5, 0.8, 0], [-0.5, -0.8, 0]], float)
    tensor = np.diag([12.0, 10.0, 8.0])[None]
    _, margin = align_polarizabilities(np.array([4]), z, x, tensor)
    assert margin[0] < 1e-9


def test_atoms_far_apart_have_the_sum_of_their_polarizabilities():
    tensor = thole_polarizabilities(np.array([[6, 8]]), np.array([[[0.0, 0, 0], [0, 0, 1e4]]]))
    np.testing.assert_allclose(tensor[0], (8.6959 + 5.7494) * np.eye(3), atol=1e-6)


def test_references_and_scales_are_those_of_a_least_squares_fit(tables):
    folder, _ = tables
    dataset = QM9("train", targets=["alpha", "mu"], raw_dir=folder)
    outputs = dataset.outputs
    references, residuals = np.array(outputs["references"]), []
    for number, target in enumerate(dataset.labels):
        rows = [outputs["elements"].index(z) for z in dataset[number][0].ndata["element"]]
        contributions = references[rows]  # (n, 2)
        residuals.append(target - [contributions[:, 0].sum(), contributions[:, 1].mean()])
    residuals = np.array(residuals)
    np.testing.assert_allclose(np.sqrt((residuals**2).mean(0)), outputs["scales"], rtol=1e-4)
    assert outputs["scales"][0] < 0.5 * dataset.labels[:, 0].std()
    assert (outputs["num_outputs"], outputs["pools"]) == (2, ["sum", "mean"])


def test_rotated_molecules_have_rotated_tensors_that_change_with_the_epoch(tables):
    folder, _ = tables
    options = dict(targets=["polarizability"], raw_dir=folder, margin=0)
    plain, rotated = QM9(**options), QM9(**options, rotate=True)
    (graph, tensor), (rotated_graph, other) = plain[3], rotated[3]
    pos, after = (each.ndata["pos"] - each.ndata["pos"].mean(0) for each in (graph, rotated_graph))
    rotation = torch.linalg.lstsq(pos, after).solution.T
    torch.testing.assert_close(to_global(rotation, pos), after, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(rotation @ tensor @ rotation.T, other, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(rotated[3][1], other)
    rotated.set_epoch(1)
    assert not torch.allclose(rotated[3][1], other)


def test_the_cache_gives_the_same_molecules(tables, tmp_path):
    folder, _ = tables
    first, second = (QM9("test", ["u0", "gap"], raw_dir=folder, save_dir=tmp_path) for _ in range(2))
    assert second.has_cache() and np.array_equal(first.labels, second.labels)
    assert torch.equal(first[1][0].ndata["pos"], second[1][0].ndata["pos"])


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"targets": ["u1"]}, "did you mean"),
        ({"targets": ["alpha", "polarizability"]}, "polarizability alone"),
        ({"size": 1000}, "34 molecules, not size=1,000"),
        ({"margin": 2}, "margin from 0 to 1"),
    ],
)
def test_what_it_cannot_give_is_a_sentence(tables, options, sentence):
    with pytest.raises(DGLError, match=sentence):
        QM9(raw_dir=tables[0], **options)


def test_damaged_tables_are_a_sentence(tmp_path):
    with pytest.raises(DGLError):
        QM9(raw_dir=tmp_path)
    write_qm9(tmp_path, 3)
    path = tmp_path / "qm9_part1.csv"
    path.write_text(path.read_text().replace("[[", "[[x", 1))
    with pytest.raises(DGLError, match="dsgdb9nsd_000001"):
        QM9(raw_dir=tmp_path)
