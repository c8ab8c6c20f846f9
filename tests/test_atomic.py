"""Files that are whole or not there at all."""

import os
import threading

import pytest

from dgl_orient._atomic import atomic_write


def _write(path, content, **options):
    with atomic_write(path, **options) as file:
        file.write(content)


@pytest.mark.parametrize("exclusive", [True, False])
def test_what_was_there_stays_until_all_is_written(tmp_path, exclusive):
    path = tmp_path / "file"
    _write(path, b"before", exclusive=exclusive)
    with pytest.raises(ZeroDivisionError), atomic_write(path, exclusive) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
        raise ZeroDivisionError
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["file"]
    _write(path, b"after", exclusive=exclusive)
    assert path.read_bytes() == b"after" and os.listdir(tmp_path) == ["file"]


def test_what_a_killed_process_left_is_overwritten(tmp_path):
    (tmp_path / ".file.part").write_bytes(b"a part of something longer")
    _write(tmp_path / "file", b"whole", exclusive=True)
    assert (tmp_path / "file").read_bytes() == b"whole" and os.listdir(tmp_path) == ["file"]


def test_a_link_stays_one(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    for content in (b"one", b"two"):  # the file to which it leads is not there at first
        _write(tmp_path / "link", content)
        assert (tmp_path / "folder" / "file").read_bytes() == content
    assert (tmp_path / "link").is_symlink()


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    _write(path, b"through")
    reader.join(10)
    assert read == [b"through"] and path.is_fifo()


def test_errors_are_of_the_path_that_was_given(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "nowhere" / "file", tmp_path / "loop"):
        with pytest.raises(OSError) as raised:
            _write(path, b"")
        assert raised.value.filename == str(path) and raised.value.strerror
    assert os.listdir(tmp_path) == ["loop"]
