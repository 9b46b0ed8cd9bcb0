"""Copy audits: calls after an audit has ended, compared with a process that never began one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Self

from ..goals import Case

TIMES = 1_000


def calls() -> dict[str, Callable[[], object]]:
    """Calls that an audit watches."""
    import jax.numpy as jnp
    import numpy as np
    import torch

    import arraybridge as ab

    x, t, j = np.arange(24.0), torch.arange(24.0), jnp.arange(24.0)
    strided = x.reshape(4, 6)[:, ::-1]
    wrapped, exported = ab.from_dlpack(x), ab.from_dlpack(t)
    convert, contiguous, unify, wrap = ab.convert, ab.contiguous, ab.unify, ab.from_dlpack
    adapted = ab.adapt("torch")(lambda tensor: tensor)
    return {
        "convert, NumPy to torch": lambda: convert(x, "torch"),
        "convert, torch to NumPy": lambda: convert(t, "numpy"),
        "convert, JAX to NumPy": lambda: convert(j, "numpy"),
        "convert, a small copy to torch": lambda: convert(strided, "torch"),
        "contiguous already": lambda: contiguous(x),
        "contiguous, 24 items": lambda: contiguous(strided),
        "from_dlpack": lambda: wrap(t),
        "numpy.asarray of an Array": lambda: np.asarray(wrapped),
        "torch.from_dlpack of an Array": lambda: torch.from_dlpack(exported),
        "unify": lambda: unify(t, x),
        "adapt": lambda: adapted(x),
    }


class Process:
    """A Python process that makes calls on request."""

    def __init__(self, *, audited: bool) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, *["audited"] * audited],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.run(next(iter(calls())))

    def run(self, what: str) -> None:
        """Make `TIMES` calls, and wait for them."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(f"{what}\n".encode())
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"done\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate(timeout=60)


def cases() -> Iterator[Case]:
    with ExitStack() as stack:
        ended = stack.enter_context(Process(audited=True))
        never = stack.enter_context(Process(audited=False))
        for what in calls():
            row = f"{what}, {TIMES:,} times"
            yield Case(
                row, lambda w=what: ended.run(w), "no audit", lambda w=what: never.run(w), 1.05
            )


def main() -> None:
    made = calls()
    if "audited" in sys.argv:
        import arraybridge as ab

        with ab.audit(libraries=True) as log:
            for call in made.values():
                call()
        assert len(log) >= len(made)
        made = calls()  # `ab.contiguous` and others, as they are now
    for line in sys.stdin:
        call = made[line.strip()]
        for _ in range(TIMES):
            call()
        print("done", flush=True)
    unused = "arraybridge.auditing" not in sys.modules
    assert unused != ("audited" in sys.argv)


if __name__ == "__main__":
    main()
