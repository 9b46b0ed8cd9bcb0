"""What pyproject.toml cannot say: the README as a package index shows it.

There, links into the repository lead nowhere. They are made absolute, to the tag of this version,
by the `Source` of `[project.urls]`; without one, their text is left, and pictures are left out.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
RELATIVE = r"(?!https?://|mailto:|#)"
PICTURE = re.compile(
    rf"!\[[^]]*\]\({RELATIVE}[^)]*\)|<picture>.*?</picture>|<img\b[^>]*>", re.DOTALL
)
LINK = re.compile(rf"\[([^]]*)\]\({RELATIVE}[^)]*\)")


def description(text: str) -> str:
    """Return the README without links that are relative."""
    source = PROJECT.get("urls", {}).get("Source")
    if source is None:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    source = source.rstrip("/")
    init = (HERE / "arraybridge" / "__init__.py").read_text("utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', init, re.MULTILINE)
    ref = "HEAD" if "dev" in version else f"v{version}"
    text = re.sub(rf"(!\[[^]]*\]\(){RELATIVE}", rf"\g<1>{source}/raw/{ref}/", text)
    text = re.sub(rf"""((?:src|srcset)=["']){RELATIVE}""", rf"\g<1>{source}/raw/{ref}/", text)
    text = re.sub(rf"""(href=["']){RELATIVE}""", rf"\g<1>{source}/blob/{ref}/", text)
    return re.sub(rf"(\]\(){RELATIVE}", rf"\g<1>{source}/blob/{ref}/", text)


setup(
    long_description=description((HERE / "README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)
