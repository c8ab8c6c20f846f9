"""The command ``view``: poses that match after rotating back, trainings whose results are drawn."""

import gzip
import json
import shutil
import sys

import numpy as np
import pytest
import trimesh

from dgl_orient.data import ChargedParticles, Shapes, write_cloud
from dgl_orient.data.io import CloudWarning
from dgl_orient.go import cli, view_cloud, view_run
from dgl_orient.go.apply import apply
from dgl_orient.plot import OrientedCloud, PlotOptions, arrows
from dgl_orient.zoo import drawing
from dgl_orient.zoo.loading import load_trained_model
from dgl_orient.zoo.poses import compute_poses, read_input
from tests.go import tiny


@pytest.fixture
def clouds(tmp_path, monkeypatch):
    """A chair with parts and normals, and particles, in the current folder."""
    monkeypatch.chdir(tmp_path)
    shapes = Shapes("test", num_points=60, num_shapes=3)
    data = {name: values.numpy() for name, values in shapes[2][0].ndata.items()}
    (tmp_path / "chair").mkdir()
    write_cloud(tmp_path / "chair" / "one.ply", **data)
    write_cloud(tmp_path / "bare.npz", data["pos"])
    system = ChargedParticles("test", num_particles=5, size=1, horizon=20)[0]
    np.savez(tmp_path / "system.npz", **{name: values.numpy() for name, values in system.ndata.items()})
    return tmp_path


def run(capfd, *arguments) -> tuple[int, str, str]:
    code = cli.run(["view", *map(str, arguments)])
    return code, *capfd.readouterr()


def oriented_clouds(path: str, checkpoint=None, num_poses: int = 1, **options) -> list[OrientedCloud]:
    """What the command draws of a file, pose by pose."""
    cloud = read_input(path, None if checkpoint is None else load_trained_model(checkpoint))
    return drawing.oriented_clouds(cloud, compute_poses(cloud, num_poses, seed=1), PlotOptions(**options))


@pytest.mark.parametrize("network", [None, "pointcls", "partseg", "normals"])
def test_poses_match_after_rotating_back(clouds, network):
    checkpoint = None if network is None else tiny.trained(network)
    first, *others = oriented_clouds("chair/one.ply", checkpoint, num_poses=3, num_arrows=40)
    assert np.abs(others[0].rotation - others[1].rotation).max() > 0.1
    for other in others:
        back = other.rotated_back()
        # Predictions are in float32, where rounding may decide.
        differs = np.abs(other.coloring().rgb.astype(int) - first.coloring().rgb).max(1) > 2
        assert differs.mean() < 0.05
        for level, orientation in np.ndindex(first.orient.shape[1:3]):
            options = PlotOptions(level=level, orientation=orientation)
            for axis in (0, 1):
                for one, two in zip(arrows(back, options, axis), arrows(first, options, axis)):
                    np.testing.assert_allclose(one, two, atol=1e-9)
        np.testing.assert_allclose(back.global_orient, first.global_orient, atol=1e-9)


def test_poses_of_particles_match_after_rotating_back(clouds):
    folder = clouds / "oriented"
    tiny.train(
        tiny.recipe("nbody", model={"name": "oriented-nbody", "hidden_feats": 8, "num_layers": 1}), folder
    )
    first, other = oriented_clouds("system.npz", folder / "run_0.pth", num_poses=2, color="error")
    np.testing.assert_allclose(other.rotated_back().orient, first.orient, atol=1e-9)
    errors = ([float(label) for label in each.coloring("error").labels] for each in (first, other))
    np.testing.assert_allclose(*errors, rtol=0.02)


