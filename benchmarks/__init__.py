"""Side-by-side measurements: ``python -m benchmarks --help``."""

import os

# Without it, importing dgl prints a notice and writes to the home folder.
os.environ.setdefault("DGLBACKEND", "pytorch")
