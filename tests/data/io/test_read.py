import io
import pickle
import re
import sys
import zipfile

import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.data.io.read import EXTENSIONS, MESH_POINTS, read_cloud
from tests.data.io.samples import (
    BOX,
    CLOUDS,
    CLOUDS_AND_SCANS,
    MESHES,
    NORMAL,
    PLY_FACE,
    PLY_HEAD,
    POS,
    TRIANGLE_OFF,
    npy,
    npz,
    pcd,
    put,
    table,
    trimesh,
)


@pytest.mark.parametrize("name", CLOUDS)
def test_clouds_of_all_formats_keep_points_and_normals(tmp_path, name):
    cloud = read_cloud(put(tmp_path, name, CLOUDS[name]))
    assert set(cloud) == {"pos", "normal"}
    assert {array.dtype for array in cloud.values()} == {np.dtype(np.float64)}
    np.testing.assert_allclose(cloud["pos"], POS, rtol=1e-6)
    np.testing.assert_allclose(cloud["normal"], NORMAL, atol=1e-6)


@pytest.mark.parametrize("separator", [" ", "\t", ","])
def test_three_columns_have_no_normals_and_further_ones_are_chosen(tmp_path, separator):
    assert set(read_cloud(put(tmp_path, "a.txt", table(separator, POS)))) == {"pos"}
    path = put(tmp_path, "b.txt", table(separator, 9 * np.ones((7, 1)), POS[:, ::-1], NORMAL))
    with pytest.raises(DGLError, match=r"b\.txt, which has 7 and no header") as caught:
        read_cloud(path)
    assert "0, 1, 2" not in str(caught.value) and "0,1,2" not in str(caught.value)  # which would be wrong
    cloud = read_cloud(path, columns=(3, 2, 1, 4, 5, 6))
    np.testing.assert_allclose(cloud["pos"], POS, rtol=1e-6)
    np.testing.assert_allclose(cloud["normal"], NORMAL, atol=1e-6)
    with pytest.raises(DGLError, match=r"b\.txt, which has 7 and no columns=\(0, 1, 7\)"):
        read_cloud(path, columns=(0, 1, 7))
    for columns in [(0, 1), (0, 1, -1), (0, 1, "z"), 3, "012"]:
        with pytest.raises(DGLError):
            read_cloud(path, columns=columns)


def test_one_point_is_a_cloud_and_keeps_its_digits(tmp_path):
    path = put(tmp_path, "one.xyz", "500000.123 1 2")
    assert read_cloud(path)["pos"].tolist() == [[500000.123, 1.0, 2.0]]
    assert read_cloud(put(tmp_path, "one.pcd", pcd("ASCII", x=POS[:1, 0], y=POS[:1, 1], z=POS[:1, 2])))[
        "pos"
    ].shape == (1, 3)


def test_colours_and_others_are_not_taken_for_normals(tmp_path):
    path = put(tmp_path, "colours.txt", table(" ", POS, 255 * np.ones((7, 3))))
    cloud = read_cloud(path)
    assert set(cloud) == {"pos", "color"} and (cloud["color"] == 1).all()
    assert set(read_cloud(path, columns=(0, 1, 2))) == {"pos"}
    with pytest.raises(DGLError, match=r"forces\.txt"):
        read_cloud(put(tmp_path, "forces.txt", table(" ", POS, 2.5 * POS)))


@pytest.mark.parametrize("name", MESHES)
def test_meshes_are_sampled_by_area_with_outward_normals(tmp_path, name):
    path = put(tmp_path, name, MESHES[name])
    cloud = read_cloud(path, num_points=6000, seed=3)
    pos, normal = cloud["pos"], cloud["normal"]
    axis = np.abs(normal).argmax(1)
    # Every point lies on the side of the box to which its normal points.
    assert np.allclose(np.take_along_axis(pos, axis[:, None], 1)[:, 0], (normal @ [1, 2, 3]), atol=1e-5)
    assert np.allclose(np.abs(normal).max(1), 1) and (np.abs(pos) <= np.array([1, 2, 3]) + 1e-5).all()
    # The sides have areas of 24, 12 and 8.
    assert np.allclose(np.bincount(axis) / len(axis), np.array([24, 12, 8]) / 44, atol=0.02)
    assert np.array_equal(pos, read_cloud(path, num_points=6000, seed=3)["pos"])
    assert not np.array_equal(pos, read_cloud(path, num_points=6000, seed=4)["pos"])
    assert len(read_cloud(path)["pos"]) == MESH_POINTS