@pytest.mark.parametrize(
    ("network", "names"),
    [
        (None, ["plain", "part", "normal", "distance"]),
        ("pointcls", ["plain", "part", "normal", "distance"]),
        ("partseg", ["part", "error", "plain", "normal", "distance"]),
        ("normals", ["normal", "error", "plain", "part", "distance"]),
    ],
)
def test_colourings_of_each_task(clouds, network, names):
    trained = None if network is None else load_trained_model(tiny.trained(network))
    cloud = read_input("chair/one.ply", trained)
    (pose,) = compute_poses(cloud, 1)
    (drawn,) = drawing.oriented_clouds(cloud, [pose], PlotOptions())
    colorings = {each.name: each for each in drawn.colorings}
    assert list(colorings) == names
    if network == "partseg":
        # Only parts of a chair are predicted for one, and an error is where the true part is another.
        true = [trained.metadata["part_names"][int(part)] for part in cloud.points["part"]]
        predicted = colorings["part"].labels
        assert set(predicted) <= {"chair/seat", "chair/back", "chair/leg"}
        expected = ["correct" if one == two else "wrong" for one, two in zip(predicted, true)]
        assert list(colorings["error"].labels) == expected
    if network == "normals":
        cosine = (pose.prediction.per_point["normal"][cloud.rows] * cloud.points["normal"]).sum(1)
        errors = np.degrees(np.arccos(cosine))
        labels = [float(label) for label in colorings["error"].labels]
        np.testing.assert_allclose(labels, errors, rtol=0.01)


@pytest.mark.parametrize("name", ["cloud.png", "cloud.pdf", "cloud.svg", "cloud.html"])
def test_a_cloud_is_drawn_to_a_file_of_any_format(clouds, capfd, name):
    flags = ["--poses", 2, "--level", "0,1", "--global", "--arrows", 10, "--length", 0.2, "--color", "normal"]
    code, out, err = run(capfd, "chair/one.ply", "--cpt", tiny.trained("pointcls"), "--out", name, *flags)
    assert (code, err) == (0, ""), err
    assert out == f"Written to {name}\n" and (clouds / name).stat().st_size > 5000


def test_without_arrows_there_are_none(clouds):
    (cloud,) = oriented_clouds("chair/one.ply", num_arrows=0)
    choices = view_cloud._choices(cloud, PlotOptions(num_arrows=0), "all", "0")
    assert len(choices) > 1 and not any(len(arrows(cloud, each, 0)[0]) for each in choices)
    # Only the last level is the whole cloud, and has its arrows at the centroid.
    assert [cloud.is_global(each.level) for each in choices] == [False] * (len(choices) - 1) + [True]


def test_the_title_tells_an_untrained_network(clouds, capfd):
    flags = ["--cpt", "untrained", "--up", "y", "--camera", 10, 60]
    assert run(capfd, "bare.npz", *flags) == (0, "Written to bare.html\n", "")
    assert "bare.npz: untrained network" in (clouds / "bare.html").read_text()


def test_a_network_without_orientations_draws_the_cloud(clouds, capfd):
    model = {"name": "dgcnn", "preset": "light", "widths": [4, 4], "embed_feats": 8, "k": 4}
    tiny.train(tiny.recipe("pointcls", model=model), clouds / "plain")
    assert run(capfd, "bare.npz", "--cpt", "plain/run_0.pth", "--quiet") == (0, "", "")
    assert "without orientations" in (clouds / "bare.html").read_text()
    code, _, err = run(capfd, "bare.npz", "--cpt", "plain/run_0.pth", "--global")
    assert code == 2 and "no global orientation" in err
    code, _, err = run(capfd, "--quality", "--cpt", "plain/run_0.pth")
    assert code == 2 and "dgcnn" in err and "no orientations" in err


def run_folder(pipeline: str):
    return tiny.trained(pipeline).parent


@pytest.mark.parametrize(
    ("pipeline", "drawing"),
    [
        ("pointcls", "confusion_matrix"),
        ("partseg", "iou_bars"),
        ("normals", "error_curve"),
        ("upright", "error_curve"),
        ("nbody", "trajectories"),
    ],
)
def test_drawn_results_equal_the_recorded_metrics(clouds, capfd, monkeypatch, pipeline, drawing):
    """What is drawn of the test set has the metrics that the training has recorded."""
    given_to_plot = []
    make = getattr(view_run, drawing)
    monkeypatch.setattr(view_run, drawing, lambda *given: (given_to_plot.append(given), make(*given))[1])
    folder = run_folder(pipeline)
    assert run(capfd, folder, "--out", "run.png") == (0, "Written to run.png\n", "")
    metrics = json.loads((folder / "results.json").read_text())["metrics"]["test"]
    ((given, *_),) = given_to_plot
    if pipeline == "pointcls":
        assert given.sum() == tiny.SIZES["test"]
        assert np.trace(given) / given.sum() == pytest.approx(metrics["accuracy"]["mean"])
    elif pipeline == "partseg":
        assert np.nanmean(given) == pytest.approx(metrics["class_miou"]["mean"])
    elif pipeline == "normals":
        errors = 1 - np.cos(np.radians(given))
        assert errors.mean() == pytest.approx(metrics["normal_error"]["mean"], rel=1e-4)
    elif pipeline == "upright":
        assert np.mean(given) == pytest.approx(metrics["up_angle"]["mean"], rel=1e-3)
    else:
        test = ChargedParticles("test", num_particles=5, size=5, horizon=20)
        for system, graph in zip(given, test):
            np.testing.assert_allclose(system.path[0], graph.ndata["pos"], atol=1e-6)
            np.testing.assert_allclose(system.path[-1], graph.ndata["target_pos"], atol=1e-5)


