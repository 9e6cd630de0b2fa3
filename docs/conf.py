"""The site: `python -m sphinx -W --keep-going -b html docs OUT` from the top of the checkout.

It needs the extra ``docs`` and no network, and what it makes loads nothing from one.  `.ci/check_docs.py` builds and
checks it.  TOOLRT_NOTEBOOKS names a directory of executed notebooks (`.ci/check_notebooks.py --write DIR` makes one);
without it they are shown as they are kept, without outputs.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "toolrt"
author = "the authors of toolrt"
copyright = "the authors of toolrt, MIT OR Apache-2.0"
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinxcontrib_trio", "sphinx_copybutton", "extension"]
root_doc = "index"
exclude_patterns = ["README.md", "changes/**", "examples/shop/**", "_site/**"]

myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["myst.header"]  # notebooks begin at any level

default_role = "py:obj"  # docstrings name things in single backticks
add_module_names = False
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True

copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.highlight-output):not(.highlight-text) > div.highlight pre"

html_theme = "furo"
html_title = "toolrt"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(Path(__file__).parent / "_site" / "static" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