def test_all_parts_of_a_scene_are_read_each_at_its_place(tmp_path):
    far = trimesh.transformations.translation_matrix([10, 0, 0])
    mirrored = far @ np.diag([-1.0, 1, 1, 1])
    scene = trimesh.Scene([BOX])
    scene.add_geometry(BOX, transform=mirrored)
    cloud = read_cloud(put(tmp_path, "two.glb", scene.export(file_type="glb")), num_points=500)
    right = cloud["pos"][:, 0] > 5
    assert 150 < right.sum() < 350
    outward = ((cloud["pos"] - np.outer(right, [10, 0, 0])) * cloud["normal"]).sum(1)
    assert (outward > 0.9).all()
    parts = "o a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nusemtl b\no b\nv 0 0 5\nv 1 0 5\nv 0 1 5\nf -3 -2 -1\n"
    heights = read_cloud(put(tmp_path, "two.obj", "mtllib none.mtl\n" + parts), num_points=100)["pos"][:, 2]
    assert set(heights) == {0, 5}


def test_models_of_a_3mf_file_keep_their_objects_apart(tmp_path):
    # As slicers write them: every model has an object 1.
    with zipfile.ZipFile(io.BytesIO(MESHES["box.3mf"])) as archive:
        box = archive.read("3D/3dmodel.model").decode()
    mesh = re.search(r"<mesh>.*</mesh>", box, re.DOTALL).group()
    small = re.sub(r'([xyz])="([^"]*)"', lambda found: f'{found[1]}="{0.5 * float(found[2])}"', mesh)
    head = (
        '<model xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02" '
        'xmlns:p="http://schemas.microsoft.com/3dmanufacturing/production/2015/06"><resources>'
    )
    component = '<component objectid="1" p:path="/3D/b.model" transform="1 0 0 0 1 0 0 0 1 20 0 0"/>'
    main = (
        f'{head}<object id="1"><components>{component}</components></object></resources><build>'
        f'<item objectid="1"/><item objectid="1" p:path="/3D/a.model"/></build></model>'
    )
    models = {"3D/3dmodel.model": main}
    for name, each in (("3D/a.model", mesh), ("3D/b.model", small)):
        models[name] = f'{head}<object id="1">{each}</object></resources><build/></model>'
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in models.items():
            archive.writestr(name, text)
    pos = read_cloud(put(tmp_path, "two.3mf", content.getvalue()), num_points=2000)["pos"]
    right = pos[:, 0] > 10
    np.testing.assert_allclose(np.abs(pos[~right]).max(0), [1, 2, 3], atol=0.05)
    np.testing.assert_allclose(np.abs(pos[right] - [20, 0, 0]).max(0), [0.5, 1, 1.5], atol=0.05)
    assert 0.1 < right.mean() < 0.3  # a quarter of the area of the other


@pytest.mark.parametrize("is_morphed", [False, True])
def test_a_character_in_a_dae_file_is_read_as_it_was_bound_to_its_skeleton(tmp_path, is_morphed):
    text = MESHES["box.dae"].decode()
    (geometry,) = re.findall(r'<instance_geometry url="(#[^"]+)"', text)
    text = re.sub(r"<(/?)instance_geometry[^>]*>", r'<\1instance_controller url="#skin">', text)
    text = text.replace('</instance_controller url="#skin">', "</instance_controller>")
    source = "#morph" if is_morphed else geometry
    controllers = (
        f'<controller id="morph"><morph source="{geometry}"/></controller><controller id="skin">'
        f'<skin source="{source}"><bind_shape_matrix>3 0 0 9 0 3 0 9 0 0 3 9 0 0 0 1</bind_shape_matrix>'
        f"</skin></controller>"
    )
    scenes = "<library_visual_scenes>"
    text = text.replace(scenes, f"<library_controllers>{controllers}</library_controllers>{scenes}")
    pos = read_cloud(put(tmp_path, "character.dae", text.encode()))["pos"]
    np.testing.assert_allclose(pos.max(0), 9 + 3 * np.array([1, 2, 3]), atol=0.1)
    np.testing.assert_allclose(pos.min(0), 9 - 3 * np.array([1, 2, 3]), atol=0.1)


