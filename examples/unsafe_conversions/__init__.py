"""Conversions by the libraries themselves that go wrong, each in a process of its own.

``python -m examples.unsafe_conversions`` runs all cases whose libraries are installed, and prints the
result of each, by the library's own conversion and by arraybridge. Pass names of cases to run only
those; ``--write`` renews docs/start/unsafe_conversions.md.
"""

from . import crashes, freed, values, writable, losses  # noqa: I001 - in the page's order
from .case import CASES, KINDS, Case
from .run import Outcome, Runner, installed

__all__ = ["CASES", "KINDS", "Case", "Outcome", "Runner", "installed"]
