import html
import json

import matplotlib
import numpy as np
import pytest
from dgl import DGLError

from dgl_orient.plot.figure import figure_bytes
from dgl_orient.plot.training_figure import (
    System,
    confusion_matrix,
    error_curve,
    iou_bars,
    read_history,
    training_figure,
    trajectories,
)

LOG = [
    {"epoch": number, "loss": 1 / number, "lr": 0.1, "val": {"accuracy": number / 4}} for number in (1, 2, 3)
]


def test_curves_are_those_of_the_log():
    figure = training_figure({"run 0": LOG, "run 1": LOG[:2]}, "accuracy", "title")
    loss, metric, _ = figure.get_axes()
    assert [line.get_ydata().tolist() for line in loss.lines] == [[1, 1 / 2, 1 / 3], [1, 1 / 2]]
    assert metric.lines[0].get_ydata().tolist() == [0.25, 0.5, 0.75]


def test_a_line_that_is_being_written_is_ignored(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in LOG) + '{"epoch": 4, "lo')
    assert read_history(path) == LOG
    for content in ("", "[" * 100_000 + "\n", '{"epoch": 1}\n', path.read_text() + "\n"):
        path.write_text(content)
        with pytest.raises(DGLError):
            read_history(path)


def written(drawing) -> list[str]:
    """The title and labels of a result."""
    figure = training_figure({"run 0": LOG}, "accuracy", "title", drawing)
    axes = figure.subfigs[1].get_axes()
    figure_bytes(figure, ".png", dpi=50)
    return [axes[0].get_title(), *(label.get_text() for label in axes[0].texts)]


def test_results_have_their_numbers():
    assert written(confusion_matrix(np.array([[3, 1], [0, 4]]), ["mug", "cup"])) == [
        "8 test clouds, accuracy 87.5%", "3", "1", "4",
    ]  # fmt: skip
    assert written(iou_bars([0.5, float("nan"), 1.0], ["a", "b", "c"])) == [
        "class mIoU 0.750", "0.500", "no test cloud", "1.000",
    ]  # fmt: skip
    assert written(error_curve(np.array([10.0, 30.0, 20.0]))) == ["3 test points, median 20.0°"]
    path = np.zeros((2, 1, 3))
    system = System(path, np.full((1, 3), 2.0), np.ones(1))
    assert written(trajectories([system])) == ["mean squared error 4"]


@pytest.mark.parametrize("name", [r"scan_$5_$ \$\frac$ a $ sign", "\udcff"])
def test_names_are_not_read_as_formulas(name):
    for drawing in (confusion_matrix(np.eye(2, dtype=int), [name, "b"]), iou_bars([0.5, 1.0], [name, "b"])):
        figure = training_figure({name: LOG, "other": LOG}, "accuracy", name, drawing)
        # In SVG a formula would be in pieces; the name is written as it is.
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            page = html.unescape(figure_bytes(figure, ".svg").decode("utf-8"))
        assert page.count(f">{name.encode('utf-8', 'replace').decode('utf-8')}<") >= 3  # title, legend, axis
