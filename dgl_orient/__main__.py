"""``python -m dgl_orient``, the same as the command ``dgl-orient``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line, and return its exit code."""
    from ._extras import to_install
    from .go.environment import prepare

    prepare()
    try:
        from .go.cli import run
    except ModuleNotFoundError as error:
        print(f"The command line needs {error.name}; {to_install('recipes')}.", file=sys.stderr)
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
