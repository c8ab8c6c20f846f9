"""The networks that come with this package: found by the names of their files, without importing torch."""

from __future__ import annotations

from pathlib import Path

from .._messages import nearest

__all__ = ["DEFAULT", "FOLDER", "checkpoint_path", "released"]

#: Where their checkpoints are.
FOLDER = Path(__file__).parents[1] / "weights"

#: The one that files are predicted with where none is named.
DEFAULT = "oriented-dgcnn-modelnet40"


def released() -> dict[str, Path]:
    """The names of all networks that come with this package, and their checkpoints.

    Examples
    --------
    >>> from dgl_orient.zoo.checkpoints import released
    >>> list(released())
    ['oriented-dgcnn-modelnet40']
    """
    return {path.stem: path for path in sorted(FOLDER.glob("*.pth"))}


def checkpoint_path(given: str | Path) -> Path:
    """The file of a checkpoint that is given by its path, or by the name of a network in this package.

    A file comes before a network of the same name.

    Raises
    ------
    DGLError
        If it looks like a name, and is none.
    """
    path, name, known = Path(given), str(given), released()
    if path.is_file():
        return path
    if name in known:
        return known[name]
    if path.name == name and not path.suffix and not path.exists():
        from dgl import DGLError

        raise DGLError(
            f"There is no checkpoint {name!r}, and no network of that name comes with dgl_orient; "
            f"{nearest(name, known)}"
        )
    return path
