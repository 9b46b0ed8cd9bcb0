"""What the libraries' own conversions do today, each case in a process of its own.

``python -m examples.unsafe_doors`` runs all cases whose libraries are installed and prints what came
out of each, by the library's own conversion and by arraybridge. Names of cases as arguments choose;
``--write`` renews docs/start/unsafe_doors.md.
"""

from . import crashes, freed, values, writable, losses  # noqa: I001 - in the page's order
from .case import CASES, KINDS, Case
from .run import Outcome, Runner, installed

__all__ = ["CASES", "KINDS", "Case", "Outcome", "Runner", "installed"]
