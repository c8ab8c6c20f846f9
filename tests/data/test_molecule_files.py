"""Molecules of files, and a data set of them."""

import gzip

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data import MoleculeFiles, read_cloud, read_molecules
from dgl_orient.data.molecule_files import formula

pytest.importorskip("ase")

WATER = "3\nwater\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"
EXTENDED = (
    '2\nProperties=species:S:1:pos:R:3:forces:R:3 energy=-1.5 dipole="0.1 0.2 0.3" '
    'polarizability="1 0 0 0 1 0 0 0 2" name=hydrogen pbc="F F F"\nH 0 0 0 0 0 1\nH 0 0 0.74 0 0 -1\n'
)
SDF = """water
  test

  3  2  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 O   0  0
    0.9600    0.0000    0.0000 H   0  0
   -0.2400    0.9300    0.0000 H   0  0
  1  2  1  0
  1  3  1  0
M  END
$$$$
"""
V3000 = """water
  test

  0  0  0     0  0            999 V3000
M  V30 BEGIN CTAB
M  V30 COUNTS 1 0 0 0 0
M  V30 BEGIN ATOM
M  V30 1 O 0.0 0.0 0.0 0
M  V30 END ATOM
M  V30 END CTAB
M  END
"""
PDB = (
    "HETATM    1  O   HOH A   1       0.000   0.000   0.000  1.00  0.00           O\n"
    "HETATM    2  H1  HOH A   1       0.960   0.000   0.000  1.00  0.00           H\n"
    "HETATM    3  H2  HOH A   1      -0.240   0.930   0.000  1.00  0.00           H\nEND\n"
)


@pytest.mark.parametrize(
    "name, text, number",
    [("a.xyz", WATER, 1), ("a.XYZ", 2 * WATER, 2), ("a.sdf", 2 * SDF, 2), ("a.pdb", PDB, 1)],
)
def test_formats_hold_the_same_water(tmp_path, name, text, number):
    (tmp_path / name).write_text(text)
    with gzip.open(tmp_path / f"{name}.gz", "wt") as file:
        file.write(text)
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        molecules = read_molecules(path)
        assert len(molecules) == number
        for molecule in molecules:
            assert molecule.element.tolist() == [8, 1, 1] and formula(molecule.element) == "H2O"
            np.testing.assert_allclose(molecule.pos, [[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]], atol=1e-3)


def test_an_extended_frame_has_values(tmp_path):
    (tmp_path / "a.xyz").write_text(EXTENDED + WATER)
    hydrogen, water = read_molecules(tmp_path / "a.xyz")
    assert hydrogen.values["energy"] == -1.5 and hydrogen.values["polarizability"].size == 9
    np.testing.assert_allclose(hydrogen.values["dipole"], [0.1, 0.2, 0.3])
    assert "forces" in hydrogen.values and not water.values


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.xyz", ""),
        ("a.xyz", "1 2 3\n4 5 6\n"),
        ("a.xyz", "2\n\nH 0 0 0\n"),
        ("a.xyz", "2\n\nXq 0 0 0\nH 0 0 1\n"),
        ("a.xyz", "2\n\nH 0 0 nan\nH 0 0 1\n"),
        ("a.xyz", "2\n\nH 0 0 0\nH 0 0 0\n"),
        ("a.sdf", V3000),
        ("a.ply", WATER),
    ],
)
def test_bad_molecules_are_one_sentence(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(DGLError) as caught:
        read_molecules(tmp_path / name)
    assert "\n" not in str(caught.value) and "a." in str(caught.value)


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(DGLError):
        read_molecules(tmp_path / "a.xyz")


@pytest.mark.parametrize("text", [WATER, EXTENDED, 3 * WATER])
def test_the_reader_of_point_clouds_knows_a_molecule(tmp_path, text):
    (tmp_path / "a.xyz").write_text(text)
    with pytest.raises(DGLError, match="molprop"):
        read_cloud(tmp_path / "a.xyz")


def test_a_point_cloud_with_the_number_of_its_points_is_no_molecule(tmp_path):
    (tmp_path / "a.xyz").write_text("2\n1 2 3\n4 5 6\n")
    assert len(read_cloud(tmp_path / "a.xyz")["pos"]) == 2


@pytest.fixture
def folder(tmp_path):
    frames = [
        EXTENDED.replace("-1.5", str(-number)).replace("0.74", f"{0.6 + number / 50}") for number in range(20)
    ]
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.xyz").write_text("".join(frames[:12]))
    (tmp_path / "inner" / "b.xyz").write_text("".join(frames[12:]))
    return tmp_path


def test_a_folder_is_split_into_molecules_with_their_targets(folder):
    splits = [MoleculeFiles(folder, split, ["energy"]) for split in ("train", "val", "test")]
    assert [len(each) for each in splits] == [16, 2, 2]
    for dataset in splits:
        for graph, target in dataset:
            distance = float(graph.ndata["pos"][1, 2])
            assert float(target) == pytest.approx(-(distance - 0.6) * 50, abs=1e-3)


@pytest.mark.parametrize(
    "name, kind, shape", [("dipole", "vectors", (3,)), ("polarizability", "tensors", (3, 3))]
)
def test_a_target_may_be_a_vector_or_a_tensor(folder, name, kind, shape):
    dataset = MoleculeFiles(folder, "train", [name])
    assert dataset.kind == kind and dataset[0][1].shape == shape
    assert dataset.outputs["out"] == kind and dataset.outputs["scales"][0] > 0


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"targets": ["gap"]}, "no number 'gap'"),
        ({"targets": ["energy", "dipole"]}, "got 1, 3"),
        ({"size": 99}, "16 molecules"),
        ({"val_fraction": 0.9}, "leave molecules"),
    ],
)
def test_what_a_folder_cannot_give_is_a_sentence(folder, options, sentence):
    with pytest.raises(DGLError, match=sentence):
        MoleculeFiles(folder, **options)
