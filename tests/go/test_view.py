"""The verb ``view``: clouds in poses that must match, trainings whose pictures tell their results."""

import json
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from dgl_orient.data import ChargedParticles, Shapes, write_cloud
from dgl_orient.go import cli, view, view_run
from dgl_orient.go.posed import poses, read_subject
from dgl_orient.go.view_colors import colorings
from dgl_orient.plot import Look, arrows
from dgl_orient.zoo.trained_model import load_trained_model
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


def answer(capfd, *arguments) -> tuple[int, str, str]:
    code = cli.run(["view", *map(str, arguments)])
    return code, *capfd.readouterr()


@pytest.mark.parametrize("network", [None, "pointcls", "partseg", "normals"])
def test_poses_match_after_turning_back(clouds, network):
    trained = None if network is None else load_trained_model(tiny.trained(network))
    subject = read_subject("chair/one.ply", trained, None, None, seed=0)
    found = poses(subject, 3, seed=1)
    assert float((found[1].turn - found[2].turn).abs().max()) > 0.1
    drawn = view._clouds(subject, found, None, 40)
    _, levels, several = drawn[0].frames.shape[:3]
    for other in drawn[1:]:
        back = other.turned_back()
        np.testing.assert_array_equal(other.coloring().rgb, drawn[0].coloring().rgb)
        for look in (Look(level=level, orientation=f) for level in range(levels) for f in range(several)):
            for axis in (0, 1):
                for one, two in zip(arrows(back, look, axis), arrows(drawn[0], look, axis)):
                    np.testing.assert_allclose(one, two, atol=1e-9)
        np.testing.assert_allclose(back.global_orient, drawn[0].global_orient, atol=1e-9)


def test_particles_match_too(clouds):
    folder = clouds / "oriented"
    tiny.train(
        tiny.recipe("nbody", model={"name": "oriented-nbody", "hidden_feats": 8, "num_layers": 1}), folder
    )
    subject = read_subject("system.npz", load_trained_model(folder / "run_0.pth"), None, None, seed=0)
    first, other = view._clouds(subject, poses(subject, 2, seed=1), "error", 40)
    np.testing.assert_allclose(other.turned_back().frames, first.frames, atol=1e-9)
    assert first.coloring("error").texts == other.coloring("error").texts


@pytest.mark.parametrize(
    ("network", "names"),
    [
        (None, {"distance", "normal", "part"}),
        ("pointcls", {"distance", "class", "normal", "part"}),
        ("partseg", {"part", "error", "distance", "normal"}),
        ("normals", {"normal", "error", "distance", "part"}),
    ],
)
def test_colours_tell_what_there_is(clouds, network, names):
    trained = None if network is None else load_trained_model(tiny.trained(network))
    subject = read_subject("chair/one.ply", trained, None, None, seed=0)
    (pose,) = poses(subject, 1, seed=0)
    found = {each.name: each for each in colorings(subject, pose, None)}
    assert set(found) == names
    if network == "partseg":
        # Only parts of a chair are answers for one, and an error is where the true part is another.
        true = [trained.metadata["part_names"][int(part)] for part in pose.graph.ndata["part"]]
        assert set(found["part"].texts) <= {"chair/seat", "chair/back", "chair/leg"}
        right = ["right" if one == two else "wrong" for one, two in zip(found["part"].texts, true)]
        assert list(found["error"].texts) == right
    if network == "normals":
        cosine = (
            torch.nn.functional.normalize(pose.seen.answer.view(-1, 3), dim=1) * pose.graph.ndata["normal"]
        )
        errors = torch.rad2deg(cosine.sum(1).acos())
        np.testing.assert_allclose([float(text) for text in found["error"].texts], errors, rtol=0.01)


@pytest.mark.parametrize("name", ["cloud.png", "cloud.pdf", "cloud.svg", "cloud.html"])
def test_a_cloud_becomes_a_file_of_any_kind(clouds, capfd, name):
    flags = ["--poses", 2, "--level", "0,1", "--global", "--arrows", 10, "--length", 0.2, "--color", "class"]
    code, out, err = answer(capfd, "chair/one.ply", "--cpt", tiny.trained("pointcls"), "--out", name, *flags)
    assert (code, err) == (0, ""), err
    assert out == f"Written to {name}\n" and (clouds / name).stat().st_size > 5000


