"""Make the gallery: pictures of a trained network's orientations on shapes, and the page that shows them.

    python examples/gallery.py --cpt results/run_0.pth --out docs/gallery

writes the pictures into docs/gallery and the page docs/gallery.md. The network is one for pointcls, trained
on shapes; --partseg and --normals add pictures of such networks' predictions.
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
from dgl_orient.go.environment import prepare
from dgl_orient.go.view_cloud import view_cloud
from dgl_orient.go.view_run import view_quality, view_run
from dgl_orient.plot import PlotOptions
from dgl_orient.plot.saving import output_path, write_text
from dgl_orient.zoo.trained_model import load_trained_model

CLASSES = ("plane", "chair", "mug", "guitar", "lamp", "table")
MAX_BYTES = 150_000  # of a picture
MAX_PIXELS = 1600  # of its longer side


def shrink(path: Path) -> None:
    """Make a picture small enough for a page: fewer colours, and fewer pixels if need be."""
    from PIL import Image

    picture = Image.open(path).convert("RGB")
    picture.thumbnail((MAX_PIXELS, MAX_PIXELS), Image.Resampling.LANCZOS)
    while True:
        buffer = io.BytesIO()
        picture.quantize(96, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
        if buffer.tell() <= MAX_BYTES:
            break
        smaller = [round(0.85 * side) for side in picture.size]
        picture = picture.resize(smaller, Image.Resampling.LANCZOS)
    path.write_bytes(buffer.getvalue())


def write_shapes(folder: Path) -> dict[str, Path]:
    """One test shape of each class as a file in a folder of the class's name, with normals and parts."""
    # All classes, since a choice of them would number the parts differently.
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

    def picture(self, name: str, caption: str) -> None:
        """Show a picture that was just written."""
        shrink(self.folder / name)
        self.add(f"![{caption}]({self.folder.name}/{name})")

    def cloud(
        self,
        shape: str,
        name: str,
        checkpoint: Path,
        caption: str,
        options: PlotOptions | None = None,
        **chosen,
    ) -> None:
        view_cloud(self.files[shape], checkpoint, self.folder / name, options, **chosen)
        self.picture(name, caption)


def add_clouds(gallery: Gallery, checkpoint: Path, num_points: int | None) -> None:
    gallery.add(
        "Red arrows are first axes and green arrows second axes of the points' orientations; colours are "
        "distances from the centroid. The title has the predicted class and its probability. Each picture "
        "is made by `dgl-orient view SHAPE.ply --cpt run_0.pth --out SHAPE.png`."
    )
    for shape in CLASSES:
        gallery.cloud(shape, f"{shape}.png", checkpoint, f"orientations of a {shape}", num_points=num_points)
    gallery.add(
        "## The same shape in several poses",
        "",
        "The network computes the orientations of every pose. Below, all poses are rotated back; the titles "
        "have the largest distance of the arrows' tips from those of the first, as a fraction of the radius "
        "(`--poses 4 --global`). The large arrows are the whole cloud's orientation.",
    )
    options = PlotOptions(show_global=True, num_arrows=60)
    caption = "a plane in four poses, and rotated back"
    gallery.cloud("plane", "poses.png", checkpoint, caption, options, num_poses=4, num_points=num_points)
    gallery.add(
        "## Levels and several orientations",
        "",
        "From the points' own orientations to those of coarser and coarser levels and of the whole cloud "
        "(`--level all --orientation all`).",
    )
    chosen = dict(options=PlotOptions(num_arrows=60), levels="all", orientations="all", num_points=num_points)
    gallery.cloud("chair", "levels.png", checkpoint, "a chair's orientations at all levels", **chosen)


def add_predictions(gallery: Gallery, partseg: Path | None, normals: Path | None) -> None:
    arrows, errors = PlotOptions(num_arrows=40), PlotOptions(num_arrows=0, color="error")
    if partseg:
        gallery.add(
            "## Parts", "", "Predicted parts, and where they are wrong (`--color part`, `--color error`)."
        )
        gallery.cloud("chair", "parts.png", partseg, "predicted parts of a chair", arrows)
        gallery.cloud("chair", "parts_error.png", partseg, "wrong parts", errors)
    if normals:
        gallery.add(
            "## Normals",
            "",
            "Predicted normals as colours, and their error in degrees (`--color normal`, `--color error`).",
        )
        gallery.cloud("mug", "normals.png", normals, "predicted normals of a mug", arrows)
        gallery.cloud("mug", "normals_error.png", normals, "errors of normals", errors)


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
    trained = load_trained_model(options.cpt)
    if trained.pipeline != "pointcls":
        raise DGLError(f"Expected --cpt of a network for pointcls, got one for {trained.pipeline}.")
    output_path("gallery.png", "")  # raises without matplotlib, before any work
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        gallery = Gallery(options.out, write_shapes(Path(folder)))
        recipe = trained.recipe
        given = {"partseg": options.partseg, "normals": options.normals}
        flags = "".join(f" --{name} CPT" for name, path in given.items() if path)
        gallery.add(
            "# Orientations of shapes",
            "",
            f"Pictures of `{recipe['model']['name']}`, trained for `{recipe['pipeline_name']}` on "
            f"`{recipe['data']['name']}` with {trained.num_points} points per cloud. All of this page is "
            f"made by `python examples/gallery.py --cpt run_0.pth{flags} --out docs/{options.out.name}`.",
        )
        add_clouds(gallery, options.cpt, options.points)
        add_predictions(gallery, options.partseg, options.normals)
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
        write_text("\n".join(lines).rstrip() + "\n", page)
    except DGLError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(f"Written to {page} and {options.out}")


if __name__ == "__main__":
    main()
