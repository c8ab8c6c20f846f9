"""Our pipelines in dglgo, and dglgo's own pipelines behind our command line."""

import importlib
import random
import re

import pytest
import yaml

from dgl_orient.config import registry
from dgl_orient.config.recipe import RecipeError
from dgl_orient.go.dglgo_bridge import register_pipelines
from tests.go.cli_runner import run_cli

META = """dataset_name: small
edge_data:
- file_name: edges.csv
node_data:
- file_name: nodes.csv
"""


def _write_graph(folder, num_nodes=60):
    """Two kinds of nodes that differ in their features, as DGL's CSV data set reads them."""
    rng = random.Random(0)
    nodes = ["node_id,feat,label"]
    edges = ["src_id,dst_id"]
    for number in range(num_nodes):
        kind = number % 2
        nodes.append(f'{number},"{rng.gauss(4 * kind, 1)},{rng.gauss(-kind, 1)}",{kind}')
        edges += [f"{number},{(number + 2 * rng.randrange(num_nodes)) % num_nodes}" for _ in range(3)]
    folder.mkdir()
    (folder / "meta.yaml").write_text(META)
    (folder / "nodes.csv").write_text("\n".join(nodes) + "\n")
    (folder / "edges.csv").write_text("\n".join(edges) + "\n")


def test_a_pipeline_of_dglgos_is_configured_trained_and_exported(in_folder, capfd):
    _write_graph(in_folder / "graph")
    code, out, err = run_cli(
        capfd, "configure", "nodepred", "--data", "csv", "--model", "gcn", "--cfg", "c.yaml"
    )
    assert code == 0 and "c.yaml" in out, err
    recipe = yaml.safe_load((in_folder / "c.yaml").read_text())
    assert (recipe["pipeline_name"], recipe["data"]["name"], recipe["model"]["name"]) == (
        "nodepred",
        "csv",
        "gcn",
    )
    recipe["data"] |= {"data_path": "graph", "split_ratio": [0.4, 0.3, 0.3]}
    recipe["general_pipeline"] |= {"num_epochs": 60, "early_stop": None}
    recipe["general_pipeline"]["optimizer"]["lr"] = 0.05
    (in_folder / "c.yaml").write_text(yaml.safe_dump(recipe))
    code, out, err = run_cli(capfd, "train", "--cfg", "c.yaml")
    assert code == 0, err
    accuracy = float(re.search(r"Test Accuracy ([\d.]+)", out)[1])
    assert accuracy > 0.7, "no better than guessing"
    assert (in_folder / "results" / "run_0.pth").is_file()
    code, _, err = run_cli(capfd, "export", "--cfg", "c.yaml", "--output", "script.py")
    assert code == 0, err
    compile((in_folder / "script.py").read_text(), "script.py", "exec")


def test_what_dglgo_refuses_is_a_sentence(in_folder, capfd):
    (in_folder / "bad.yaml").write_text(
        "pipeline_name: nodepred\npipeline_mode: train\ndata: {name: corra}\n"
    )
    code, _, err = run_cli(capfd, "export", "--cfg", "bad.yaml")
    assert code == 2 and "Traceback" not in err


@pytest.mark.parametrize("content", ["a network of ours", "1 2 3"])
def test_checkpoints_that_are_not_of_dglgo_are_refused(content, training, in_folder, capfd):
    path = training / "results" / "run_0.pth"
    if content != "a network of ours":
        path = in_folder / "points.xyz"
        path.write_text(content)
    for pipeline in ("nodepred", "graphpred"):
        code, out, err = run_cli(capfd, "configure-apply", pipeline, "--cpt", path)
        assert (code, out) == (2, "") and "Traceback" not in err and err.rstrip().endswith(".")


def test_dglgo_knows_our_pipelines_beside_its_own():
    register_pipelines()
    from dglgo.utils.factory import ApplyPipelineFactory, PipelineBase, PipelineFactory

    assert set(PipelineFactory.registry) == {*registry.PIPELINES, *registry.DGLGO_PIPELINES}
    assert set(ApplyPipelineFactory.registry) == {*registry.PIPELINES, *registry.DGLGO_APPLY}
    for factory in (PipelineFactory, ApplyPipelineFactory):
        for name in registry.PIPELINES:
            assert isinstance(factory.registry[name], PipelineBase)
            assert factory.registry[name].get_description() == registry.PIPELINES[name]


def test_dglgo_writes_and_exports_with_our_pipelines(tmp_path, monkeypatch):
    """dglgo's own functions know our pipelines by its factories alone."""
    monkeypatch.chdir(tmp_path)
    register_pipelines()
    from dglgo.utils.factory import PipelineFactory

    function = PipelineFactory.registry["pointcls"].get_cfg_func()
    enums = {name: hint.__origin__ for name, hint in function.__annotations__.items() if name != "cfg"}
    function(data=enums["data"]["shapes"], model=enums["model"]["dgcnn"])
    assert (tmp_path / "pointcls_shapes_dgcnn.yaml").is_file()
    importlib.import_module("dglgo.cli.export_cli").export("pointcls_shapes_dgcnn.yaml", "script.py")
    script = (tmp_path / "script.py").read_text()
    compile(script, "script.py", "exec")
    assert "DGCNN(" in script


def test_dglgo_exports_nothing_that_is_not_checked(tmp_path):
    recipe = {"pipeline_name": "pointcls", "pipeline_mode": "train", "data": {"name": "shapes"}}
    register_pipelines()
    path = tmp_path / "cfg.yaml"
    path.write_text(yaml.safe_dump(recipe | {"model": {"name": "dgcnn", "k": "1) or exit("}}))
    with pytest.raises(RecipeError, match="model.k: expected an integer"):
        importlib.import_module("dglgo.cli.export_cli").export(str(path), str(tmp_path / "script.py"))
    assert not (tmp_path / "script.py").exists()
