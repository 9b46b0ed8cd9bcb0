"""Where dpnp departs from the standard."""

from __future__ import annotations

from typing import Any

from . import Probe, shared


def _real_eigenvalues(xp: Any) -> bool:
    return bool(xp.linalg.eigvals(xp.eye(2)).dtype.kind != "c")


PROBES: dict[str, Probe] = {
    **shared.LINSPACE,
    **shared.TANGENTS,
    "acosh": lambda xp: bool(xp.isnan(xp.imag(xp.acosh(xp.asarray(complex(0.0, xp.nan)))))),
    "expm1": lambda xp: bool(xp.signbit(xp.real(xp.expm1(xp.asarray(complex(-0.0, 0.0)))))),
    "linalg.eig": _real_eigenvalues,
    "linalg.eigvals": _real_eigenvalues,
}
