"""Recipes that nobody should write, each with words of the sentence that refuses it."""

GOOD = """
version: 0.0.2
pipeline_name: pointcls
pipeline_mode: train
device: cpu
data: {name: shapes, num_points: 64}
model: {name: dgcnn, preset: light}
general_pipeline: {num_epochs: 1}
"""

_LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)
)

HOSTILE = {
    "code as a pipeline": (GOOD.replace("pointcls", "__import__('os').system('touch pwned')"), "not known"),
    "code as a model": (
        GOOD.replace("dgcnn", "\"DGCNN); import os; os.system('touch pwned') #\""),
        "not known",
    ),
    "code as a data set": (GOOD.replace("shapes", '"{{ self.__init__.__globals__ }}"'), "data.name"),
    "code as a key": (GOOD + '"exec(1)": 2\n', "there is no such key"),
    "code as a key of the model": (GOOD.replace("preset: light", '"k=1) or exit(": 1'), "model."),
    "code as a device": (GOOD.replace("cpu", '"cpu\'); exit(3) #"'), "device"),
    "code as a protocol": (
        GOOD.replace("num_epochs: 1", "protocol: \"z/so3'+str(exit())+'\""),
        "general_pipeline.protocol",
    ),
    "code as an optimizer": (
        GOOD.replace("num_epochs: 1", 'optimizer: {name: "Adam(); exit(3)"}'),
        "optimizer.name",
    ),
    "code as a preset": (GOOD.replace("preset: light", "preset: __class__"), "model.preset"),
    "escape sequences": (GOOD.replace("shapes", '"\\e[2J\\e]0;pwned\\a"'), "data.name"),
    "control characters in a path": (
        GOOD.replace("num_epochs: 1", 'save_path: "a\\nb\\0c"'),
        "printable",
    ),
    "python object": ("!!python/object/apply:os.system ['touch pwned']", "tag"),
    "python object as a value": (GOOD.replace("0.0.2", "!!python/name:os.system"), "tag"),
    "local tag": (GOOD.replace("0.0.2", "!exec x"), "tag"),
    "binary": (GOOD.replace("0.0.2", "!!binary aGVsbG8="), "tag"),
    "set": (GOOD.replace("{name: shapes, num_points: 64}", "!!set {name}"), "tag"),
    "billion laughs": (_LAUGHS, "anchor"),
    "alias of itself": ("a: &a [*a]", "anchor"),
    "merge key": (GOOD.replace("preset: light", "<<: {k: 3}"), "there is no such key"),
    "huge integer": (GOOD.replace("64", "9" * 400), "too large"),
    "integer of more digits than Python converts": (GOOD.replace("64", "9" * 5000), "an integer"),
    "huge negative": (GOOD.replace("num_epochs: 1", "seed: -" + "9" * 40), "too large"),
    "float that overflows": (GOOD.replace("num_epochs: 1", "grad_clip: 1e999"), "finite"),
    "nan": (GOOD.replace("num_epochs: 1", "optimizer: {lr: .nan}"), "finite"),
    "infinity": (GOOD.replace("num_epochs: 1", "grad_clip: -.inf"), "finite"),
    "octal of YAML 1.1": (GOOD.replace("64", "010"), "expected an integer, got '010'"),
    "sexagesimal of YAML 1.1": (GOOD.replace("64", "1:30"), "expected an integer, got '1:30'"),
    "hexadecimal": (GOOD.replace("64", "0x10"), "expected an integer, got '0x10'"),
    "boolean of YAML 1.1": (GOOD.replace("num_epochs: 1", "bf16: yes"), "expected true or false, got 'yes'"),
    "version of the future": (GOOD.replace("0.0.2", "99"), "version: 99 is not known; expected one of 0.0.2"),
    "more points than memory": (
        GOOD.replace("64", "10000000"),
        "data.num_points: expected at most 1,000,000",
    ),
    "negative": (GOOD.replace("num_epochs: 1", "num_epochs: -1"), "at least 1"),
    "string for a number": (GOOD.replace("64", "many"), "expected an integer, got 'many'"),
    "boolean for a number": (GOOD.replace("64", "true"), "expected an integer, got True"),
    "date for a name": (GOOD.replace("shapes", "2020-01-01"), "data.name"),
    "list for the data": (GOOD.replace("{name: shapes, num_points: 64}", "[shapes]"), "data: expected a map"),
    "string for the model": (GOOD.replace("{name: dgcnn, preset: light}", "dgcnn"), "model: expected a map"),
    "list for the settings": (GOOD.replace("{num_epochs: 1}", "[num_epochs]"), "general_pipeline"),
    "map for a name": (GOOD.replace("dgcnn", "{name: dgcnn}"), "model.name"),
    "list for a name": (GOOD.replace("pointcls", "[pointcls]"), "pipeline_name"),
    "map for a number": (GOOD.replace("64", "{a: 1}"), "data.num_points"),
    "wrong nesting": (GOOD.replace("model: ", "  model: "), "is not a recipe in YAML"),
    "list of maps": ("- pipeline_name: pointcls\n- data: x\n", "expected a recipe"),
    "list as a key": ("? [a, b]\n: 1\n", "list or map as a key"),
    "twice the same key": (GOOD + "device: cuda\n", "twice in line"),
    "twice the same key inside": (GOOD.replace("preset: light", "k: 3, k: 4"), "twice"),
    "two documents": (GOOD + "---\n" + GOOD, "is not a recipe in YAML"),
    "only words": ("just some words", "expected a recipe"),
    "a number": ("42", "expected a recipe"),
    "null": ("~", "is empty"),
    "unclosed": ("a: [1, 2", "is not a recipe in YAML"),
    "tab": ("a:\n\t- b", "is not a recipe in YAML"),
    "deep lists": ("a: " + "[" * 5000 + "]" * 5000, "levels deep"),
    "deep maps": ("a: " + "{a: " * 500 + "1" + "}" * 500, "levels deep"),
    "long": ("# " + "x" * (1 << 19), "larger than 256 KB"),
    "no pipeline": (GOOD.replace("pipeline_name: pointcls", ""), "pipeline_name is missing"),
    "model for another pipeline": (GOOD.replace("dgcnn", "egnn"), "'egnn' is not for pointcls"),
    "data for another pipeline": (GOOD.replace("shapes", "charged"), "'charged' is not for pointcls"),
    "split that there is not": (
        GOOD.replace("num_points: 64", "num_shapes: {trian: 3}"),
        "did you mean 'train'",
    ),
    "inference in training": (GOOD.replace("mode: train", "mode: apply"), "pipeline_mode"),
    "plugins": (GOOD + "plugins: [os]\n", "--allow-plugins"),
    "plugins that are none": (GOOD + "plugins: os\n", "plugins: expected a list"),
    "dglgo with code as a loss": (
        "pipeline_name: nodepred\npipeline_mode: train\ndata: {name: cora}\nmodel: {name: gcn}\n"
        "general_pipeline: {loss: \"L1Loss() or __import__('os').system('touch pwned')\"}",
        "general_pipeline.loss: expected a single word",
    ),
    "dglgo with code as a number": (
        "pipeline_name: nodepred\npipeline_mode: train\ndata: {name: cora}\n"
        'general_pipeline: {num_runs: "exit(3)"}',
        "general_pipeline.num_runs: expected a number",
    ),
    "dglgo with code as a split": (
        'pipeline_name: graphpred\npipeline_mode: train\ndata: {name: csv, split_ratio: "exit(3)"}',
        "data.split_ratio: expected a number",
    ),
    "dglgo with a path as a loss": (
        "pipeline_name: nodepred\ngeneral_pipeline: {loss: modules.module.os.abort}",
        "expected a single word",
    ),
    "dglgo with a list for the data": ("pipeline_name: nodepred\ndata: [cora]", "data: expected a map"),
}
