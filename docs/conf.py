"""The site: the pages of this folder, the README, the results, the change log, and references from the code.

``make docs`` builds it. Its source is the whole checkout: so links between pages are the same as on GitHub.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

os.environ.setdefault("DGLBACKEND", "pytorch")
DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import reference_pages  # noqa: E402

project = "dgl_orient"
release = version = version_of("dgl-orient")
copyright = "the authors of dgl_orient, Apache-2.0"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**.md",
    "docs/tutorials/*.ipynb",
    "benchmarks/results/*/README.md",
]
nb_execution_mode = "off"  # what `make tutorials` stored is shown
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types are in the docstrings' lists of parameters
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Attributes of one name in several classes are no mistake.
suppress_warnings = ["ref.python"]
# Examples show the prompt, as in the docstrings that the tests run.
highlight_language = "default"

html_theme = "furo"
html_title = f"dgl_orient {release}"
html_extra_path = ["_site"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

reference_pages.write(DOCS / "generated")
