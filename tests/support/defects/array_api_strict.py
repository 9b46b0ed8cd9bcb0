"""Where array-api-strict departs from the standard."""

from __future__ import annotations

from . import Probe, shared

PROBES: dict[str, Probe] = {
    **shared.DIFF,
    **shared.MATRIX_RANK,
    **shared.ROLL,
    **shared.SHIFTS,
    **shared.LINSPACE,
    **shared.FROM_DLPACK,
    **shared.NUMPY_SPECIAL_CASES,
    "isin": lambda xp: bool(xp.isin(xp.asarray([1]), xp.asarray([1]), invert=True)[0]),
    "sign": lambda xp: bool(xp.signbit(xp.real(xp.sign(xp.asarray(complex(-0.0, -0.0)))))),
}
