"""Write a page of the API reference for each chapter of the array API standard.

The functions are those of ``arraybridge.xp.numpy``: the signatures and docstrings of the other
namespaces are the same.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

from arraybridge.xp.standard import CHAPTERS, EXTENSIONS

NAMESPACE = "arraybridge.xp.numpy"
#: Constants, and what pages do not show by its name; docs/api/xp.rst tells of them.
APART = ("e", "inf", "nan", "newaxis", "pi", "__array_namespace_info__")


def pages() -> dict[str, str]:
    """Return the text of each page, by its name."""
    return {name: _page(name) for name in (*CHAPTERS, *EXTENSIONS)}


def write(folder: Path) -> None:
    """Write the pages that are new or have changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        page = folder / f"xp_{name}.rst"
        if not page.exists() or page.read_text() != text:
            page.write_text(text)


def _page(name: str) -> str:
    chapter = import_module(f"arraybridge.xp.standard.{name}")
    module = f"{NAMESPACE}.{name}" if name in EXTENSIONS else NAMESPACE
    title = f"xp.{name}" if name in EXTENSIONS else name.replace("_", " ").capitalize()
    said, _, more = (inspect.getdoc(chapter) or "").partition("\n")
    lines = [title, "=" * len(title), "", said, more, "", f".. currentmodule:: {module}", ""]
    for function in chapter.__all__:
        if function not in APART:
            lines += [f".. autofunction:: {module}.{function}", ""]
    return "\n".join(lines)
