"""Drawn objects of no library: which protocol is asked, in which order, and what is lost.

Each protocol of an object has memory and numbers of its own, so the numbers tell which one was
taken. Every call takes the same one, now and later; no write and no mask is lost without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import arraybridge as ab
from tests.support.optional import optional

torch, pa = optional("torch"), optional("pyarrow")

NUMBERS = {"dlpack": 1, "cuda": 0, "interface": 2, "arrow": 3, "buffer": 4, "array": 5}  # in order
KINDS = {
    "dlpack": ("", "new", "old", "copied", "anew", "refuses", "fails"),
    "cuda": ("", "absent", "refuses"),
    "interface": ("", "stable", "anew", "anew buffer", "owned", "refuses", "none"),
    "arrow": ("", "stable"),
    "buffer": ("", "stable"),
    "array": ("", "stable", "anew", "masked", "refuses"),
}
MEANINGS = ({}, {"mask": np.array([True, False])}, {"unit": "m"}, {"units": "m", "value": 2.5},
            {"mask": None, "unit": None}, {"mask": lambda self: 1})  # fmt: skip


@dataclass
class Drawn:
    """An object, how each of its protocols behaves, and which ones were asked."""

    kinds: dict[str, str]
    meaning: dict[str, Any]
    readonly: bool
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        new, old = lambda _, **terms: self._dlpack(), lambda _, *, stream=None: self._dlpack()
        methods = {
            "__dlpack__": ("dlpack", old if self.kinds["dlpack"] == "old" else new),
            "__dlpack_device__": ("dlpack", lambda _: (1, 0)),
            "__cuda_array_interface__": ("cuda", property(lambda _: self._look("cuda"))),
            "__array_interface__": ("interface", property(lambda _: self._interface())),
            "__arrow_c_array__": ("arrow", lambda _, schema=None: self._arrow()),
            "__array__": ("array", lambda _, dtype=None, copy=None: self._array()),
        }
        own = {name: method for name, (which, method) in methods.items() if self.kinds[which]}
        base = bytearray if self.kinds["buffer"] else object
        cls: Any = type("Object", (base,), own | self.meaning)
        self.x = cls(b"\4\4") if base is bytearray else cls()
        self.memory = {which: self._made(which) for which in NUMBERS}

    def _made(self, which: str) -> np.ndarray:
        made = np.full(2, NUMBERS[which], np.uint8)
        made.flags.writeable = not self.readonly
        return made

    def _look(self, which: str) -> tuple[str, np.ndarray]:
        self.asked.append(which)
        kind = self.kinds[which]
        if kind == "refuses":
            raise BufferError(f"{which} refuses")
        if kind == "absent":
            raise AttributeError(which)
        if kind == "fails":
            raise RuntimeError(which)
        if kind.startswith("anew"):
            self.memory[which] = self._made(which)  # what the last look gave is gone
        return kind, self.memory[which]

    def _dlpack(self) -> Any:
        kind, memory = self._look("dlpack")
        terms = {} if kind == "old" else {"max_version": (1, 0), "copy": kind == "copied" or None}
        return memory.__dlpack__(**terms)

    def _interface(self) -> Any:
        kind, memory = self._look("interface")
        interface = memory.__array_interface__
        if kind in ("owned", "anew buffer"):
            return {**interface, "data": memory}
        return None if kind == "none" else interface

    def _arrow(self) -> Any:
        return pa.array(self._look("arrow")[1]).__arrow_c_array__()

    def _array(self) -> Any:
        kind, memory = self._look("array")
        return np.ma.array(memory, mask=[0, 1], copy=False) if kind == "masked" else memory

    @property
    def means(self) -> bool:
        return any(not (v is None or callable(v)) for v in self.meaning.values())

    def expected(self) -> str | None:
        """Which protocol gives the memory, if any: ``__array__`` only if an earlier one refused."""
        self.refused = []
        for which in NUMBERS:
            kind = self.kinds[which]
            old = which == "dlpack" and kind == "old" and self.readonly
            if (kind in ("refuses", "fails") or old) and which != "cuda":
                self.refused.append(f"__{which.replace('inter', 'array_inter')}__")
            elif kind not in ("", "absent", "none", "refuses") and (
                which != "array" or self.refused
            ):
                return which
        return None


def drawn(readonly: bool = False, mask: Any = None, unit: Any = None, **kinds: str) -> Drawn:
    return Drawn(dict.fromkeys(KINDS, "") | kinds, {"mask": mask, "unit": unit}, readonly)


@st.composite
def objects(draw: Any) -> Drawn:
    kinds = {which: draw(st.sampled_from(kinds)) for which, kinds in KINDS.items()}
    return Drawn(kinds, draw(st.sampled_from(MEANINGS)), draw(st.booleans()))


def outcome(call: Any) -> Any:
    """The numbers that a call gave, or the kind of its error."""
    try:
        return np.asarray(call()).tolist()
    except ab.ConversionError as error:
        return "lost" if "would lose its" in str(error) else "refused"
    except (TypeError, BufferError, RuntimeError):
        return "refused"


def copied(x: Any) -> np.ndarray:
    seen = np.zeros(2, np.uint8)
    ab.copyto(seen, x)
    return seen


def filled(y: Any) -> None:
    y[:] = 9


CALLS = (
    lambda x: ab.convert(x, "numpy"),
    lambda x: ab.convert(x, "torch"),
    lambda x: ab.convert(x, "numpy", dtype="uint16"),
    lambda x: ab.convert(x, "jax", copy=True),
    lambda x: ab.from_dlpack(x),
    lambda x: ab.contiguous(x),
    copied,
)
#: These take columns and buffers, and ``__array__`` alone, by rules of their own.
LISTS = (
    lambda x: ab.asarray(x, like="torch"),
    lambda x: ab.asarray([x], like="numpy")[0],
    lambda x: ab.xp.numpy.asarray(x),
)
TREES = (
    lambda x: ab.unify(np.zeros(1), x)[2],
    lambda x: ab.tree.convert({"x": x}, "numpy")["x"],
)
WRITES = (
    lambda x: ab.copyto(x, np.full(2, 9, np.uint8)),
    ab.adapt("numpy")(filled),
    ab.adapt("torch")(filled),
)


def check_shared(drawn: Drawn, which: str, kind: str) -> None:
    """Explain tells whether memory is shared; what is written is seen, or refused."""
    x, moves = drawn.x, kind.startswith("anew")
    copies = kind == "copied" or (moves and which != "dlpack")
    route = ab.explain(x, "numpy")
    assert route.kind == ("copy" if copies else "view")
    assert re.findall(r"__\w+__", route.why) == drawn.refused
    assert ab.inspect(x).pending == (("anew",) if copies else ())
    assert ab.explain(x, "numpy", copy=False).kind == ("refuse" if copies or moves else "view")
    assert (outcome(lambda: ab.convert(x, "numpy", copy=False)) == "refused") == (copies or moves)
    for write in WRITES:
        try:
            write(x)
        except (TypeError, ValueError, AttributeError):  # ConversionError is a ValueError
            assert outcome(lambda: ab.convert(x, "numpy")) == [NUMBERS[which]] * 2
            continue
        seen = ab.convert(x, "numpy", copy=False)
        assert seen.tolist() == [9, 9]
        seen[:] = NUMBERS[which]


@settings(max_examples=300)
@given(objects())
@example(drawn(dlpack="old", array="masked", readonly=True))
@example(drawn(dlpack="old", interface="stable", readonly=True))
@example(drawn(dlpack="refuses", array="anew"))
@example(drawn(dlpack="fails", buffer="stable"))
@example(drawn(dlpack="anew"))
@example(drawn(interface="anew"))
@example(drawn(interface="stable", unit="m"))
@example(drawn(buffer="stable", mask=1))
def test_what_is_asked_and_what_is_lost(made: Drawn) -> None:
    x, kinds, which = made.x, made.kinds, made.expected()
    kind = kinds[which] if which else ""
    spoken = any(kinds[each] for each in ("dlpack", "cuda", "interface"))
    want: Any = "refused"
    if made.means and (spoken or which not in (None, "arrow")):
        want = "lost"  # columns are taken as they are
    elif which:
        want = "lost" if kind == "masked" else [NUMBERS[which]] * 2
    for turn in range(2):
        if isinstance(want, list):
            made.asked.clear()
            ab.inspect(x)
            order = [each for each in NUMBERS if kinds[each]]
            before = order[: order.index(which) + 1]  # each before it, in order, and none after
            assert [*dict.fromkeys(made.asked)] == [each for each in before if each != "buffer"]
            check_shared(made, which, kind)
        calls = CALLS + (LISTS if which else ()) + (TREES if spoken else ())
        for number, call in enumerate(calls):
            assert outcome(partial(call, x)) == want, (turn, number)