def test_a_folder_without_a_checkpoint_is_drawn_as_curves_alone(clouds, capfd):
    folder = clouds / "begun"
    (folder / "run_0").mkdir(parents=True)
    shutil.copy(run_folder("pointcls") / "run_0" / "log.jsonl", folder / "run_0")
    with open(folder / "run_0" / "log.jsonl", "a") as log:
        log.write('{"epoch": 2, "lo')  # being written
    assert run(capfd, folder, "--quiet") == (0, "", "")
    assert "<svg" in (clouds / "begun.html").read_text()
    with open(folder / "run_0" / "log.jsonl", "a") as log:
        log.write("\n")
    code, _, err = run(capfd, folder)
    assert code == 2 and "Line 2 of" in err and err.count("\n") == 1


def test_quality_is_measured_and_stored(clouds, capfd):
    flags = ["--quality", "--cpt", tiny.trained("pointcls"), "--clouds", 1, "--out", "some.png"]
    assert run(capfd, *flags) == (0, "Written to some.png\nWritten to some.json\n", "")
    stored = json.loads((clouds / "some.json").read_text())
    assert set(stored["networks"]) == {"trained", "untrained"}
    for quality in stored["networks"].values():
        assert len(quality["smoothness"]) == len(quality["degenerate"]) == 3 and quality["shapes"] == 1
    assert stored["networks"]["trained"]["accuracy"] in (0, 1)
    assert "accuracy" not in stored["networks"]["untrained"]
    assert stored["settings"]["num_points"] == 40 and stored["recipe"]["pipeline_name"] == "pointcls"


