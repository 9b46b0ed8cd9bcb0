"""What a row of the table of programs says: the call, where it fails, and why."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}


class Failure(NamedTuple):
    """Why a program does not run, or not rightly.

    Attributes
    ----------
    match : str
        A regular expression that is found in what the runner reports.
    cause : str
        Why, in a sentence for the page; whose fault it is comes first.
    """

    match: str
    cause: str


class Program(NamedTuple):
    """One call into a client library.

    Attributes
    ----------
    call : str
        An expression over the public names of the client's module, the arrays of :func:`data`, the
        namespace ``xp`` and ``numpy``.
    fails : dict
        From a library of ``LIBRARIES`` to the cause of the failure; the others run.
    slow : bool
        Whether JAX compiles for half a second or more: run by ``make test-all``.
    """

    call: str
    fails: dict[str, Failure]
    slow: bool


def program(
    call: str, *, every: Failure | None = None, slow: bool = False, **fails: Failure
) -> Program:
    """A row; ``every=`` names a failure on all libraries, ``jax=`` and so on on one."""
    return Program(call, dict.fromkeys(LIBRARIES, every) | fails if every else fails, slow)


def programs(*rows: str | Program) -> tuple[Program, ...]:
    """Rows: those that run everywhere as calls between semicolons, with a star where slow."""
    made: list[Program] = []
    for row in rows:
        calls = row.split("; ") if isinstance(row, str) else []
        made += [program(call.removesuffix(" *"), slow=call.endswith(" *")) for call in calls]
        made += [row] if isinstance(row, Program) else []
    return tuple(made)


def data() -> dict[str, np.ndarray]:
    """The arguments of the programs, as NumPy arrays made anew."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 24))
    unit = rng.uniform(0.1, 0.9, size=24)
    X = rng.normal(size=(12, 4))
    return {
        "x": x,
        "y": y,
        "gaps": np.where(np.arange(24) % 7 == 2, np.nan, x),
        "unit": unit,
        "positive": rng.uniform(0.5, 3, size=24),
        "z": rng.normal(size=9) + 1j * rng.normal(size=9),
        "X": X,
        "XP": np.exp(X),
        "square": np.asarray([[1.0, 2.0], [3.0, 4.0]]),
        "target": rng.normal(size=12),
        "scores": unit[:12].copy(),
        "labels": np.asarray([0, 1, 2] * 4),
        "predicted": np.asarray([0, 1, 1, 0, 2, 2, 1, 1, 2, 0, 0, 2]),
        "binary": np.asarray([0, 1] * 6),
        "flat": np.asarray([3, 7, 41, 12]),
        "b": np.asarray([0.2, 0.3, 0.1]),
        "a": np.asarray([1.0, -0.4, 0.1]),
        "sos": np.asarray([[0.2, 0.3, 0.1, 1, -0.4, 0.1], [0.1, 0.2, 0.3, 1, 0.2, 0.05]]),
    }
