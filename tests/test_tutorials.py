"""The tutorials run top to bottom, show what they say, and are stored with their pictures."""

import nbformat
import pytest

from tools.run_tutorials import TUTORIALS, run

#: What each must have shown, in its own variables.
SHOWN = {
    "classify_scans": "assert accuracy > 0.7 and max(probabilities) - min(probabilities) < 1e-4",
    "equivariant_layer": (
        "assert max(errors.values()) < 1e-9 and difference > 0.01 and losses[-1] < 0.4 "
        "and (rotated @ rotation - upright).abs().max() < 1e-3"
    ),
    "molecules": "assert error < 0.2 * true.std() and difference < 1e-8",
    "nbody": "assert 2 * errors['OrientedNBody'] < errors['linear'] and change < 1e-4",
    "part_labels": "assert miou > 0.7",
}
NAMES = [path.stem for path in TUTORIALS]


@pytest.mark.parametrize("path", TUTORIALS, ids=NAMES)
def test_tutorial_runs_and_shows_what_it_says(path, tmp_path):
    run(path, tmp_path, after=SHOWN[path.stem])


@pytest.mark.parametrize("path", TUTORIALS, ids=NAMES)
def test_tutorial_is_stored_as_it_ran_with_pictures(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    outputs = [output for cell in cells for output in cell.outputs]
    assert all(output.output_type != "error" and output.get("name") != "stderr" for output in outputs)
    assert any("image/png" in output.get("data", ()) for output in outputs)
    assert path.stat().st_size < 500_000


def test_a_tutorial_that_does_not_show_it_fails(tmp_path):
    path = tmp_path / "short.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("accuracy = 0.5")]), path)
    with pytest.raises(Exception, match="AssertionError"):
        run(path, tmp_path, after="assert accuracy > 0.7")
