"""``diff`` with what is prepended and appended kept, where a library forgets it of ``n=0``."""

from __future__ import annotations

from typing import Any

from . import Correction


def differences(xp: Any) -> Correction:
    """The entry of a library whose ``diff`` of ``n=0`` is ``x`` alone."""

    # also by position, as NumPy's
    def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
        ends = {"prepend": prepend, "append": append}
        given = {name: end for name, end in ends.items() if end is not None}
        if n or not given:
            return xp.diff(x, axis=axis, n=n, **given)
        return xp.concat([part for part in (prepend, x, append) if part is not None], axis=axis)

    return Correction(
        "diff",
        diff,
        "diff: the size along the axis is M + N1 + N2 - n, of n=0 too",
        "https://github.com/numpy/numpy/issues/23040, whose shortcut the others have too",
        _forgets_the_ends,
    )


def _forgets_the_ends(xp: Any) -> bool:
    x = xp.ones((1,))
    return bool(xp.diff(x, n=0, prepend=x).shape != (2,))
