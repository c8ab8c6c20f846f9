"""Trainings on ShapeNet-Part and their page, with tiny random shapes in the layout of the download."""

from __future__ import annotations

from statistics import mean

import pytest
from PIL import Image

from benchmarks.experiments.json_files import read_json
from benchmarks.experiments.shapenetpart.__main__ import main
from benchmarks.experiments.shapenetpart.pictures import PICTURE
from benchmarks.experiments.shapenetpart.results import PAPER, TUNED, summary
from benchmarks.experiments.shapenetpart.robustness import CASES, FILE
from dgl_orient.data import ShapeNetPart
from tests.data.test_shapenetpart import write_plain


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder of results of two networks that were trained for an epoch."""
    folder = tmp_path_factory.mktemp("shapenetpart")
    write_plain(folder, size=64)
    options = ["--quick", "--folder", str(folder)]
    assert main(["protocol", "--train", "z", "--epochs", "1", "--raw-dir", str(folder), *options]) == 0
    names = ["oriented-dgcnn-shapenetpart", "dgcnn_z_1_0"]
    assert main(["robust", *names, "--every", "1", "--raw-dir", str(folder), *options]) == 0
    assert main(["summary", *options]) == 0
    return folder / "quick" / "results"


def test_mean_of_categories_is_the_class_miou(results):
    for model in ("oriented-dgcnn", "dgcnn"):
        record = read_json(results / "runs" / f"{model}_z_1_0.json")
        assert list(record["tests"]) == list(record["categories"]) == ["z/z", "z/so3"]
        for protocol, test in record["tests"].items():
            categories = record["categories"][protocol]
            assert len(categories) == 16
            assert mean(categories.values()) == pytest.approx(test["class_miou"], abs=1e-4)


def test_miou_of_the_oriented_network_does_not_depend_on_test_rotations(results):
    summary = read_json(results / "summary.json")
    oriented, plain = (summary[model] for model in ("oriented-dgcnn", "dgcnn"))
    assert oriented["z/z"] == oriented["z/so3"] and plain["z/z"] != plain["z/so3"]


def test_page_has_the_figures_of_the_summary_and_the_paper(results):
    page = (results / "README.md").read_text()
    for model, protocols in read_json(results / "summary.json").items():
        for figures in protocols.values():
            assert f"| {figures['class_miou']} |" in page and f"| {figures['instance_miou']} |" in page
        assert f"| {mean(PAPER[model]['z/so3']):.1f} |" in page
    assert "Not measured" not in page and (results / "validation_curves.png").exists()


def test_networks_of_a_category_each_are_one_row_once_there_are_all():
    def record(number: int, category: str) -> dict[str, object]:
        return {
            "recipe": {"data": {"category": category, "num_points": {"test": 64}}},
            "tests": {"z/so3": {}},
            "categories": {"z/so3": {category: number / 16}},
            "shapes": {"z/so3": 100 if category == "Table" else 1},
            "cpu_seconds_per_epoch": 360.0,
            "epochs": 2,
        }

    runs = {
        f"per-category_{name.lower()}_2_0": record(number, name)
        for number, name in enumerate(ShapeNetPart.class_names)
    }
    figures = summary(runs)[TUNED]["z/so3"]
    assert figures["class_miou"] == round(100 * 7.5 / 16, 2)
    assert figures["instance_miou"] == round(100 * (sum(range(15)) + 15 * 100) / 16 / 115, 2)
    assert figures["cpu_hours"] == 3.2 and figures["epochs"] == 2 and len(figures["categories"]) == 16
    assert summary(dict(list(runs.items())[1:])) == {}


def test_epochs_of_both_stages_count():
    def record(epochs: int, **more) -> dict[str, object]:
        figures = {"class_miou": epochs / 100, "instance_miou": 0.5}
        common = {"recipe": {"data": {"num_points": {"test": 64}}}, "cpu_seconds_per_epoch": 360.0}
        return common | {"tests": {"z/z": figures}, "categories": {"z/z": {}}, "epochs": epochs, **more}

    origin = {"sha256": "", "num_epochs": 9, "protocol": "z/so3", "seed": 0}
    runs = {
        "dgcnn_z_10_0": record(10),
        "dgcnn_z_4_0_refined": record(4, initial_weights=origin),
        "dgcnn_z_9_0": record(9),
    }
    figures = summary(runs)["dgcnn"]["z/z"]
    assert figures["class_miou"] == 4.0 and figures["epochs"] == 13 and figures["cpu_hours"] == 1.3


def test_fine_tuning_begins_with_the_pretrained_network(tmp_path, capsys):
    write_plain(tmp_path, size=64)
    options = ["--quick", "--folder", str(tmp_path), "--raw-dir", str(tmp_path)]
    assert main(["finetune", "--categories", "Mug", "--epochs", "1", *options]) == 0
    record = read_json(tmp_path / "quick" / "results" / "runs" / "per-category_mug_1_0.json")
    assert list(record["categories"]["z/so3"]) == ["Mug"] and record["shapes"]["z/so3"] > 0
    assert "begins with oriented-pointnet2-shapenetpart" in capsys.readouterr().err


def test_true_and_predicted_parts_are_drawn(tmp_path):
    write_plain(tmp_path, size=64)
    assert main(["pictures", "--quick", "--folder", str(tmp_path), "--raw-dir", str(tmp_path)]) == 0
    with Image.open(tmp_path / "quick" / "results" / PICTURE) as picture:
        assert picture.width > 3 * picture.height and len(picture.convert("RGB").getcolors(1 << 24)) > 20


def test_every_network_has_every_case_of_robustness(results):
    networks = read_json(results / FILE)["networks"]
    assert list(networks) == ["oriented-dgcnn-shapenetpart", "dgcnn_z_1_0"]
    page = (results / "README.md").read_text()
    for each in networks.values():
        assert list(each["cases"]) == list(CASES) and each["command"] in page
        assert all(0 < value < 1 for case in each["cases"].values() for value in case.values())
    cases = networks["oriented-dgcnn-shapenetpart"]["cases"]
    assert cases["clean"] != cases["jitter 0.02"] and cases["clean"] != cases["one view"]
