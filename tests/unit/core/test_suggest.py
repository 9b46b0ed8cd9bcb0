"""A name that is unknown: the message suggests the known one that is spelled most alike."""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab

X = np.ones((1, 2, 3, 4), np.float32)

# How the message begins, a call that takes a name, and what is given = what is suggested.
ROWS = {
    "order is": (
        lambda name: ab.convert(X, "torch", order=name),
        "c=C channels-last=channels_last",
    ),
    "": (lambda name: ab.convert(X, "torch", dtype=name), "flaot32=float32 unit8=uint8"),
    "casting is": (
        lambda name: ab.convert(X, "torch", dtype="float64", casting=name),
        "safely=safe same-kind=same_kind",
    ),
    "unknown device": (lambda name: ab.convert(X, "torch", device=name), "cdua=cuda cuad:1=cuda"),
    "no library": (lambda name: ab.convert(X, name), "pytorch=torch numpyy=numpy"),
}


@pytest.mark.parametrize("begin", ROWS)
def test_the_name_spelled_most_alike_is_suggested(begin) -> None:
    call, names = ROWS[begin]
    for row in names.split():
        given, _, meant = row.partition("=")
        with pytest.raises(ValueError, match=f"{begin} ?'{given}'.*: did you mean '{meant}'"):
            call(given)


def test_what_nothing_is_close_to_gets_no_suggestion() -> None:
    for call in (
        lambda: ab.convert(X, "torch", order="zigzag"),
        lambda: ab.convert(X, "torch", dtype="string"),
        lambda: ab.convert(X, "torch", device="abacus"),
        lambda: ab.convert(X, "scipy"),
    ):
        with pytest.raises(ValueError, match=r"expected|knows") as told:
            call()
        assert "did you mean" not in str(told.value)
