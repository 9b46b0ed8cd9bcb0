"""How Sphinx builds the documentation: `make docs`, with no network and warnings as errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import namespaces

import arraybridge

project = "arraybridge"
author = "arraybridge contributors"
copyright = "arraybridge contributors"
version = release = arraybridge.__version__

extensions = [
    "api_links",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what each parameter is
autodoc_default_options = {"exclude-members": "__init__, __new__"}
python_maximum_signature_line_length = 120
numpydoc_show_class_members = False
numpydoc_attributes_as_param_list = True
namespaces.write(Path(__file__).resolve().parent / "api" / "generated")

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css", "guides.css"]
html_title = "arraybridge"
html_copy_source = html_use_index = False
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "404", "search", "matrix", "performance")}
html_theme_options = {
    "logo": {
        "text": "arraybridge",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "alt_text": "arraybridge, to the first page",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"]}
    | {name: [] for name in ("start/coming_from", "index")},
    "pygments_light_style": "github-light",
    "pygments_dark_style": "github-dark",
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "search_bar_text": "Search",
}
html_context = {"default_mode": "auto"}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_workers = 4
linkcheck_report_timeouts_as_broken = True
linkcheck_anchors_ignore_for_url = [r"https://github\.com/"]  # which its scripts make

#: Where the site will be, with a slash at the end: for its page 404 alone, which a server shows
#: in place of any address, so that relative links would not do.
html_baseurl = os.environ.get("DOCS_URL", "")


def _absolute(app: Sphinx, pagename: str, _: str, context: dict[str, object], __: object) -> None:
    if pagename == "404" and html_baseurl:
        context["metatags"] = f'<base href="{html_baseurl}" />{context["metatags"]}'


def _trimmed(app: Sphinx, document: nodes.document) -> None:
    """Drop the empty line that ends the output of a doctest."""
    for block in document.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource, block.children = text, []
        block += nodes.Text(text)


def _called(
    app: Sphinx, what: str, name: str, value: object, _: object, signature: str | None, __: object
) -> tuple[str, str] | None:
    """Show the signature of those classes alone that users call."""
    if what != "class" or not signature or "Parameters\n" in str(value.__doc__):
        return None
    return "", ""


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("html-page-context", _absolute)
    app.connect("doctree-read", _trimmed)
    app.connect("autodoc-process-signature", _called)
