"""Put the text of every page into a script, for the search page: nothing can be fetched offline.

``_static/search.js`` reads it: to rank pages by how often they say the words, and to show where.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

#: Characters of a page; what follows is found by Sphinx's own index alone.
LONGEST = 40_000
#: Sections whose pages come after others that say the same.
LAST = ("performance", "internals")


def add_scripts(app: Sphinx, pagename: str, _: str, context: dict[str, object], __: object) -> None:
    """Load the scripts in the search page alone."""
    if pagename == "search":
        app.add_js_file("search_texts.js")
        app.add_js_file("search.js")


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the texts once the pages are built."""
    if error is not None or app.builder.format != "html":
        return
    later = {page for section in LAST for page in app.env.toctree_includes.get(section, ())}
    texts = {
        name: [name in later, _text(app.env.get_doctree(name))] for name in sorted(app.env.all_docs)
    }
    script = f"const SEARCH_TEXTS = {json.dumps(texts, ensure_ascii=False, sort_keys=True)};\n"
    (Path(app.outdir) / "_static" / "search_texts.js").write_text(script, encoding="utf-8")


def _text(document: nodes.document) -> str:
    """Return the text of a page without its title, one space between words."""
    parts = [
        node.astext()
        for node in document.findall(nodes.TextElement)
        if not isinstance(node, nodes.title | nodes.comment | nodes.raw)
        and not isinstance(node.parent, nodes.TextElement)
    ]
    return re.sub(r"\s+", " ", " ".join(parts))[:LONGEST]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", add_scripts)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
