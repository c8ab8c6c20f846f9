"""Make the gallery: pictures of what a trained network sees in shapes, and the page that shows them.

    python examples/gallery.py --cpt results/run_0.pth --out docs/gallery

writes the pictures into docs/gallery and the page docs/gallery.md. The network is one for pointcls, trained
on shapes; --partseg and --normals add pictures of such networks' answers.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from pathlib import Path

from dgl import DGLError

from dgl_orient._atomic import write_file
from dgl_orient.data import Shapes, write_cloud
from dgl_orient.go.environment import prepare
from dgl_orient.go.view import CloudOptions, view_cloud
from dgl_orient.go.view_quality import view_quality
from dgl_orient.go.view_run import view_run
from dgl_orient.plot.saving import output_path
from dgl_orient.zoo.trained_model import load_trained_model

CLASSES = ("plane", "chair", "mug", "guitar", "lamp", "table")
LARGEST = 150_000  # bytes of a picture
WIDEST = 1600  # pixels


def shrink(path: Path) -> None:
    """Make a picture small enough to be looked at in a page: fewer colours, and fewer pixels if need be."""
    from PIL import Image

    picture = Image.open(path).convert("RGB")
    picture.thumbnail((WIDEST, WIDEST), Image.Resampling.LANCZOS)
    while True:
        buffer = io.BytesIO()
        picture.quantize(96, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
        if buffer.tell() <= LARGEST:
            break
        smaller = [round(0.85 * side) for side in picture.size]
        picture = picture.resize(smaller, Image.Resampling.LANCZOS)
    write_file(path, buffer.getvalue())


def write_shapes(folder: Path) -> dict[str, Path]:
    """One test shape of each class as a file in a folder of the class's name, with normals and parts."""
    # All classes are made, for a choice of them would number their parts anew.
    shapes = Shapes("test", num_points=2048, num_shapes=10)
    files = {}
    for name in CLASSES:
        graph, _ = shapes[shapes.class_names.index(name)]
        (folder / name).mkdir()
        files[name] = folder / name / f"{name}.ply"
        write_cloud(files[name], **{key: values.numpy() for key, values in graph.ndata.items()})
    return files


class Gallery:
    """Pictures in a folder, and the lines of the page beside it."""

    def __init__(self, folder: Path, files: dict[str, Path]) -> None:
        self.folder, self.files = folder, files
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        self.lines += [*lines, ""]

    def picture(self, name: str, words: str) -> None:
        """Show a picture that was just written."""
        shrink(self.folder / name)
        self.add(f"![{words}]({self.folder.name}/{name})")

    def cloud(self, shape: str, name: str, checkpoint: Path, words: str, **options) -> None:
        view_cloud(self.files[shape], checkpoint, self.folder / name, CloudOptions(**options))
        self.picture(name, words)


def add_clouds(gallery: Gallery, checkpoint: Path, points: int | None) -> None:
    gallery.add(
        "Red arrows are first axes and green arrows second axes of the points' orientations; colours tell "
        "the distance from the centre. The title has the class that the network answers with. Each picture "
        "is made by `dgl-orient view SHAPE.ply --cpt run_0.pth --out SHAPE.png`."
    )
    for shape in CLASSES:
        gallery.cloud(shape, f"{shape}.png", checkpoint, f"orientations of a {shape}", points=points)
    gallery.add(
        "## The same shape in several poses",
        "",
        "The network sees every pose anew. Below, all poses are turned back; the titles say by how much the "
        "arrows' tips then differ from those of the first, as a share of the radius (`--poses 4 --global`). "
        "The large arrows are the whole cloud's orientation.",
    )
    options = dict(num_poses=4, show_global=True, num_arrows=60, points=points)
    gallery.cloud("plane", "poses.png", checkpoint, "a plane in four poses, and turned back", **options)
    gallery.add(
        "## Levels and several orientations",
        "",
        "From the points' own orientations to those of coarser and coarser levels and of the whole cloud "
        "(`--level all --orientation all`).",
    )
    options = dict(level="all", orientation="all", num_arrows=60, points=points)
    gallery.cloud("chair", "levels.png", checkpoint, "a chair's orientations at all levels", **options)