BAD = {
    "nothing": [],
    "no such file": ["nowhere.ply"],
    "garbled": ["garbled.ply"],
    "unknown ending": ["bare.npz", "--out", "cloud.gif"],
    "no checkpoint": ["bare.npz", "--cpt", "nowhere.pth"],
    "not a checkpoint": ["bare.npz", "--cpt", "garbled.ply"],
    "colour": ["bare.npz", "--color", "hue"],
    "no such colouring here": ["bare.npz", "--color", "error"],
    "level": ["bare.npz", "--level", "9"],
    "level is no number": ["bare.npz", "--level", "first"],
    "level of many digits": ["bare.npz", "--level", "9" * 5000],
    "vectors in two dimensions": ["odd_target_pos.npz"],
    "several parts of a point": ["odd_part.npz"],
    "coordinates too large": ["odd_size.npz"],
    "no log": ["odd_log"],
    "a log of huge numbers": ["odd_numbers"],
    "orientation": ["bare.npz", "--orientation", "0,4"],
    "length": ["bare.npz", "--length", "0"],
    "length is nan": ["bare.npz", "--length", "nan"],
    "camera": ["bare.npz", "--camera", "100", "0"],
    "up": ["bare.npz", "--up", "q"],
    "too many poses": ["bare.npz", "--poses", "99"],
    "category": ["bare.npz", "--category", "chair"],
    "empty folder": ["empty"],
    "quality without a network": ["--quality"],
    "quality of a file": ["bare.npz", "--quality", "--cpt", "nowhere.pth"],
    "clouds without quality": ["bare.npz", "--clouds", "3"],
    "poses of a folder": ["chair", "--poses", "2"],
    "folder without clouds": ["odd_folder"],
    "folder of bad clouds": ["odd_clouds"],
    "no folder to write to": ["bare.npz", "--out", "garbled.ply/cloud.html"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(clouds, capfd, arguments):
    (clouds / "garbled.ply").write_text("ply\nformat")
    pos = np.random.default_rng(0).random((50, 3))
    np.savez(clouds / "odd_target_pos.npz", pos=pos, target_pos=pos[:, :2])
    np.savez(clouds / "odd_part.npz", pos=pos, part=np.zeros((50, 2), np.int64))
    np.savez(clouds / "odd_size.npz", pos=1e300 * pos)
    epoch = '{"epoch": 1, "loss": 1%s, "lr": 0.1, "val": {"accuracy": 0.5}}' % ("0" * 400)
    for name, line in {"odd_log": "[" * 100_000, "odd_numbers": epoch}.items():
        (clouds / name / "run_0").mkdir(parents=True)
        (clouds / name / "run_0" / "log.jsonl").write_text(line + "\n")
    for name, file in {"empty": None, "odd_folder": "notes.md", "odd_clouds": "bad.ply"}.items():
        (clouds / name).mkdir()
        if file:
            (clouds / name / file).write_text("ply")
    before = sorted(clouds.rglob("*"))
    code, out, err = run(capfd, *arguments)
    assert (code, out) == (2, "") and err.count("\n") == 1 and err.rstrip().endswith("."), err
    assert sorted(clouds.rglob("*")) == before and len(err) < 1000


def test_a_network_conditioned_on_a_category_needs_one(clouds, capfd):
    code, _, err = run(capfd, "bare.npz", "--cpt", tiny.trained("partseg"))
    assert code == 2 and "--category" in err and "chair" in err
    flags = ["--cpt", tiny.trained("partseg"), "--category", "chair", "--quiet"]
    code, _, err = run(capfd, "bare.npz", *flags)
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("package", "source", "suffix"),
    [
        ("matplotlib", "bare.npz", "png"),
        ("matplotlib", None, "png"),
        ("matplotlib", None, "html"),
        ("plotly", "bare.npz", "html"),
    ],
)
def test_without_the_extra_the_error_names_it(clouds, capfd, monkeypatch, package, source, suffix):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    code, _, err = run(capfd, source or run_folder("pointcls"), "--out", f"cloud.{suffix}")
    assert code == 2 and 'pip install ".[plot]"' in err and err.count("\n") == 1


@pytest.mark.parametrize("network", ["pointcls", "normals"])
def test_predictions_are_those_of_apply_whatever_is_drawn(clouds, network):
    write_cloud(clouds / "many.npz", np.random.default_rng(0).random((300, 3)))
    apply(
        tiny.trained(network), ["many.npz"], "applied", file_format=None if network == "pointcls" else "npz"
    )
    trained = load_trained_model(tiny.trained(network))
    for number in (None, 100):
        cloud = read_input("many.npz", trained, number)
        (pose,) = compute_poses(cloud, 1)
        assert len(cloud.points["pos"]) == (number or 300) and len(pose.sample) == trained.num_points == 40
        if network == "pointcls":
            (applied,) = json.loads((clouds / "applied" / "predictions.json").read_text())["predictions"]
            assert pose.prediction.summary["probabilities"] == applied["probabilities"]
        else:
            applied = np.load(clouds / "applied" / "many.npz")["normal"]
            np.testing.assert_array_equal(pose.prediction.per_point["normal"], applied)


def test_arrows_are_at_points_of_the_file(clouds):
    """However far from the origin, and though the network is given a scaled sample of it."""
    pos = 5e6 + 40 * np.random.default_rng(0).random((300, 3))
    write_cloud(clouds / "far.npz", pos)
    (drawn,) = oriented_clouds("far.npz", tiny.trained("pointcls"))
    nearest = np.abs(drawn.arrow_pos[:, None] + pos.mean(0) - pos).max(2).min(1)
    assert len(drawn.arrow_pos) == 40 and nearest.max() < 1e-6


def test_a_mesh_is_drawn_densely_and_colours_are_those_of_the_file(clouds):
    trimesh.creation.box().export(clouds / "box.off")
    (box,) = oriented_clouds("box.off", tiny.trained("pointcls"))
    assert len(box.pos) == 50_000 and box.coloring().name == "plain"
    rgb = np.random.default_rng(0).random((60, 3))
    np.savez(clouds / "colored.npz", pos=rgb, color=rgb)
    (colored,) = oriented_clouds("colored.npz")
    assert colored.coloring().name == "color"
    np.testing.assert_allclose(colored.coloring().rgb, 255 * rgb, atol=0.51)


def test_stray_points_do_not_make_the_rest_too_small_to_be_seen(clouds, recwarn):
    ball = np.random.default_rng(0).normal(size=(500, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    near, far = [[1.4, 0, 0]], 30 * ball[:5]
    write_cloud("stray.ply", np.concatenate([ball, near, far]))
    drawn = read_input("stray.ply", None)
    assert len(drawn.points["pos"]) == 501
    assert np.linalg.norm(drawn.points["pos"], axis=1).max() < 1.5
    np.testing.assert_allclose(drawn.center, np.concatenate([ball, near]).mean(0), atol=1e-6)
    assert [each.category for each in recwarn].count(CloudWarning) == 1


def test_the_vertical_axis_is_of_the_file_its_format_or_the_training_data(tmp_path):
    trained = load_trained_model(tiny.trained("pointcls"))
    names = ("a.glb", "a.STL", "a.obj.gz", "a.npz")
    axes = [drawing.vertical_axis(name, trained) for name in names]
    assert axes == ["y", "z", "y", trained.metadata["gravity"]]
    asset = "<COLLADA><asset><up_axis>Z_UP</up_axis></asset></COLLADA>"
    for name, content in {
        "a.dae": asset.encode(),
        "wide.DAE": asset.encode("utf-16"),
        "a.dae.gz": gzip.compress(asset.encode()),
    }.items():
        (tmp_path / name).write_bytes(content)
        assert drawing.vertical_axis(tmp_path / name, trained) == "z"


def test_each_point_that_is_drawn_of_a_mesh_is_predicted(tmp_path):
    path = tmp_path / "triangle.off"
    path.write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    cloud = read_input(path, load_trained_model(tiny.trained("normals")))
    assert len(cloud.points["pos"]) == 10_000
    drawn = cloud.points["pos"] + cloud.center
    np.testing.assert_allclose(cloud.file.points["pos"][cloud.rows], drawn, atol=1e-12)


def test_a_cloud_of_as_many_points_as_a_mesh_has_by_default_is_drawn_as_it_is(tmp_path):
    path = tmp_path / "cloud.npy"
    np.save(path, np.random.default_rng(0).random((2048, 3)))
    for network in ("pointcls", "normals"):
        cloud = read_input(path, load_trained_model(tiny.trained(network)))
        np.testing.assert_allclose(cloud.points["pos"] + cloud.center, np.load(path), atol=1e-12)


def test_a_cloud_unlike_the_training_data_is_called_unknown_as_by_apply(clouds):
    trained = load_trained_model("oriented-dgcnn-modelnet40")
    write_cloud("corners.npz", np.array(list(np.ndindex(2, 2, 2)), float))
    cloud = read_input("corners.npz", trained)
    (pose,) = compute_poses(cloud, 1)
    assert pose.prediction["class"] == "unknown"
    assert drawing.caption(cloud, pose).startswith(f"unknown ({pose.prediction['nearest_class']} ")


def test_a_folder_is_drawn_as_a_gallery(clouds, capfd):
    (clouds / "chair" / "bad.ply").write_text("ply")
    (clouds / "chair" / "sub").mkdir()
    write_cloud(clouds / "chair" / "sub" / "<two>.npz", 1000 * np.random.default_rng(0).random((50, 3)))
    flags = ["--cpt", tiny.trained("pointcls"), "--arrows", 5, "--quiet"]
    code, out, err = run(capfd, "chair", "--out", "some.png", *flags)
    assert (code, out) == (0, "") and "1 of 3 files are not drawn" in err and "bad.ply" in err
    assert run(capfd, "chair", "--out", "some.html", *flags)[0] == 0
    page = (clouds / "some.html").read_text()
    assert page.count('class="card"') == page.count('class="figure"') == 2
    assert "&lt;two&gt;.npz" in page and "<two>" not in page


def test_unprintable_characters_in_names_make_valid_pictures(clouds, capfd):
    (clouds / "b\x01c.npz").write_bytes((clouds / "bare.npz").read_bytes())
    assert run(capfd, "b\x01c.npz", "--out", "cloud.svg", "--arrows", "0")[0] == 0
    assert "\x01" not in (clouds / "cloud.svg").read_text()
