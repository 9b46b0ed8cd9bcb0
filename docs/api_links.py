"""Link the first mention of a public name in a page's text, as code, to its page of the reference.

So the Markdown stays plain: ``ab.convert`` reads well on a code host too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

import arraybridge

#: Names that are linked without ``ab.`` before them, as nothing else is called so.
BARE = {"adapt", "contiguous", "convert", "copyto", "explain", "unify"}
_MENTION = re.compile(r"(?:(?:ab|arraybridge)\.)?(\w+)(?:\(.*\))?")


def link(app: Sphinx, document: nodes.document, page: str) -> None:
    """Link what a page mentions first; headings and what is a link already stay as they are."""
    if page.startswith("api/") or app.builder.format != "html":
        return
    seen = set()
    for literal in list(document.findall(nodes.literal)):
        name = _named(literal.astext())
        if (
            name is None
            or name in seen
            or any(isinstance(node, nodes.title | nodes.reference) for node in _around(literal))
        ):
            continue
        seen.add(name)
        target = f"arraybridge.{name}"
        address = app.builder.get_relative_uri(page, f"api/generated/{target}")
        reference = nodes.reference("", "", refuri=f"{address}#{target}", internal=True)
        literal.replace_self(reference)
        reference += literal


def _around(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield what a node is in, from its parent on; a link to a page has a node between."""
    while (node := node.parent) is not None:
        yield node


def _named(text: str) -> str | None:
    """Return the public name that a text is, with or without a call."""
    found = _MENTION.fullmatch(text)
    if found is None or found[1] not in arraybridge.__all__ or found[1] in ("dlpack", "xp"):
        return None
    return found[1] if found[1] in BARE or text.startswith(("ab.", "arraybridge.")) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
