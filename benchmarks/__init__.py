"""What measures the library: ``python -m benchmarks --help``; experiments are a package of their own."""

import os

# Without it, importing dgl prints a notice and writes to the home folder.
os.environ.setdefault("DGLBACKEND", "pytorch")
