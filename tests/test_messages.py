"""Parts of error messages."""

import pytest

from dgl_orient._messages import nearest, shown


@pytest.mark.parametrize(
    "word, hint",
    [
        ("Oriented_DGCNN", "did you mean 'oriented-dgcnn'?"),
        ("modelnet", "expected one of oriented-dgcnn, rscnn."),
        (["rscnn"], "did you mean 'rscnn'?"),
        ("x" * 10**6, "expected one of oriented-dgcnn, rscnn."),
    ],
)
def test_nearest(word, hint):
    assert nearest(word, ["oriented-dgcnn", "rscnn"]) == hint


def test_values_are_shown_short_and_printable():
    for value in ("\x1b[2J" + "x" * 1000, {"a": ["b" * 1000] * 1000}, 10**400, float("nan")):
        assert shown(value).isprintable() and len(shown(value)) < 500