def add_answers(gallery: Gallery, partseg: Path | None, normals: Path | None) -> None:
    if partseg:
        gallery.add(
            "## Parts", "", "Predicted parts, and where they are wrong (`--color part`, `--color error`)."
        )
        gallery.cloud("chair", "parts.png", partseg, "predicted parts of a chair", num_arrows=40)
        gallery.cloud("chair", "parts_error.png", partseg, "wrong parts", num_arrows=0, color="error")
    if normals:
        words = (
            "Predicted normals as colours, and their error in degrees (`--color normal`, `--color error`)."
        )
        gallery.add("## Normals", "", words)
        gallery.cloud("mug", "normals.png", normals, "predicted normals of a mug", num_arrows=40)
        gallery.cloud("mug", "normals_error.png", normals, "errors of normals", num_arrows=0, color="error")


def add_quality(gallery: Gallery, checkpoint: Path, clouds: int) -> None:
    picture, numbers = view_quality(checkpoint, gallery.folder / "quality.png", clouds, progress=False)
    found = json.loads(numbers.read_text())
    gallery.add(
        "## How robust orientations are",
        "",
        f"Angles between frames on {found['settings']['num_clouds']} test clouds, of the trained network and "
        f"of the same one before training: `dgl-orient view --quality --cpt run_0.pth --clouds {clouds} "
        f"--out quality.png`, whose numbers are in [quality.json]({gallery.folder.name}/quality.json). "
        "Unrelated frames are 132° apart at the median (dotted). [view.md](view.md) says how it is measured.",
    )
    gallery.picture(picture.name, "drift of orientations under jitter, dropout and outliers")
    rows = ["| median angle, degrees | " + " | ".join(found["networks"]) + " |"]
    rows.append("|---|" + "---|" * len(found["networks"]))
    for kind in ("smoothness", "agreement"):
        medians = [f"{each[kind][0]['median']:.0f}" for each in found["networks"].values()]
        words = {"smoothness": "between neighbours", "agreement": "between samples of a shape"}[kind]
        rows.append(f"| points, {words} | " + " | ".join(medians) + " |")
    for name in ("jitter", "dropout", "outliers"):
        for each in zip(*(network["drift"][name] for network in found["networks"].values())):
            medians = [f"{one['levels'][0]['median']:.0f}" for one in each]
            rows.append(f"| points, {name} {each[0]['amount']:g} | " + " | ".join(medians) + " |")
    gallery.add(*rows)


def make(options: argparse.Namespace) -> list[str]:
    """Write all pictures; the lines of the page."""
    trained = load_trained_model(options.cpt)
    if trained.pipeline != "pointcls":
        raise DGLError(f"Expected --cpt of a network for pointcls, got one for {trained.pipeline}.")
    output_path("gallery.png", "")  # matplotlib is there, or all else is in vain
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        gallery = Gallery(options.out, write_shapes(Path(folder)))
        recipe = trained.recipe
        given = {"partseg": options.partseg, "normals": options.normals}
        others = "".join(f" --{name} CPT" for name, path in given.items() if path)
        gallery.add(
            "# What a network sees in shapes",
            "",
            f"Pictures of `{recipe['model']['name']}`, trained for `{recipe['pipeline_name']}` on "
            f"`{recipe['data']['name']}` with {trained.num_points} points a cloud. All of this page is made "
            f"by `python examples/gallery.py --cpt run_0.pth{others} --out docs/{options.out.name}`.",
        )
        add_clouds(gallery, options.cpt, options.points)
        add_answers(gallery, options.partseg, options.normals)
        add_quality(gallery, options.cpt, options.clouds)
        if (options.cpt.parent / "run_0" / "log.jsonl").exists():
            gallery.add("## Its training", "", "`dgl-orient view RUN_DIR --out training.png`")
            view_run(options.cpt.parent, options.out / "training.png", progress=False)
            gallery.picture("training.png", "training curves and the confusion matrix")
    return gallery.lines


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpt", type=Path, required=True, help="network for pointcls on shapes, run_0.pth")
    parser.add_argument("--partseg", type=Path, help="network for partseg on shapes")
    parser.add_argument("--normals", type=Path, help="network for normals on shapes")
    parser.add_argument("--out", type=Path, default=Path("docs/gallery"), help="folder of the pictures")
    parser.add_argument("--points", type=int, help="points of a shape; by default as many as in training")
    parser.add_argument("--clouds", type=int, default=40, help="test clouds to measure orientations on")
    options = parser.parse_args(arguments)
    prepare()
    try:
        lines = make(options)
        page = options.out.with_suffix(".md")
        write_file(page, ("\n".join(lines).rstrip() + "\n").encode())
    except DGLError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(f"Written to {page} and {options.out}")


if __name__ == "__main__":
    main()
