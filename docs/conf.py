"""How Sphinx builds the site: `make docs`. Nothing is fetched, so that it works from file://."""

import re
from importlib import metadata

project = "Cartwood"
copyright = "the Cartwood developers"
release = metadata.version("cartwood")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "Cartwood"
html_show_sphinx = False
html_css_files = ["wide.css"]
html_static_path = ["static"]
myst_heading_anchors = 3
# Files beside docs are linked to, and decisions have a list of their own; tests/test_docs.py
# checks all links.
suppress_warnings = [
    *("myst.xref_missing", "toc.not_included"),
    *("ref.ref", "ref.term", "ref.python"),  # of scikit-learn's docstrings, into its own pages
]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {
    "inherited-members": "BaseEstimator",
    "exclude-members": "holding, check_state, get_metadata_routing, set_fit_request, "
    "set_predict_request, set_score_request",
}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True


def escape(app, what, name, object_, options, lines):
    """Bars and trailing underscores as they are: reStructuredText would take them for links."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(r"(?<!`)\|", r"\\|", line).replace("_,)", r"\_,)")


def setup(app):
    """Before napoleon reads the docstrings."""
    app.connect("autodoc-process-docstring", escape, priority=100)
