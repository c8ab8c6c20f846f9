"""The script of a recipe for inference."""

from __future__ import annotations

from collections.abc import Mapping

from ..config.schema import FILES

__all__ = ["apply_script"]


def apply_script(checked: Mapping) -> str:
    """A script that predicts what a checked recipe for inference predicts."""
    options = dict(checked["general_pipeline"])
    arguments = {"output": options.pop("save_path"), "device": checked["device"], **options}
    data = dict(checked["data"])
    if data["name"] == FILES:
        function, inputs = "apply", data["raw_dir"]
    else:
        function, arguments = "apply_data", {"split": data.pop("split")} | arguments
        inputs = data
    lines = [f"        {name}={value!r}," for name, value in arguments.items()]
    plugins = list(checked.get("plugins", ()))
    return "\n".join(
        [
            f'"""Predict {"files" if function == "apply" else "a data set"} with a trained network."""',
            "",
            f"from dgl_orient.go.apply import {function}",
            "from dgl_orient.go.report import print_report",
            *(["from dgl_orient.config.plugins import import_plugins"] if plugins else []),
            "",
            'if __name__ == "__main__":',
            *([f"    import_plugins({plugins!r})"] if plugins else []),
            f"    results = {function}(",
            f"        {checked['cpt_path']!r},",
            f"        {inputs!r},",
            *lines,
            "    )",
            "    print_report(results)",
            "",
        ]
    )
