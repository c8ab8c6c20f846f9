"""The README of the results, with the commands that repeat them."""

from __future__ import annotations

from collections.abc import Sequence

from .farther import farther
from .found import Found
from .long_tables import long
from .paper import CITATION
from .tables import classes, normals, others
from .trained_tables import robustness, rotations, splits, voting
from .trial_tables import trials

__all__ = ["readme"]

_HEAD = f"""# ModelNet40

What is an object, in any pose? Networks are trained on the 9,843 official training shapes of 40 classes but
for a tenth, which chooses the best epoch; that one is scored on the 2,468 test shapes, once. Protocols say
how shapes are turned in training / in test: about the vertical (z) or in any way (SO(3)). All networks of a
task see the same clouds in the same order, as many points, with the same augmentations and optimizer; numbers
of epochs are told. All of it is in `benchmarks/modelnet40/recipes.py`. The paper is
{CITATION}.

This page is written by `python -m benchmarks.modelnet40 summary` from the JSON files beside it."""

_DATA = """## Data

Unpack one of the two downloads in circulation into a folder `data`:

- `modelnet40_normal_resampled`, a text file for each shape, with normals; or
- `modelnet40_ply_hdf5_2048`, HDF5 files. Normals can be learned only if the files have them, and reading
  them needs the extra `hdf5`: `pip install ".[hdf5]"`.

So there is `data/modelnet40_normal_resampled` or `data/modelnet40_ply_hdf5_2048`. The first use reads it,
which takes minutes, and keeps what is read beside it. All commands look in `data`, or where `--raw-dir` says,
and keep checkpoints in `runs/modelnet40`, or where `--folder` says. What is done is skipped, and what was
stopped goes on, when a command is given again. `--quick` tries any of them with a few shapes:

    python -m benchmarks.modelnet40 protocol --models oriented-dgcnn --train z --quick"""


def readme(found: Found, pictures: Sequence[str], missing: Sequence[str]) -> str:
    """The page.

    Parameters
    ----------
    found : Found
        All records.
    pictures : sequence of str
        Names of files.
    missing : sequence of str
        Sentences.
    """
    parts = [_HEAD, *classes(found), *normals(found), *others(found), *long(found), *voting(found)]
    parts += [*robustness(found), *rotations(found), *splits(found), *trials(found), *farther(found)]
    parts += ["## Pictures", *(f"![{name}]({name})" for name in pictures)] if pictures else []
    parts += ["## Not measured yet", "\n".join(f"- {each}" for each in missing)] if missing else []
    return "\n\n".join([*parts, _DATA]) + "\n"