def test_points_without_faces_and_broken_off_headers_are_read(tmp_path):
    vertices = "".join(f"v {x} {y} {z}\n" for x, y, z in POS.tolist())
    np.testing.assert_allclose(read_cloud(put(tmp_path, "a.obj", vertices))["pos"], POS, rtol=1e-6)
    # Many files of ModelNet40 lack the line break after OFF.
    glued = read_cloud(put(tmp_path, "a.off", TRIANGLE_OFF.replace("OFF\n", "OFF")), num_points=9)
    assert np.allclose(glued["normal"], [0, 0, 1])


@pytest.mark.parametrize("scale", [1, 1 / 255])
def test_colours_of_off_files_are_kept_with_and_without_faces(tmp_path, scale):
    colors = np.array([[255, 0, 0], [0, 255, 51], [102, 0, 255]])
    pos = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    rows = "".join(
        f"{x} {y} {z} {r:g} {g:g} {b:g} {255 * scale:g}\n" for x, y, z, r, g, b in np.c_[pos, scale * colors]
    )
    cloud = read_cloud(put(tmp_path, "points.off", f"COFF\n# points\n3 0 0\n{rows}"))
    np.testing.assert_allclose(cloud["color"], colors / 255, atol=1e-6)
    mesh = read_cloud(put(tmp_path, "mesh.off", f"COFF\n3 1 0\n{rows}3 0 1 2\n"))
    weights = np.c_[1 - mesh["pos"][:, 0] - mesh["pos"][:, 1], mesh["pos"][:, :2]]
    np.testing.assert_allclose(mesh["color"], weights @ colors / 255, atol=0.01)


def test_polygons_of_off_files_are_read(tmp_path):
    corners = [(0, 0), (2, 0), (2, 1), (1, 2), (0, 1), (3, 0), (3, 1)]
    rows = "".join(f"{x} {y} 5 255 0 {51 * x} 255\n" for x, y in corners)
    faces = "5 0 1 2 3 4 0.5 0.5 0.5\n# a square\n4 1 5 6 2\n"
    cloud = read_cloud(put(tmp_path, "polygons.off", f"COFF\n7 2 0\n{rows}{faces}"), 20_000)
    np.testing.assert_allclose(cloud["normal"], np.tile([0.0, 0, 1], (20_000, 1)), atol=1e-9)
    # Areas: 2 of the rectangle, 1 of the roof and 1 of the square.
    x, y, _ = cloud["pos"].T
    assert np.mean(x > 2) == pytest.approx(0.25, abs=0.02) and np.mean(y > 1) == pytest.approx(0.25, abs=0.02)
    np.testing.assert_allclose(cloud["color"][:, 2], x / 5, atol=0.01)


def test_faces_of_off_files_may_be_spread_over_lines(tmp_path):
    corners = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n2 0 0\n"
    lines = read_cloud(put(tmp_path, "lines.off", f"OFF\n5 2 0\n{corners}4 0 1 2 3\n3 1 4 2\n"), 50)
    spread = read_cloud(put(tmp_path, "spread.off", f"OFF\n5 2 0\n{corners}4 0\n1\n2\n3\n3 1\n4 2\n"), 50)
    np.testing.assert_array_equal(spread["pos"], lines["pos"])


class Trap:
    """What a pickle would run."""

    def __reduce__(self):
        return sys.exit, ("executed",)


