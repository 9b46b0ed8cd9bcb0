"""Put the text of each section into a script, for the search: nothing can be fetched offline.

``_static/search.js`` reads it, and ranks titles, headings and first sentences before other text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

#: Characters of a section.
LONGEST = 20_000
#: Sections of the site whose pages come after others that match as well.
WEIGHTS = {"examples/index": 0.8, "internals": 0.5}


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the texts once the pages are built."""
    if error is not None or app.builder.format != "html":
        return
    weights = {
        page: weight
        for section, weight in WEIGHTS.items()
        for page in app.env.toctree_includes.get(section, ())
    }
    rows = [
        [name, app.env.titles[name].astext(), anchor, heading, text, weights.get(name, 1)]
        for name in sorted(app.env.all_docs)
        for anchor, heading, text in _sections(app.env.get_doctree(name))
    ]
    script = f"const SEARCH_TEXTS = {json.dumps(rows, ensure_ascii=False)};\n"
    (Path(app.outdir) / "_static" / "search_texts.js").write_text(script, encoding="utf-8")


def _sections(document: nodes.document) -> Iterator[tuple[str, str, str]]:
    """Yield the anchor, heading and text of each section; the first of a page has no anchor."""
    for section in document.findall(nodes.section):
        top = isinstance(section.parent, nodes.document)
        parts = [
            node.astext()
            for node in section.findall(nodes.TextElement)
            if _section(node) is section
            and not isinstance(node, nodes.title | nodes.comment | nodes.raw)
            and not isinstance(node.parent, nodes.TextElement)
        ]
        text = re.sub(r"\s+", " ", " ".join(parts))[:LONGEST]
        yield "" if top else section["ids"][0], section[0].astext(), text


def _section(node: nodes.Node) -> nodes.Node | None:
    """Return the section that a node belongs to."""
    while node is not None and not isinstance(node, nodes.section):
        node = node.parent
    return node


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_js_file("search.js", loading_method="defer")
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
