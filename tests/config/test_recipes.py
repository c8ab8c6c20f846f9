"""The example recipes: all are valid, and those that need no download train."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from dgl_orient.config.build import build
from dgl_orient.config.recipe import check, load, read
from dgl_orient.train.settings import Settings
from tests.go import tiny

FOLDER = Path(__file__).resolve().parents[2] / "recipes"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_valid_and_named_for_what_it_holds(name):
    recipe = load(FOLDER / f"{name}.yaml")
    Settings.of(recipe["general_pipeline"])
    pipeline, data, model, paper = re.fullmatch(
        r"(\w+?)_([\w-]+?)_([\w-]+?)(-paper)?(?:-quick)?", name
    ).groups()
    number = str(recipe["data"].get("num_particles", ""))
    assert [recipe["pipeline_name"], recipe["data"]["name"] + number] == [pipeline, data]
    assert recipe["model"]["name"] == model
    assert (recipe["model"].get("preset") == "paper") == bool(paper)
    assert (FOLDER / f"{name}.yaml").read_text().startswith("# ")


def test_every_recipe_has_a_quick_twin():
    quick = {name.removesuffix("-quick") for name in NAMES if name.endswith("-quick")}
    assert quick == {name for name in NAMES if not name.endswith("-quick")}
    for name in quick:
        epochs = [
            read(FOLDER / f"{each}.yaml")["general_pipeline"]["num_epochs"]
            for each in (name, f"{name}-quick")
        ]
        assert epochs[0] > epochs[1]


def test_the_tasks_and_networks_are_all_there():
    expected = {
        f"pointcls_modelnet40_{net}" for net in ("oriented-dgcnn", "oriented-rscnn", "dgcnn", "rscnn")
    }
    expected |= {f"{task}_shapes_oriented-dgcnn" for task in ("pointcls", "partseg", "normals")}
    expected |= {f"{task}_shapes_dgcnn" for task in ("pointcls", "normals")}
    for net in ("oriented-dgcnn", "dgcnn"):
        expected |= {f"partseg_shapenetpart_{net}", f"normals_modelnet40_{net}"}
    networks = ("oriented-nbody", "egnn", "gnn", "linear")
    expected |= {f"nbody_charged{n}_{net}" for n in (5, 10, 20) for net in networks}
    expected |= {f"{task}_folder_oriented-dgcnn" for task in ("pointcls", "partseg", "normals")}
    expected |= {f"molprop_qm9_{net}" for net in ("oriented-mol", "egnn", "schnet", "painn")}
    expected |= {f"moltensor_qm9_{net}" for net in ("oriented-mol", "painn")}
    expected |= {"molprop_molecules_oriented-mol"}
    assert expected | {"nbody_charged-files_oriented-nbody"} <= set(NAMES)


@pytest.mark.parametrize("network", ["oriented-dgcnn", "dgcnn"])
def test_dgcnn_is_trained_as_the_field_trains_it(network):
    general = load(FOLDER / f"pointcls_modelnet40_{network}.yaml")["general_pipeline"]
    settings = Settings.of(general)
    assert (settings.optimizer.name, settings.optimizer.lr, settings.lr_scheduler.name) == (
        "sgd",
        0.1,
        "cosine",
    )
    assert (settings.num_epochs, settings.train_batch_size, settings.label_smoothing) == (250, 32, 0.2)


@pytest.mark.parametrize("protocol", ["z/z", "z/so3", "so3/so3"])
def test_one_key_chooses_the_protocol(protocol):
    recipe = read(FOLDER / "pointcls_modelnet40_rscnn.yaml")
    recipe["general_pipeline"]["protocol"] = protocol
    assert check(recipe)["general_pipeline"]["protocol"] == protocol


def test_normals_of_modelnet_say_whether_their_sign_counts():
    names = [name for name in NAMES if name.startswith("normals_modelnet40_")]
    assert len(names) >= 4
    for name in names:
        assert read(FOLDER / f"{name}.yaml")["general_pipeline"]["signed"] is True


@pytest.mark.parametrize("name", [name for name in NAMES if re.match(r"(partseg|normals)_\w+_dgcnn", name)])
def test_plain_segmentation_is_trained_as_its_oriented_twin(name):
    plain, oriented = (
        load(FOLDER / f"{each}.yaml") for each in (name, name.replace("_dgcnn", "_oriented-dgcnn"))
    )
    own = {"name", "num_orientations", "level_sizes", "orientation_k", "initial_feats", "orientation"}
    models = [{key: each["model"][key] for key in {*each["model"]} - own} for each in (plain, oriented)]
    assert models[0] == models[1]
    assert plain | {"model": None} == oriented | {"model": None}


RUN = [
    "pointcls_shapes_oriented-dgcnn-quick",
    "pointcls_shapes_dgcnn-quick",
    "partseg_shapes_oriented-dgcnn-quick",
    "normals_shapes_oriented-dgcnn-quick",
    "normals_shapes_dgcnn-quick",
    *(f"nbody_charged5_{net}-quick" for net in ("oriented-nbody", "egnn", "gnn", "linear")),
]


@pytest.mark.parametrize("name", RUN)
def test_a_recipe_without_download_trains(name, tmp_path):
    recipe = read(FOLDER / f"{name}.yaml")
    particles = recipe["pipeline_name"] == "nbody"
    recipe["data"] |= {"size": tiny.SIZES, "horizon": 20} if particles else {"num_shapes": tiny.SIZES}
    if not particles:
        recipe["data"]["num_points"] = 40
    recipe["general_pipeline"] |= {"num_epochs": 1, "train_batch_size": 5}
    recipe["general_pipeline"]["lr_scheduler"] = {"name": "cosine"}
    results = tiny.train(check(recipe), tmp_path / "results")
    assert all(metric["mean"] >= 0 for metric in results["metrics"]["test"].values())


@pytest.mark.parametrize("name", [name for name in NAMES if "_shapes_" in name and "-quick" not in name])
def test_the_networks_of_longer_recipes_can_be_made(name):
    recipe = read(FOLDER / f"{name}.yaml")
    recipe["data"]["num_shapes"] = tiny.SIZES
    assert sum(each.numel() for each in build(check(recipe)).make_model().parameters()) > 1000


@pytest.mark.parametrize("name", [name for name in NAMES if re.search("_qm9_.*-quick", name)])
def test_a_recipe_for_molecules_trains(name, tmp_path):
    recipe = read(FOLDER / f"{name}.yaml")
    tables = tiny.molecule_data(recipe["pipeline_name"])
    recipe["data"] |= {key: tables[key] for key in ("raw_dir", "margin")} | {"size": None, "save_dir": None}
    recipe["model"]["hidden_feats"] = 8
    recipe["general_pipeline"] |= {"num_epochs": 1, "lr_scheduler": {"name": "cosine"}}
    results = tiny.train(check(recipe), tmp_path / "results")
    main = "std_mae" if recipe["pipeline_name"] == "molprop" else "tensor_error"
    assert results["metrics"]["test"][main]["mean"] > 0


def put_files(folder: Path, pipeline: str) -> dict:
    """Write small files for a pipeline; what the recipe must say of them."""
    rng = np.random.default_rng(0)
    if pipeline == "molprop":
        frames = [f'2\nenergy={-d} pbc="F F F"\nH 0 0 0\nH 0 0 {d}\n' for d in np.linspace(0.5, 1, 20)]
        (folder / "hydrogen.xyz").write_text("".join(frames))
        return {}
    if pipeline == "nbody":
        for split in ("train", "valid", "test"):
            arrays = {name: rng.standard_normal((5, 3, 4, 3)) for name in ("loc", "vel")}
            for name, array in {**arrays, "charges": rng.choice([-1.0, 1.0], (5, 4))}.items():
                np.save(folder / f"{name}_{split}_mine.npy", array)
        return {"frames": [0, 2]}
    for number in range(10):
        normal = rng.standard_normal((30, 3))
        arrays = {"pos": rng.standard_normal((30, 3)), "normal": normal, "part": rng.integers(3, size=30)}
        inner = folder / str(number % 2) if pipeline == "pointcls" else folder
        inner.mkdir(exist_ok=True)
        np.savez(inner / f"{number}.npz", **arrays)
    return {"num_points": 24}


@pytest.mark.parametrize(
    "name", [name for name in NAMES if re.search("_(folder|charged-files|molecules)_.*-quick", name)]
)
def test_a_recipe_for_files_of_ones_own_trains(name, tmp_path):
    recipe = read(FOLDER / f"{name}.yaml")
    (tmp_path / "mine").mkdir()
    recipe["data"] |= put_files(tmp_path / "mine", recipe["pipeline_name"]) | {
        "raw_dir": str(tmp_path / "mine")
    }
    recipe["general_pipeline"] |= {"num_epochs": 1, "train_batch_size": 5, "lr_scheduler": {"name": "cosine"}}
    results = tiny.train(check(recipe), tmp_path / "results")
    assert all(metric["mean"] >= 0 for metric in results["metrics"]["test"].values())
