"""The three protocols under which networks for rotated clouds are compared."""

from __future__ import annotations

from typing import NamedTuple

from dgl import DGLError

from .transforms import RandomRotate

__all__ = ["PROTOCOLS", "Protocol", "protocol"]

#: The names of the protocols: how clouds are turned in training / in validation and test.
PROTOCOLS = ("z/z", "z/so3", "so3/so3")


class Protocol(NamedTuple):
    """How clouds are turned."""

    name: str  #: one of :data:`PROTOCOLS`
    train: RandomRotate  #: for the training set
    test: RandomRotate  #: for the validation and test sets


def protocol(name: str, gravity: str | None = "z") -> Protocol:
    """A protocol by its name.

    Give its ``test`` to a data set of :mod:`dgl_orient.data` as ``transform``: the rotations then depend on
    the data set's seed and the cloud's number alone, so two runs score the same clouds.

    Parameters
    ----------
    name : str
        ``"z/z"``, ``"z/so3"`` or ``"so3/so3"``: the rotations in training and in test, where z is about
        the axis along which shapes stand upright, and so3 is all rotations. ``"SO(3)"`` is another
        spelling.
    gravity : str, optional
        That axis, ``"x"``, ``"y"`` or ``"z"``: the data set's ``gravity``. None where shapes do not stand
        upright.

    Examples
    --------
    >>> from dgl_orient.data.protocols import protocol
    >>> protocol("z/SO(3)", gravity="y")
    Protocol(name='z/so3', train=RandomRotate('y'), test=RandomRotate('so3'))
    """
    plain = str(name).lower().replace(" ", "").replace("so(3)", "so3")
    if plain not in PROTOCOLS:
        raise DGLError(f"Expected a protocol {', '.join(map(repr, PROTOCOLS))}, got {name!r}.")
    if gravity not in ("x", "y", "z", None):
        raise DGLError(f"Expected gravity to be 'x', 'y', 'z' or None, got {gravity!r}.")
    if gravity is None and plain != "so3/so3":
        raise DGLError(
            f"The protocol {name!r} turns clouds about the axis along which they stand upright, but gravity "
            f"is None; say the axis in gravity, or use 'so3/so3'."
        )
    train, test = (RandomRotate(gravity if part == "z" else part) for part in plain.split("/"))
    return Protocol(plain, train, test)
