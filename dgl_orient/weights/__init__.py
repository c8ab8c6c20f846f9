"""The pretrained models of this package by name; importing it needs no torch."""

from __future__ import annotations

from pathlib import Path

from .._messages import nearest
from .._training_folders import newest_training

__all__ = ["DEFAULT", "DEFAULT_PARTS", "DEFAULT_UPRIGHT", "FOLDER", "checkpoint_path", "pretrained_models"]

#: The folder of their checkpoints.
FOLDER = Path(__file__).parent

#: The model with which files are predicted if none is named.
DEFAULT = "oriented-dgcnn-modelnet40"

#: The one for the parts of files of a category.
DEFAULT_PARTS = "oriented-pointnet2-shapenetpart"

#: The one that sets clouds upright.
DEFAULT_UPRIGHT = "upright-net-modelnet40"


def pretrained_models() -> dict[str, Path]:
    """The names of all pretrained models, and their checkpoints.

    Examples
    --------
    >>> from dgl_orient.weights import pretrained_models
    >>> for name in pretrained_models():
    ...     print(name)
    oriented-dgcnn-modelnet40
    oriented-dgcnn-normals
    oriented-dgcnn-shapenetpart
    oriented-pointnet2-modelnet40
    oriented-pointnet2-shapenetpart
    upright-net-modelnet40
    """
    return {path.stem: path for path in sorted(FOLDER.glob("*.pth"))}


def checkpoint_path(checkpoint: str | Path) -> Path:
    """The file of a checkpoint that is given by its path or by the name of a pretrained model.

    A file takes precedence over a model of the same name. A folder stands for the newest training in it.

    Raises
    ------
    DGLError
        If it is written like a name, and there is no such model.
    """
    path, name, known = Path(checkpoint), str(checkpoint), pretrained_models()
    if path.is_file():
        return path
    if name in known:
        return known[name]
    if path.is_dir():
        return newest_training(path) / "run_0.pth"
    if path.name == name and not path.suffix and not path.exists():
        from dgl import DGLError

        raise DGLError(
            f"There is no checkpoint {name!r} and no pretrained model of that name; {nearest(name, known)}"
        )
    return path