def test_without_arrows_there_are_none(clouds):
    subject = read_subject("chair/one.ply", None, None, None, seed=0)
    (cloud,) = view._clouds(subject, poses(subject, 1, seed=0), None, 0)
    options = view.CloudOptions(num_arrows=0, level="all")
    looks = view._looks(cloud, view._look(options), options)
    assert [len(arrows(cloud, look, 0)[0]) for look in looks] == [0] * 4
    # Only the last level is the whole cloud's, and has its arrows at the centre.
    assert [look.show_global for look in looks] == [False, False, False, True]


def test_without_a_checkpoint_the_title_says_so(clouds, capfd):
    assert answer(capfd, "bare.npz", "--up", "y", "--camera", 10, 60) == (0, "Written to bare.html\n", "")
    assert "bare.npz, a fresh network, which has learned nothing" in (clouds / "bare.html").read_text()


def test_a_network_without_orientations_shows_the_cloud(clouds, capfd):
    model = {"name": "dgcnn", "preset": "light", "widths": [4, 4], "embed_feats": 8, "k": 4}
    tiny.train(tiny.recipe("pointcls", model=model), clouds / "plain")
    assert answer(capfd, "bare.npz", "--cpt", "plain/run_0.pth", "--quiet") == (0, "", "")
    assert "which has no orientations" in (clouds / "bare.html").read_text()
    code, _, err = answer(capfd, "bare.npz", "--cpt", "plain/run_0.pth", "--global")
    assert code == 2 and "no global orientation" in err
    code, _, err = answer(capfd, "--quality", "--cpt", "plain/run_0.pth")
    assert code == 2 and "dgcnn" in err and "no orientations" in err


def run_folder(pipeline: str):
    return tiny.trained(pipeline).parent


@pytest.mark.parametrize(
    ("pipeline", "drawing"),
    [
        ("pointcls", "confusion"),
        ("partseg", "iou_bars"),
        ("normals", "error_curve"),
        ("nbody", "trajectories"),
    ],
)
def test_a_folder_shows_what_its_results_say(clouds, capfd, monkeypatch, pipeline, drawing):
    """The numbers that are drawn of the test set are those that the training has found."""
    drawn = []
    make = getattr(view_run, drawing)
    monkeypatch.setattr(view_run, drawing, lambda *given: (drawn.append(given), make(*given))[1])
    folder = run_folder(pipeline)
    assert answer(capfd, folder, "--out", "run.png") == (0, "Written to run.png\n", "")
    metrics = json.loads((folder / "results.json").read_text())["metrics"]["test"]
    ((given, *_),) = drawn
    if pipeline == "pointcls":
        assert given.sum() == tiny.SIZES["test"]
        assert np.trace(given) / given.sum() == pytest.approx(metrics["accuracy"]["mean"])
    elif pipeline == "partseg":
        assert np.nanmean(given) == pytest.approx(metrics["class_miou"]["mean"])
    elif pipeline == "normals":
        errors = 1 - np.cos(np.radians(given))
        assert errors.mean() == pytest.approx(metrics["normal_error"]["mean"], rel=1e-4)
    else:
        test = ChargedParticles("test", num_particles=5, size=5, horizon=20)
        for system, graph in zip(given, test):
            np.testing.assert_allclose(system.path[0], graph.ndata["pos"], atol=1e-6)
            np.testing.assert_allclose(system.path[-1], graph.ndata["target_pos"], atol=1e-5)


def test_a_folder_becomes_a_page_and_may_have_curves_alone(clouds, capfd):
    folder = clouds / "begun"
    (folder / "run_0").mkdir(parents=True)
    shutil.copy(run_folder("pointcls") / "run_0" / "log.jsonl", folder / "run_0")
    with open(folder / "run_0" / "log.jsonl", "a") as log:
        log.write('{"epoch": 2, "lo')  # being written
    assert answer(capfd, folder, "--quiet") == (0, "", "")
    assert "<svg" in (clouds / "begun.html").read_text()
    with open(folder / "run_0" / "log.jsonl", "a") as log:
        log.write("\n")
    code, _, err = answer(capfd, folder)
    assert code == 2 and "Line 2 of" in err and err.count("\n") == 1


def test_quality_is_measured_and_stored(clouds, capfd):
    flags = ["--quality", "--cpt", tiny.trained("pointcls"), "--clouds", 1, "--out", "some.png"]
    assert answer(capfd, *flags) == (0, "Written to some.png\nWritten to some.json\n", "")
    stored = json.loads((clouds / "some.json").read_text())
    assert set(stored["networks"]) == {"trained", "fresh"}
    for found in stored["networks"].values():
        assert len(found["smoothness"]) == len(found["degenerate"]) == 3 and found["shapes"] == 1
    assert stored["networks"]["trained"]["accuracy"] in (0, 1)
    assert "accuracy" not in stored["networks"]["fresh"]
    assert stored["settings"]["num_points"] == 40 and stored["recipe"]["pipeline_name"] == "pointcls"


