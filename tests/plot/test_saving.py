import pytest
import torch
from dgl import DGLError

from dgl_orient.geometry import random_rotation
from dgl_orient.plot import oriented_cloud, save, save_figure
from dgl_orient.plot.figure import new_figure


@pytest.fixture(scope="module")
def cloud():
    return oriented_cloud(torch.rand(60, 3), random_rotation(60), title="<a & b>")


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_a_picture_is_the_same_file_every_time(cloud, tmp_path, suffix, start):
    one, two = (save(cloud, tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "two"))
    assert one == two and one.startswith(start) and len(one) > 1000


def test_what_cannot_be_written_raises_and_leaves_no_file(cloud, tmp_path):
    with pytest.raises(DGLError, match=r"\.png \.pdf \.svg \.html"):
        save(cloud, tmp_path / "cloud.gif")
    (tmp_path / "file").touch()
    with pytest.raises(DGLError):
        save(cloud, tmp_path / "file" / "cloud.html")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_figure_is_a_page_of_its_own(tmp_path):
    page = save_figure(new_figure((2, 2)), tmp_path / "page.html", "<title>").read_text()
    assert "&lt;title&gt;" in page and page.count("<svg") == 1 and "<?xml" not in page
    assert "src=" not in page and "<link" not in page
