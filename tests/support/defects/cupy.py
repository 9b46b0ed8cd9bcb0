"""Where CuPy departs from the standard."""

from __future__ import annotations

from . import Probe, shared

PROBES: dict[str, Probe] = {
    **shared.DIFF,
    **shared.MATRIX_RANK,
    **shared.FINFO,
    **shared.TANGENTS,
    "full": lambda xp: not bool(xp.signbit(xp.full((1,), -0.0))[0]),
    "full_like": lambda xp: not bool(xp.signbit(xp.full_like(xp.ones((1,)), -0.0))[0]),
    "remainder": lambda xp: bool(xp.isnan(xp.remainder(xp.asarray(1.0), xp.asarray(xp.inf)))),
}
