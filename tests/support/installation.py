"""Installations: what importlib.metadata finds of arraybridge, and of packages beside it."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.support.processes import ROOT

POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]


def distribution(site: Path, name: str, points: dict[str, dict[str, str]]) -> Path:
    """Write a distribution's metadata with entry points, as an installation does."""
    info = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = []
    for group, members in points.items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in members.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return site