nan = np.where(np.arange(7)[:, None] == 4, np.nan, POS)
CORRUPT = {
    "empty.{}": {suffix[1:]: b"" for suffix in EXTENSIONS},
    "noise.{}": {suffix[1:]: bytes(range(256)) for suffix in EXTENSIONS},
    "columns.{}": {
        "xyz": "1 2\n3 4\n",
        "txt": "1 2 3\n4 5\n",
        "csv": table(",", POS, POS[:, :2]),
        "npy": npy(POS[:, :2]),
        "npz": npz(pos=POS[:, :2]),
        "pcd": pcd("BINARY", x=POS[:, 0], y=POS[:, 1]),
        "ply": PLY_HEAD.replace("property float z\n", "") + "end_header\n1 2\n1 2\n1 2\n",
        "off": TRIANGLE_OFF.replace("1 0 0\n", "1 0\n"),
    },
    "nan.{}": {
        "txt": table(" ", nan),
        "csv": table(",", nan),
        "npy": npy(nan),
        "npz": npz(pos=nan),
        "pcd": pcd("BINARY_COMPRESSED", x=nan[:, 0], y=nan[:, 1], z=nan[:, 2]),
        "off": TRIANGLE_OFF.replace("0 1 0\n", "0 nan 0\n"),
        "ply": PLY_HEAD + PLY_FACE + "end_header\n0 0 0\n0 1 nan\n1 0 0\n3 0 1 2\n",
        "obj": "v 0 0 0\nv 1 inf 0\nv 0 1 0\nf 1 2 3\n",
        "xyz": "1 2 3 nan 0 0\n1 2 3 0 0 1\n",
    },
    "words.{}": {
        "txt": "1 2 3\n4 five 6\n",
        "xyz": "1 two 3\n4 5 6\n",
        "csv": "x,y,z\nx,y,z\n",
        "ply": PLY_HEAD + "end_header\n1 2 3\n1 two 3\n1 2 3\n",
        "off": TRIANGLE_OFF.replace("1 0 0\n", "1 one 0\n"),
        "obj": "v 0 0 0\nv 1 0 0\nv 0 one 0\nf 1 2 3\n",
        "stl": MESHES["text.stl"].replace("vertex 1.0", "vertex one", 1),
    },
    "corner.{}": {
        "off": TRIANGLE_OFF.replace("3 0 1 2", "3 0 1 9"),
        "obj": "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
        "ply": PLY_HEAD + PLY_FACE + "end_header\n0 0 0\n0 1 0\n1 0 0\n3 0 1 -9\n",
    },
    "flat.{}": {
        "off": TRIANGLE_OFF.replace("0 1 0\n", "2 0 0\n"),
        "obj": "v 0 0 0\nv 1e200 0 0\nv 0 1e200 0\nf 1 2 3\n",
    },
    "points.{}": {
        "off": "OFF\n0 0 0\n",
        "ply": PLY_HEAD.replace("vertex 3", "vertex 0") + "end_header\n",
        "npy": npy(POS[:0]),
        "npz": npz(pos=POS[:0]),
        "csv": "x,y,z\n",
        "txt": "# nothing\n",
        "stl": "solid a\nendsolid a\n",
    },
    "plane.{}": {"obj": "v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n"},
    "pointer.{}": dict.fromkeys(("las", "npy", "ply", "txt"), "version https://git-lfs.github.com/spec/v1\n"),
    "prose.{}": {"txt": "Scans\nof two chairs\n", "csv": "name,place\nchair,room 1\nlamp,room 2\n"},
    "kind.{}": {
        "npy": npy(np.array([Trap()]), allow_pickle=True),
        "npz": npz(pos=np.array([Trap()])),
        "xyz": pickle.dumps(Trap()),
        "txt": npy(POS),
        "ply": "OFF",
    },
    "kinds.{}": {"npy": npz(pos=POS), "npz": npy(POS)},
    "complex.{}": {"npy": npy(POS.astype(complex)), "npz": npz(pos=POS.astype(complex))},
    "other.{}": {"npz": npz(part=np.arange(7)), "npy": npy(POS[0])},
    "large.{}": {"npy": npy(1e300 * POS.astype(float)), "txt": "1e300 0 0\n"},
    "lengths.{}": {"npz": npz(pos=POS, normal=NORMAL[:3])},
    "counted.{}": {"pcd": CLOUDS["binary.pcd"].replace(b"COUNT 1 1", b"COUNT 1 999999999")},
    "announced.{}": {
        "ply": PLY_HEAD.replace("ascii", "binary_little_endian").replace(" 3\n", f" {10**12}\n")
        + "end_header\n0000",
        "pcd": pcd("BINARY", x=POS[:, 0], y=POS[:, 1], z=POS[:, 2]).replace(b"POINTS 7", b"POINTS 9999999"),
        "off": TRIANGLE_OFF.replace("3 1 0", f"3 {10**12} 0"),
    },
}


