import json
from pathlib import Path

import pytest

from dgl_orient.plot.quality_figure import quality_figure

_STORED = Path(__file__).resolve().parents[2] / "docs" / "gallery" / "quality.json"


@pytest.fixture
def networks():
    return json.loads(_STORED.read_text())["networks"]


def test_curves_and_bars_are_the_medians(networks):
    drift, *_, smoothness, _, accuracy = quality_figure(networks).axes
    trained = networks["trained"]
    expected = [0.0, *(each["levels"][0]["median"] for each in trained["drift"]["jitter"])]
    assert drift.lines[0].get_ydata() == pytest.approx(expected)
    assert smoothness.patches[0].get_height() == trained["smoothness"][0]["median"]
    assert accuracy.lines[0].get_ydata()[0] == trained["accuracy"]


def test_without_classes_there_is_no_accuracy(networks):
    assert not quality_figure({"untrained": networks["untrained"]}).axes[-1].lines