def test_help_is_given_without_torch():
    program = """
        import contextlib, io, sys
        from dgl_orient.go.cli import run
        with contextlib.redirect_stdout(io.StringIO()) as told:
            assert run(["view", "--help"]) == 0
        assert "--poses" in told.getvalue() and "Examples:" in told.getvalue()
        assert not {"torch", "dgl", "numpy", "matplotlib"} & set(sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


BAD = {
    "nothing": [],
    "no such file": ["nowhere.ply"],
    "garbled": ["garbled.ply"],
    "unknown ending": ["bare.npz", "--out", "cloud.gif"],
    "no checkpoint": ["bare.npz", "--cpt", "nowhere.pth"],
    "not a checkpoint": ["bare.npz", "--cpt", "garbled.ply"],
    "colour": ["bare.npz", "--color", "colour"],
    "no such colouring here": ["bare.npz", "--color", "error"],
    "level": ["bare.npz", "--level", "9"],
    "level in words": ["bare.npz", "--level", "first"],
    "level of many digits": ["bare.npz", "--level", "9" * 5000],
    "vectors in two dimensions": ["odd_target_pos.npz"],
    "several parts of a point": ["odd_part.npz"],
    "beyond all bounds": ["odd_size.npz"],
    "no log": ["odd_log"],
    "a log of endless numbers": ["odd_numbers"],
    "orientation": ["bare.npz", "--orientation", "0,4"],
    "length": ["bare.npz", "--length", "0"],
    "length is nan": ["bare.npz", "--length", "nan"],
    "camera": ["bare.npz", "--camera", "100", "0"],
    "up": ["bare.npz", "--up", "q"],
    "too many poses": ["bare.npz", "--poses", "99"],
    "category": ["bare.npz", "--category", "chair"],
    "empty folder": ["chair"],
    "quality without a network": ["--quality"],
    "quality of a file": ["bare.npz", "--quality", "--cpt", "nowhere.pth"],
    "clouds without quality": ["bare.npz", "--clouds", "3"],
    "poses of a folder": ["chair", "--poses", "2"],
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
    before = sorted(clouds.rglob("*"))
    code, out, err = answer(capfd, *arguments)
    assert (code, out) == (2, "") and err.count("\n") == 1 and err.rstrip().endswith("."), err
    assert sorted(clouds.rglob("*")) == before and len(err) < 1000


def test_the_category_is_asked_for(clouds, capfd):
    code, _, err = answer(capfd, "bare.npz", "--cpt", tiny.trained("partseg"))
    assert code == 2 and "--category" in err and "chair" in err
    code, _, err = answer(
        capfd, "bare.npz", "--cpt", tiny.trained("partseg"), "--category", "chair", "--quiet"
    )
    assert (code, err) == (0, "")


def test_without_the_extra_the_sentence_says_what_to_install(clouds, capfd, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for arguments in (["bare.npz"], [run_folder("pointcls")]):
        code, _, err = answer(capfd, *arguments, "--out", "cloud.png")
        assert code == 2 and 'pip install ".[plot]"' in err and err.count("\n") == 1
    # A page of a cloud needs nothing.
    assert answer(capfd, "bare.npz", "--out", "cloud.html")[0] == 0


def test_more_points_than_the_network_knows_are_drawn_from(clouds):
    write_cloud(clouds / "many.npz", np.random.default_rng(0).random((300, 3)))
    trained = load_trained_model(tiny.trained("normals"))
    assert read_subject("many.npz", trained, None, None, 0).graph.num_nodes() == trained.num_points == 40
    assert read_subject("many.npz", trained, 100, None, 0).graph.num_nodes() == 100
    assert read_subject("many.npz", None, None, None, 0).graph.num_nodes() == 300


def test_names_with_signs_that_cannot_be_printed_make_good_pictures(clouds, capfd):
    (clouds / "b\x01c.npz").write_bytes((clouds / "bare.npz").read_bytes())
    assert answer(capfd, "b\x01c.npz", "--out", "cloud.svg", "--arrows", "0")[0] == 0
    assert "\x01" not in (clouds / "cloud.svg").read_text()
