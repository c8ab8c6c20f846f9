"""The README's examples, so that tests run exactly what a reader would copy."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
_FENCE_OR_HEADING = re.compile(
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$|^(?P<level>#+) (?P<title>[^\n]+)$", re.M | re.S
)


def python_blocks(heading: str) -> list[str]:
    """Return the Python examples of the README's sections whose heading contains `heading`."""
    blocks, level = [], 0  # the level of the section's heading, 0 outside of it
    for part in _FENCE_OR_HEADING.finditer(README.read_text(encoding="utf-8")):
        if part["title"]:
            if heading in part["title"]:
                level = len(part["level"])
            elif len(part["level"]) <= level:
                level = 0
        elif level and part["language"] == "python":
            blocks.append(part["code"])
    return blocks
