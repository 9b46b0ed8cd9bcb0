"""Copies on a GPU that is late: random programs, whose results hold in whatever order it works.

See `support.lazy_gpu`: a wait that is missing, or a source that is let go too early, is wrong data.
"""

import gc
from contextlib import ExitStack
from random import Random

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.kernels.cuda import context, transfer
from tests.support.emulated_gpu import library
from tests.support.lazy_gpu import Late, frees
from tests.support.stub_driver import machine


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A machine with two devices, and a compiler that needs none; blocks of 64 bytes."""
    monkeypatch.setattr(transfer, "BLOCK_BYTES", 64)
    with machine(tmp_path, Late((9, 0), (8, 0))) as gpu:
        yield gpu


#: What cannot be done with arrays of which library, or on the host.
NOT = {
    **dict.fromkeys(("copy", "view", "copyto"), ("host",)),
    **dict.fromkeys(("contiguous", "fetch"), ("host", "gpuc")),
}


class Program:
    """Random conversions between libraries on two devices, and what they must give.

    ``gpuc`` is a library whose stream nobody knows, and which only makes arrays: what it frees is
    used again at once.
    """

    STEPS = (
        *("put", "copy", "copy", "view", "contiguous", "send", "fetch", "copyto", "drop"),
        "stream",
    )

    def __init__(self, gpu, seed, stack):
        self.gpu, self.random = gpu, Random(seed)
        self.libraries = {}
        for name, known in (("gpua", True), ("gpub", True), ("gpuc", False)):
            stream = gpu.stream() if known else None
            made = stack.enter_context(library(gpu, name, stream=stream, allocates=known))
            if known:
                made.streams[1] = gpu.stream(1)
            self.libraries[name] = frees(made, gpu)
        self.live, self.shared = [], []

    def run(self, steps):
        """Make so many steps, and compare everything at the end."""
        for _ in range(steps):
            if self.random.random() < 0.1:
                self.gpu.drain(self.random.randrange)
            step = self.random.choice(self.STEPS)
            if step == "drop" and self.live:
                self.live.pop(self.random.randrange(len(self.live)))
            elif step == "stream":
                self.stream()
            elif step in ("put", "drop") or not self.live:
                self.keep(*self.put())
            else:
                x, expected = self.random.choice(self.live)
                place = "host" if isinstance(x, np.ndarray) else type(x).__module__
                if place not in NOT.get(step, ()):
                    self.keep(*getattr(self, step)(x, expected))
        self.gpu.drain(self.random.randrange)
        for x, expected in self.live:
            found = x if isinstance(x, np.ndarray) else self.libraries[type(x).__module__].get(x)
            np.testing.assert_array_equal(found, expected)

    def keep(self, x, expected):
        self.live.append((x, expected))

    def numbers(self, *axes):
        values = self.random.sample(range(1 << 30), 24)
        return np.array(values, "i4").reshape(2, 3, 4).transpose(axes or (0, 1, 2))

    def axes(self):
        return self.random.sample(range(3), 3)

    def target(self):
        return self.random.choice(["gpua", "gpub"])

    def stream(self):
        """Let a library work on a new stream after what is on its old one, which is destroyed."""
        its = self.libraries[self.target()]
        context.order(0, 1, its.stream)
        self.gpu.destroy(its.stream)
        its.stream = self.gpu.stream(handle=self.random.choice([0, its.stream]))
        context.order(0, its.stream, 1)

    def put(self):
        expected = self.numbers()
        place = self.random.choice([0, 0, 1])
        return self.random.choice([*self.libraries.values()]).put(expected, place), expected

    def copy(self, x, expected):
        return ab.convert(x, self.target(), copy=True), expected

    def view(self, x, expected):
        y = ab.convert(x, self.target())
        self.shared.append(x)  # whoever reads the view keeps the memory as long as that takes
        return y, expected

    def contiguous(self, x, expected):
        axes = self.axes()
        shape, strides = ([of[axis] for axis in axes] for of in (x.shape, x.strides))
        y = type(x)(x.pointer, shape, strides, x.dtype, x.device)
        y.base = x
        return ab.contiguous(y), expected.transpose(axes)

    def send(self, x, expected):
        expected = self.numbers(*self.axes())
        place = f"cuda:{self.random.randrange(2)}"
        return ab.convert(expected.copy(order="K"), self.target(), device=place), expected

    def fetch(self, x, expected):
        y = ab.convert(x, "numpy", device="cpu")
        np.testing.assert_array_equal(y, expected)  # it is there, and nothing else is waited for
        return y, expected

    def copyto(self, x, expected):
        to = self.libraries[self.target()].put(np.zeros(expected.shape, "i4"), x.device)
        ab.copyto(to, x)
        return to, expected


@pytest.mark.parametrize(
    "first", [0, 20, *(pytest.param(n, marks=pytest.mark.heavy) for n in range(40, 240, 20))]
)
def test_any_order_gives_the_same(gpu, first):
    for seed in range(first, first + 20):
        with ExitStack() as stack:
            program = Program(gpu, seed, stack)
            program.run(program.random.randrange(2, 14))
            del program
            gc.collect()
            gpu.drain(lambda n: 0)
