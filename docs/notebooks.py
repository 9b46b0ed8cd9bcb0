"""Show a notebook as a page: its cells as Markdown, in place of a block ``{notebook} <path>``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PLACE = re.compile(r"^```\{notebook\} (.+)\n```$", re.M)


def markdown(notebook: dict[str, Any]) -> str:
    """Return the cells and their outputs, without the title, which the page has."""
    return "\n\n".join(part for cell in notebook["cells"] for part in parts(cell))


def parts(cell: dict[str, Any]) -> Iterator[str]:
    """Yield the Markdown of a cell, then of each output."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        text = re.sub(r"\A# .*\n+", "", source)
        yield text.replace("](../docs/", "](../")  # from examples/ and from docs/examples/
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            lines = output["traceback"]
        else:
            lines = output.get("text") or output["data"]["text/plain"]
        yield f"```text\n{''.join(lines).rstrip()}\n```"


def insert(app: Sphinx, name: str, source: list[str]) -> None:
    """Replace the block in a page that has one."""

    def shown(match: re.Match[str]) -> str:
        path = (Path(app.env.doc2path(name)).parent / match[1]).resolve()
        app.env.note_dependency(path)
        return markdown(json.loads(path.read_text("utf-8")))

    source[0] = PLACE.sub(shown, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", insert)
    return {"parallel_read_safe": True}
