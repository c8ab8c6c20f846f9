"""Pages in a headless Chromium without a network."""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no chromium here; .ci/run installs Debian's where it can"
)

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--no-first-run",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--window-size=1000,700",
    "--no-zygote",
]
# On a busy machine Chromium may hang before it opens a page.
_ATTEMPTS, _SECONDS = 3, 60
# Messages of the browser itself, about the speed of canvases.
_BROWSER_HINTS = ("GL Driver Message", "willReadFrequently")


class Opened(NamedTuple):
    """The result of opening a page."""

    console: list[str]  #: messages on the console, errors among them
    result: Any  #: what the script returned
    pixels: np.ndarray | None  #: (height, width, 3) the screen


def open_page(page: str, script: str = "", screenshot: bool = False, seconds: float = 2) -> Opened:
    """Open a page, run the body of an async function in it, and stop after so many seconds of its time."""
    run = (
        f"(async () => {{ {script} }})().then((result) => {{ const out = document.createElement('pre'); "
        "out.id = 'result'; out.hidden = true; out.textContent = JSON.stringify(result ?? null); "
        "document.body.append(out); });"
    )
    with tempfile.TemporaryDirectory() as folder:
        path, picture = Path(folder, "page.html"), Path(folder, "page.png")
        head, _, tail = page.rpartition("</body>")
        path.write_text(f"{head}<script>{run}</script></body>{tail}", encoding="utf-8")
        output = f"--screenshot={picture}" if screenshot else "--dump-dom"
        flags = [*_FLAGS, f"--user-data-dir={folder}/profile", f"--virtual-time-budget={1000 * seconds:.0f}"]
        command = [CHROMIUM, *flags, output, path.as_uri()]
        done = _run(command, os.environ | {"HOME": folder})
        pixels = _pixels(picture.read_bytes()) if screenshot else None
    console = re.findall(r'CONSOLE[^"]*"(.*)", source:', done.stderr)
    console = [line for line in console if not any(hint in line for hint in _BROWSER_HINTS)]
    result = re.findall(r'<pre id="result" hidden="">(.*?)</pre>', done.stdout, re.DOTALL)
    return Opened(console, json.loads(html.unescape(result[0])) if result else None, pixels)


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess:
    options = dict(capture_output=True, text=True, env=environment, check=True, timeout=_SECONDS)
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(command, **options)
    return subprocess.run(command, **options)


def _pixels(png: bytes) -> np.ndarray:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)