@pytest.mark.parametrize(
    ("name", "content"),
    [(name.format(suffix), content) for name, kinds in CORRUPT.items() for suffix, content in kinds.items()],
)
def test_bad_files_end_in_a_sentence_that_names_them(tmp_path, name, content):
    path = put(tmp_path, name, content)
    with pytest.raises(DGLError) as caught:
        read_cloud(path, num_points=10, dtype=np.float32)
    message = str(caught.value)
    assert str(path) in message and message.endswith(".") and "\n" not in message


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in {**CLOUDS_AND_SCANS, **MESHES}
        if not name.lower().endswith((".obj", ".xyz", ".csv", ".txt", ".asc", ".pts", ".ptx"))
    ],
)
@pytest.mark.parametrize("fraction", [0.02, 0.5, 0.97])
def test_files_truncated_end_in_a_sentence(tmp_path, name, fraction):
    content = {**CLOUDS_AND_SCANS, **MESHES}[name]
    content = content.encode() if isinstance(content, str) else content
    path = put(tmp_path, name, content[: int(fraction * len(content))])
    with pytest.raises(DGLError, match=name.replace(".", r"\.")):
        read_cloud(path)


def test_a_reader_that_stumbles_tells_nothing_of_its_code(tmp_path):
    with pytest.raises(DGLError) as caught:
        read_cloud(put(tmp_path, "short.ply", "ply\n"))
    assert "short.ply" in str(caught.value) and "Error" not in str(caught.value)


def test_rows_truncated_end_in_a_sentence(tmp_path):
    for name in ("spaces.xyz", "tabs.txt", "commas.csv"):
        content = CLOUDS[name]
        with pytest.raises(DGLError, match=name):
            read_cloud(put(tmp_path, name, content[: content.rindex("\n", 0, -1) + 10]))


def test_too_few_finite_points_are_counted(tmp_path):
    with pytest.raises(DGLError, match=r"a\.npy"):
        read_cloud(put(tmp_path, "a.npy", CORRUPT["nan.{}"]["npy"]))


@pytest.mark.parametrize("suffix", EXTENSIONS)
def test_a_missing_file_and_a_folder(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    with pytest.raises(DGLError):
        read_cloud(path)
    path.mkdir()
    with pytest.raises(DGLError):
        read_cloud(path)


@pytest.mark.parametrize("name", ["a.blend", "a", "a.tar.gz"])
def test_an_unknown_ending_lists_the_known(tmp_path, name):
    with pytest.raises(DGLError, match=rf"{name}.*\.ply.*\.pcd"):
        read_cloud(put(tmp_path, name, "1 2 3"))


@pytest.mark.parametrize("options", [dict(num_points=0), dict(num_points=2.5), dict(seed="a")])
def test_bad_arguments_are_refused(tmp_path, options):
    with pytest.raises(DGLError):
        read_cloud(put(tmp_path, "a.xyz", "1 2 3"), **options)


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("trimesh", "box.off"),
        ("lxml", "box.3mf"),
        ("collada", "box.dae"),
        ("pypcd4", "text.pcd"),
        ("laspy", "scan.laz"),
        ("pye57", "scan.e57"),
    ],
)
def test_a_package_that_is_not_there_is_named(tmp_path, monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    path = put(tmp_path, name, {**CLOUDS_AND_SCANS, **MESHES}[name])
    extra = "scans" if package in ("laspy", "pye57") else "files"
    with pytest.raises(DGLError, match=rf"{name}.*{package}.*pip install \"\.\[{extra}\]\""):
        read_cloud(path)


def test_an_archives_triangles_are_an_array_as_others(tmp_path):
    triangles = np.arange(36).reshape(12, 3) % 7
    cloud = read_cloud(put(tmp_path, "mine.npz", npz(pos=POS, triangles=triangles, own=np.arange(7))))
    np.testing.assert_array_equal(cloud["pos"], POS)
    assert set(cloud) == {"pos", "own"}  # what has no row for each point is left out


def test_an_off_file_without_faces_has_points(tmp_path):
    content = "OFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n"
    assert read_cloud(put(tmp_path, "points.off", content))["pos"].shape == (3, 3)
