"""Make the gallery: pictures of the pretrained model's orientations and others, and the page that shows them.

    python examples/gallery.py --out docs/gallery

writes the pictures into docs/gallery and the page docs/gallery.md. Networks for classes, parts and normals of
shapes are trained in the folder of --runs, unless they are there already.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from pathlib import Path

from dgl import DGLError

from dgl_orient.data import Shapes, write_cloud
from dgl_orient.go.commands import train
from dgl_orient.go.environment import prepare
from dgl_orient.go.recipes import copy_recipe
from dgl_orient.go.view_cloud import view_cloud, view_folder
from dgl_orient.go.view_run import view_quality, view_run
from dgl_orient.plot import Camera, PlotOptions
from dgl_orient.plot.saving import output_path, write_text
from dgl_orient.weights import DEFAULT, checkpoint_path
from dgl_orient.zoo.loading import load_trained_model

CLASSES = ("plane", "chair", "mug", "guitar", "lamp", "table")
#: The pretrained model for parts.
PARTS = "oriented-dgcnn-shapenetpart"
NUM_POINTS = {"dense": 20_000, "labelled": 4_096}
MAX_BYTES = 300_000  # of a picture
MAX_PIXELS = 1600  # of its longer side
UPRIGHT = Camera(up=Shapes.gravity)


def shrink(path: Path) -> None:
    """Make a picture small enough for a page: fewer colours, and fewer pixels if need be."""
    from PIL import Image

    picture = Image.open(path).convert("RGB")
    picture.thumbnail((MAX_PIXELS, MAX_PIXELS), Image.Resampling.LANCZOS)
    while True:
        buffer = io.BytesIO()
        picture.quantize(200, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
        if buffer.tell() <= MAX_BYTES:
            break
        smaller = [round(0.85 * side) for side in picture.size]
        picture = picture.resize(smaller, Image.Resampling.LANCZOS)
    path.write_bytes(buffer.getvalue())


def write_shapes(folder: Path) -> None:
    """Test shapes as files: ``dense/plane.ply``, and ``labelled/plane/plane.ply`` with normals and parts."""
    for kind, num_points in NUM_POINTS.items():
        # All classes, since a choice of them would number the parts differently.
        shapes = Shapes("test", num_points=num_points, num_shapes=10)
        for name in CLASSES:
            graph, _ = shapes[shapes.class_names.index(name)]
            data = {key: values.numpy() for key, values in graph.ndata.items()}
            path = folder / kind / f"{name}.ply" if kind == "dense" else folder / kind / name / f"{name}.ply"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_cloud(path, **({"pos": data["pos"]} if kind == "dense" else data))


def trained_network(pipeline: str, runs: Path) -> Path:
    """The checkpoint of a network for a pipeline on shapes, which is trained if it is missing."""
    folder = runs / pipeline
    if not any(folder.rglob("run_0.pth")):
        runs.mkdir(parents=True, exist_ok=True)
        recipe = copy_recipe(f"{pipeline}_shapes_oriented-dgcnn-quick.yaml", runs)
        content = recipe.read_text(encoding="utf-8")
        recipe.write_text(content.replace("save_path: results", f"save_path: {folder}"), encoding="utf-8")
        train(str(recipe), resume=False, allow_plugins=False, progress=True, skip_bad=False)
    return checkpoint_path(folder)


class Gallery:
    """Pictures in a folder, and the lines of the page beside it."""

    def __init__(self, folder: Path, shapes: Path) -> None:
        self.folder, self.shapes = folder, shapes
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        self.lines += [*lines, ""]

    def picture(self, name: str, caption: str) -> None:
        """Show a picture that was just written."""
        shrink(self.folder / name)
        self.add(f"![{caption}]({self.folder.name}/{name})")

    def cloud(
        self,
        shape: str,
        name: str,
        checkpoint: str | Path,
        caption: str,
        options: PlotOptions | None = None,
        **chosen,
    ) -> None:
        options = options or PlotOptions(camera=UPRIGHT)
        out = self.folder / name
        view_cloud(self.shapes / shape, checkpoint, out, options, is_upright=False, **chosen)
        self.picture(name, caption)


def add_clouds(gallery: Gallery, checkpoint: str) -> None:
    gallery.add(
        "Red arrows are first axes and green arrows second axes of the orientations of 40 points. The titles "
        "have the predicted class and its probability (`dgl-orient view shapes --up z --out shapes.png`)."
    )
    chosen = dict(is_upright=False, progress=False)
    out = gallery.folder / "shapes.png"
    view_folder(gallery.shapes / "dense", checkpoint, out, PlotOptions(camera=UPRIGHT), **chosen)
    gallery.picture("shapes.png", "orientations of six shapes")
    gallery.add(
        "## The same shape in several poses",
        "",
        "The network computes the orientations of every pose. Below, all poses are rotated back; the titles "
        "have the largest distance of the arrows' tips from those of the first, as a fraction of the radius "
        "(`--poses 4 --global`). The large arrows are the whole cloud's orientation.",
    )
    options = PlotOptions(show_global=True, camera=UPRIGHT)
    caption = "a plane in four poses, and rotated back"
    gallery.cloud("dense/plane.ply", "poses.png", checkpoint, caption, options, num_poses=4)
    gallery.add(
        "## Levels and several orientations",
        "",
        "From the points' own orientations to those of coarser and coarser levels and of the whole cloud "
        "(`--level all --orientation all`).",
    )
    chosen = dict(levels="all", orientations="all")
    gallery.cloud(
        "dense/chair.ply", "levels.png", checkpoint, "a chair's orientations at all levels", **chosen
    )


def add_files(gallery: Gallery, folder: Path, checkpoint: str) -> None:
    gallery.add(
        "## Real shapes",
        "",
        "Files of ShapeNet-Part's test split as they are, with 1,024 points each. A shape unlike those of "
        "ModelNet40, which the model was trained on, is `unknown` "
        "(`dgl-orient view FOLDER --out files.png`).",
    )
    view_folder(folder, checkpoint, gallery.folder / "files.png", progress=False)
    gallery.picture("files.png", "orientations of real shapes")
    airplane = folder / "airplane.pts"
    if not airplane.is_file():
        return
    gallery.add(
        "Parts of one of them in four poses, predicted in each by the pretrained model "
        "`oriented-dgcnn-shapenetpart`, and rotated back below (`--color part --poses 4`).",
    )
    options = PlotOptions(num_arrows=30, color="part", camera=Camera(up="y"))
    chosen = dict(is_upright=False, category="airplane", num_poses=4)
    view_cloud(airplane, PARTS, gallery.folder / "parts_poses.png", options, **chosen)
    gallery.picture("parts_poses.png", "predicted parts of a plane in four poses, and rotated back")


def add_predictions(gallery: Gallery, partseg: Path, normals: Path) -> None:
    arrows = PlotOptions(camera=UPRIGHT)
    errors = PlotOptions(num_arrows=0, color="error", camera=UPRIGHT)
    gallery.add(
        "## Parts", "", "Predicted parts, and where they are wrong (`--color part`, `--color error`)."
    )
    chair, mug = "labelled/chair/chair.ply", "labelled/mug/mug.ply"
    gallery.cloud(chair, "parts.png", partseg, "predicted parts of a chair", arrows)
    gallery.cloud(chair, "parts_error.png", partseg, "wrong parts", errors)
    gallery.add(
        "Real shapes in arbitrary poses, with the pretrained model `oriented-pointnet2-shapenetpart`: true "
        "parts above, predicted parts below ([ShapeNet-Part](../benchmarks/results/shapenetpart/README.md)).",
        "",
        "![true and predicted parts of real shapes](../benchmarks/results/shapenetpart/parts.png)",
    )
    gallery.add(
        "## Normals",
        "",
        "Predicted normals as colours, and their error in degrees (`--color normal`, `--color error`).",
    )
    gallery.cloud(mug, "normals.png", normals, "predicted normals of a mug", arrows)
    gallery.cloud(mug, "normals_error.png", normals, "errors of normals", errors)


def add_quality(gallery: Gallery, checkpoint: Path, num_clouds: int) -> None:
    out = gallery.folder / "quality.png"
    picture, numbers = view_quality(checkpoint, out, num_clouds, progress=False)
    stored = json.loads(numbers.read_text())
    networks = stored["networks"]
    gallery.add(
        "## How robust orientations are",
        "",
        f"Angles between orientations on {stored['settings']['num_clouds']} test clouds, of the trained "
        f"network and of the untrained one: `dgl-orient view --quality --cpt run_0.pth --clouds {num_clouds} "
        f"--out quality.png`, whose numbers are in [quality.json]({gallery.folder.name}/quality.json). "
        "The median angle between random orientations is 132° (dotted). [view.md](view.md#quality) has the "
        "definitions.",
    )
    gallery.picture(picture.name, "drift of orientations under jitter, dropout and outliers")
    rows = ["| median angle, degrees | " + " | ".join(networks) + " |"]
    rows.append("|---|" + "---|" * len(networks))
    for kind in ("smoothness", "agreement"):
        medians = [f"{each[kind][0]['median']:.0f}" for each in networks.values()]
        pairs = {"smoothness": "between neighbours", "agreement": "between samples of a shape"}[kind]
        rows.append(f"| points, {pairs} | " + " | ".join(medians) + " |")
    for name in ("jitter", "dropout", "outliers"):
        for each in zip(*(network["drift"][name] for network in networks.values())):
            medians = [f"{one['levels'][0]['median']:.0f}" for one in each]
            rows.append(f"| points, {name} {each[0]['amount']:g} | " + " | ".join(medians) + " |")
    gallery.add(*rows)


def make(options: argparse.Namespace) -> list[str]:
    """Write all pictures; the lines of the page."""
    model = load_trained_model(options.cpt)
    if model.pipeline != "pointcls":
        raise DGLError(f"Expected --cpt of a network for pointcls, got one for {model.pipeline}.")
    output_path("gallery.png", "")  # raises without matplotlib, before any work
    networks = {name: trained_network(name, options.runs) for name in ("pointcls", "partseg", "normals")}
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write_shapes(Path(folder))
        gallery = Gallery(options.out, Path(folder))
        gallery.add(
            "# Orientations of shapes",
            "",
            f"Pictures of {_name(options.cpt)} on generated shapes, and of networks for parts, normals and "
            f"classes that the `-quick` recipes train on such shapes. It is redrawn by "
            f"`python examples/gallery.py --out docs/{options.out.name}`.",
        )
        add_clouds(gallery, options.cpt)
        if options.files:
            add_files(gallery, options.files, options.cpt)
        add_predictions(gallery, networks["partseg"], networks["normals"])
        add_quality(gallery, networks["pointcls"], options.clouds)
        gallery.add("## Its training", "", "`dgl-orient view RUN_DIR --out training.png`")
        view_run(networks["pointcls"].parent, options.out / "training.png", progress=False)
        gallery.picture("training.png", "training curves and the confusion matrix")
    return gallery.lines


def _name(checkpoint: str) -> str:
    return f"the pretrained model `{checkpoint}`" if checkpoint == DEFAULT else f"`{Path(checkpoint).name}`"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpt", default=DEFAULT, help="network for pointcls; default: %(default)s")
    parser.add_argument(
        "--runs", type=Path, default=Path("gallery_runs"), help="folder of networks on shapes"
    )
    parser.add_argument("--files", type=Path, help="folder of ShapeNet-Part's files, to be drawn too")
    parser.add_argument("--out", type=Path, default=Path("docs/gallery"), help="folder of the pictures")
    parser.add_argument("--clouds", type=int, default=40, help="test clouds to measure orientations on")
    options = parser.parse_args(arguments)
    prepare()
    try:
        lines = make(options)
        page = options.out.with_suffix(".md")
        write_text("\n".join(lines).rstrip() + "\n", page)
    except DGLError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(f"Written to {page} and {options.out}")


if __name__ == "__main__":
    main()
