"""Pages in a headless Chromium, as far as there is one."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium here; .ci/run installs Debian's where it can"
)

# Chromium's own services ask for hosts that a test has no business with.
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--window-size=1000,700",
    "--no-zygote",
]
# A start was seen to hang on a busy machine, before it opened any page.
_TRIES, _SECONDS = 3, 60


class Opened(NamedTuple):
    """What came of opening a page."""

    console: list[str]  #: all that was written to the console, errors among it
    dom: str  #: the page's elements at the end
    pixels: np.ndarray | None  #: (height, width, 3) what a screen would show


def open_page(page: str, script: str = "", screenshot: bool = False) -> Opened:
    """Open a page, and let a script act in it as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        path, picture = Path(folder, "page.html"), Path(folder, "page.png")
        path.write_text(page.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        wanted = f"--screenshot={picture}" if screenshot else "--dump-dom"
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={folder}/profile", wanted, path.as_uri()]
        done = _run(command, os.environ | {"HOME": folder})
        pixels = _pixels(picture.read_bytes()) if screenshot else None
    console = re.findall(r'CONSOLE[^"]*"(.*)", source:', done.stderr)
    return Opened(console, done.stdout, pixels)


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess:
    options = dict(capture_output=True, text=True, env=environment, check=True, timeout=_SECONDS)
    for _ in range(_TRIES - 1):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(command, **options)
    return subprocess.run(command, **options)


def _pixels(png: bytes) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
