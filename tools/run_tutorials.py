"""Runs the tutorials top to bottom, each in an empty folder, and stores their outputs in the notebooks.

    make tutorials
    make tutorials ARGS=docs/tutorials/nbody.ipynb

The site shows what is stored; the tests run the notebooks again.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.ipynb"))
_COLORS = 128  # of a picture: fewer make a smaller notebook
_SECONDS = 1800  # for a cell; on a busy machine a minute of computing takes many


def run(path: Path, folder: Path, after: str = "") -> NotebookNode:
    """Execute a notebook in a folder, with the commands of this environment.

    Parameters
    ----------
    path : Path
        The notebook, which is not changed.
    folder : Path
        Where it runs; an empty one.
    after : str
        A cell to run at its end, which is not part of the result.
    """
    notebook = nbformat.read(path, as_version=4)
    number = len(notebook.cells)
    notebook.cells.append(nbformat.v4.new_code_cell(after))
    options = dict(timeout=_SECONDS, record_timing=False, coalesce_streams=True)
    options |= dict(resources={"metadata": {"path": str(folder)}})
    NotebookClient(notebook, **options).execute(env=_environment(folder))
    del notebook.cells[number:]
    return notebook


def _environment(folder: Path) -> Mapping[str, str]:
    """The commands of this environment first; figures in the notebook; nothing written to the home folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return os.environ | {
        "PATH": path,
        "DGLBACKEND": "pytorch",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "IPYTHONDIR": str(folder / ".ipython"),
        "TERM": "dumb",
    }


def tidy(notebook: NotebookNode, folder: Path) -> None:
    """Make outputs fit to be stored: smaller pictures, no names of figures, no place of the run."""
    for output in (each for cell in notebook.cells for each in cell.get("outputs", ())):
        data = output.get("data", {})
        if "image/png" in data:
            output.data = NotebookNode({"image/png": _smaller(data["image/png"])})
        if "text" in output:
            output.text = output.text.replace(f"{folder}/", "")


def _smaller(png: str) -> str:
    picture, buffer = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"), io.BytesIO()
    picture.quantize(_COLORS, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, default=TUTORIALS, help="default: all")
    for path in parser.parse_args().notebooks:
        with tempfile.TemporaryDirectory() as folder:
            notebook = run(path, Path(folder))
        tidy(notebook, Path(folder))
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size // 1000} kB", flush=True)


if __name__ == "__main__":
    main()
