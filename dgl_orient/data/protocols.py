"""The three protocols under which networks are compared on rotated clouds."""

from __future__ import annotations

from typing import NamedTuple, get_args

from dgl import DGLError

from .._validation import check_choice
from .choices import Axis, ProtocolName
from .transforms import RandomRotate

__all__ = ["PROTOCOLS", "Protocol", "protocol"]

#: The names of the protocols: rotations in training / in validation and test.
PROTOCOLS: tuple[str, ...] = get_args(ProtocolName)


class Protocol(NamedTuple):
    """The rotations of a protocol."""

    name: ProtocolName
    train: RandomRotate  #: for the training set
    test: RandomRotate  #: for the validation and test sets


def protocol(name: ProtocolName, gravity: Axis | None = "z") -> Protocol:
    """A protocol by its name.

    Pass its ``test`` to a data set of :mod:`dgl_orient.data` as ``transform``: the rotations then depend only
    on the data set's seed and the index of the cloud, so two runs evaluate the same clouds.

    Parameters
    ----------
    name : str
        ``"z/z"``, ``"z/so3"`` or ``"so3/so3"``: the rotations in training and in test, where z is about
        the gravity axis and so3 is all rotations. ``"SO(3)"`` is another spelling.
    gravity : str, optional
        The upright axis ``"x"``, ``"y"`` or ``"z"``: the data set's ``gravity``. None where there is none.

    Examples
    --------
    >>> from dgl_orient.data.protocols import protocol
    >>> protocol("z/SO(3)", gravity="y")
    Protocol(name='z/so3', train=RandomRotate('y'), test=RandomRotate('so3'))
    """
    plain = check_choice("protocol", str(name).lower().replace(" ", "").replace("so(3)", "so3"), ProtocolName)
    if gravity is not None:
        check_choice("gravity", gravity, Axis)
    elif plain != "so3/so3":
        raise DGLError(
            f"The protocol {name!r} rotates clouds about their upright axis, but gravity is None; set "
            f"gravity to the axis, or use 'so3/so3'."
        )
    train, test = (RandomRotate(gravity if part == "z" else part) for part in plain.split("/"))
    return Protocol(plain, train, test)
