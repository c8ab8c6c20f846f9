"""What is written of predictions: lists of all files, and clouds with an answer for each point."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Sequence, Set
from pathlib import Path

import numpy as np
from dgl import DGLError
from torch import Tensor
from torch.nn.functional import normalize

from .._whole_files import reason, whole_file
from ..data import write_cloud
from ..zoo.trained_model import TrainedModel
from .inputs import Source

__all__ = ["MAKERS", "check_format", "destinations", "make_folder", "write_cloud_with", "write_lists"]

Answer = tuple[dict[str, object], dict[str, np.ndarray]]  # for the list, and for each point

_FORMATS = ("ply", "npz")


def _class(trained: TrainedModel, logits: Tensor, label: int | None) -> Answer:
    probabilities = logits.double().softmax(0).tolist()
    names = trained.metadata["class_names"]
    best = max(range(len(names)), key=probabilities.__getitem__)
    shares = {name: round(share, 6) for name, share in zip(names, probabilities)}
    return {"class": names[best], "probability": shares[names[best]], "probabilities": shares}, {}


def _parts(trained: TrainedModel, logits: Tensor, label: int | None) -> Answer:
    label = 0 if label is None else label  # without a category there is but one
    parts = list(trained.metadata["class_parts"][label])
    shares, best = logits[:, parts].double().softmax(1).max(1)  # (n,) each
    part = np.array(parts)[best.numpy()]
    names = trained.metadata.get("part_names") or [str(number) for number in range(logits.shape[1])]
    counts = {names[number]: int((part == number).sum()) for number in parts}
    about = {"category": trained.metadata["class_names"][label], "points": len(part), "parts": counts}
    return about, {"part": part.astype(np.int32), "probability": shares.float().numpy()}


def _normals(trained: TrainedModel, vectors: Tensor, label: int | None) -> Answer:
    vectors = normalize(vectors.double().reshape(-1, 3), dim=1)
    return {"points": len(vectors)}, {"normal": vectors.float().numpy()}


def _positions(trained: TrainedModel, pos: Tensor, label: int | None) -> Answer:
    return {"particles": len(pos)}, {"predicted_pos": pos.numpy()}


#: From a network's answer for a file, and the file's category, to what is written of it.
MAKERS: dict[str, Callable[[TrainedModel, Tensor, int | None], Answer]] = {
    "pointcls": _class,
    "partseg": _parts,
    "normals": _normals,
    "nbody": _positions,
}


def check_format(pipeline: str, file_format: str | None) -> str:
    """The ending of clouds that are written."""
    if file_format not in (*_FORMATS, None):
        raise DGLError(
            f"Expected the format {' or '.join(_FORMATS)} of clouds to write, got {file_format!r}."
        )
    return file_format or ("npz" if pipeline == "nbody" else "ply")


def make_folder(folder: str | Path) -> Path:
    """The folder, made if it is not there, before any work is done for it."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from error
    return folder


def destinations(pipeline: str, sources: Sequence[Source], folder: Path, ending: str) -> list[Path]:
    """Where the cloud of each file goes: below the folder as it was below its own, none over another.

    For classes no clouds are written.

    Raises
    ------
    DGLError
        If two would go to one place, or one, or a list of all, over a file that is predicted.
    """
    given = {os.path.realpath(source.path) for source in sources}
    for name in _lists(pipeline):
        _check_free(folder / name, given)
    if pipeline == "pointcls":
        return []
    plain = [source.name.with_suffix(f".{ending}") for source in sources]
    # Files that differ by their endings alone keep them.
    names = [
        each if plain.count(each) == 1 else source.name.with_name(f"{source.name.name}.{ending}")
        for each, source in zip(plain, sources)
    ]
    taken: dict[Path, Source] = {}
    for name, source in zip(names, sources):
        path = folder / name
        other = taken.setdefault(path, source)
        if other is not source:
            raise DGLError(
                f"The predictions of {other.path} and {source.path} would both go to {path}: predict them "
                f"into different folders."
            )
        _check_free(path, given)
    return list(taken)


def _check_free(path: Path, given: Set[str]) -> None:
    """Raise if this is one of the files that are predicted."""
    if os.path.realpath(path) in given:
        raise DGLError(f"Predictions would be written over the file {path}: name another output folder.")


def _lists(pipeline: str) -> list[str]:
    """The names of the files in which all predictions are listed."""
    return ["predictions.json", *(["predictions.csv"] if pipeline == "pointcls" else [])]


def write_cloud_with(path: Path, points: dict[str, np.ndarray], answer: dict[str, np.ndarray]) -> None:
    """A file's points together with their answers."""
    make_folder(path.parent)
    write_cloud(path, **({name: _compact(array) for name, array in points.items()} | answer))


def _compact(array: np.ndarray) -> np.ndarray:
    """Numbers in float32 if that changes none of them."""
    small = array.astype(np.float32)
    return small if np.array_equal(small, array) else array


def write_lists(
    folder: Path, trained: TrainedModel, predictions: Sequence[dict], skipped: Sequence[dict[str, str]]
) -> list[Path]:
    """``predictions.json`` and, for classes, ``predictions.csv``; the paths of both."""
    about = {"pipeline": trained.pipeline, "checkpoint": str(trained.path)}
    everything = about | {"predictions": list(predictions), "skipped": list(skipped)}
    texts = [json.dumps(everything, indent=1, ensure_ascii=False) + "\n"]
    if trained.pipeline == "pointcls":
        texts.append(_table(trained.metadata["class_names"], predictions))
    paths = [folder / name for name in _lists(trained.pipeline)]
    for path, text in zip(paths, texts):
        _write_text(path, text)
    return paths


def _table(names: Sequence[str], predictions: Sequence[dict]) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["file", "class", "probability", *names])
    for each in predictions:
        writer.writerow([each["file"], each["class"], each["probability"], *each["probabilities"].values()])
    return lines.getvalue()


def _write_text(path: Path, text: str) -> None:
    try:
        with whole_file(path) as file:
            # File names may hold bytes that are no UTF-8.
            file.write(text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> DGLError:
    return DGLError(f"Cannot write {path}: {reason(error)}; name a folder with space to write in.")
