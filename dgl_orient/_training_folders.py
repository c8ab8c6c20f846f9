"""Folders of trainings below one: each training has a folder of its own, numbered from ``001``.

Importing it needs no torch.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["holds_training", "new_training_folder", "newest_training", "training_folders"]

_NUMBER = re.compile(r"\d{3,9}")


def training_folders(parent: Path) -> list[Path]:
    """The numbered folders, the newest last.

    Examples
    --------
    >>> import tempfile
    >>> from dgl_orient._training_folders import new_training_folder, training_folders
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     for _ in range(2):
    ...         _ = new_training_folder(Path(parent))
    ...     [folder.name for folder in training_folders(Path(parent))]
    ['001', '002']
    """
    if not parent.is_dir():
        return []
    numbered = [path for path in parent.iterdir() if _NUMBER.fullmatch(path.name) and path.is_dir()]
    return sorted(numbered, key=lambda path: int(path.name))


def new_training_folder(parent: Path) -> Path:
    """Make the folder of the next training; another process never gets the same one."""
    parent.mkdir(parents=True, exist_ok=True)
    number = max((int(path.name) for path in training_folders(parent)), default=0)
    while True:
        number += 1
        path = parent / f"{number:03}"
        try:
            path.mkdir()
            return path
        except FileExistsError:
            continue


def holds_training(folder: Path) -> bool:
    """Whether a training has written in this very folder."""
    return (folder / "run_0.pth").is_file() or (folder / "run_0").is_dir()


def newest_training(folder: Path) -> Path:
    """The folder itself if it holds a training, else the newest numbered one that does, else itself."""
    if holds_training(folder):
        return folder
    return next((each for each in reversed(training_folders(folder)) if holds_training(each)), folder)
