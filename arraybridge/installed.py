"""Which distributions have a package of this name: another project on PyPI has its import name.

Installed into one environment, the later one overwrites files of the earlier, and uninstalling one
removes files of the other. This module does not import the package, whose ``__init__.py`` may be
another project's, or missing.
"""

from __future__ import annotations

from importlib.metadata import packages_distributions

PACKAGE = __name__.partition(".")[0]
DISTRIBUTION = "arraybridge-dlpack"


def distributions() -> list[str]:
    """Return the names of the distributions that have a package of this name."""
    try:
        return sorted({*packages_distributions().get(PACKAGE, ())})
    except Exception:  # unreadable metadata of any distribution
        return []


def problem() -> str | None:
    """Return what to do about two projects in one environment; None if there is one."""
    names = distributions()
    if len(names) < 2:
        return None
    return (
        f"{' and '.join(names)} have one import name, {PACKAGE}: run `pip uninstall "
        f"{' '.join(names)}`, then install the one that you want"
    )


def remedy() -> str:
    """Return what to do if a module is missing: `problem`, or to install the package again."""
    again = f"pip install --force-reinstall --no-deps {DISTRIBUTION}"
    return problem() or f"if a module of {PACKAGE} is missing, run `{again}`"
