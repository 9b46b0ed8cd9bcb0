"""What an adapted function writes is seen by the caller, or is an error: views and copies alike."""

import asyncio

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import needs, optional
from tests.support.sources import values

torch = optional("torch")
strict = pytest.importorskip("array_api_strict")


def conj():
    return torch.tensor([1 + 2j, 3 + 4j, 5 - 6j]).conj()


def backwards():
    return np.arange(6, dtype="f4")[::-1]


def swapped():
    return np.arange(3).astype(">f8")


def fields():
    x = np.zeros(3, [("a", "f4"), ("b", "i1")])["a"]
    x[...] = [1, 2, 3]
    return x


def packed():
    return np.zeros(32, np.uint8)[1:13].view("f4")


class Speaks:
    """An object that only speaks DLPack, on memory that PyTorch must copy."""

    def __init__(self):
        self._array = np.arange(6, dtype="f4")[::-1]  # by which its elements are found

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **keywords):
        return self._array.__dlpack__(**keywords)


def elsewhere():
    return strict.asarray([1.0, 2.0, 3.0], device=strict.Device("device1"))


CASES = {  # (library of the function, its options, an argument that it can only have as a copy)
    "conj": ("numpy", {}, conj),
    "conj Array": ("numpy", {}, lambda: ab.from_dlpack(conj())),
    "backwards": ("torch", {}, backwards),
    "backwards Array": ("torch", {}, lambda: ab.from_dlpack(backwards())),
    "swapped": ("torch", {}, swapped),
    "fields": ("torch", {}, fields),
    "speaks": ("torch", {}, Speaks),
    "elsewhere": ("numpy", {"device": "cpu"}, elsewhere),
    "sent": ("array_api_strict", {"device": "ext_dev:1"}, lambda: np.arange(3.0)),
    "sent Array": ("array_api_strict", {"device": "ext_dev:1"}, lambda: ab.from_dlpack(np.ones(3))),
    "sent backwards": ("array_api_strict", {"device": "ext_dev:1"}, backwards),
    "sent conj": ("array_api_strict", {"device": "ext_dev:1"}, conj),
}


def doubled(x):
    x *= 2
    return x


def part(x):
    x[1] *= 2


async def awaited(x):
    x *= 2


async def awaited_by_yields(x):
    yield
    x *= 2


async def consumed(generator):
    return [each async for each in generator]


TWICE = lambda before: 2 * before  # noqa: E731
# How a function writes, what drives its call, what it has written.
WRITES = {
    "in place": (doubled, lambda call, x: call(x), TWICE),
    "a part": (part, lambda call, x: call(x), lambda x: [x[0], 2 * x[1], *x[2:]]),
    "nested": (lambda d: doubled(d["x"][0]), lambda call, x: call({"x": [x]}), TWICE),
    "nothing": (lambda x: x, lambda call, x: call(x), lambda before: before),
    "awaited": (awaited, lambda call, x: asyncio.run(call(x)), TWICE),
    "asynchronous": (awaited_by_yields, lambda call, x: asyncio.run(consumed(call(x))), TWICE),
}


each_case = pytest.mark.parametrize(
    ("library", "options", "make"),
    [pytest.param(*case, id=name, marks=needs(case[0])) for name, case in CASES.items()],
)


@pytest.mark.parametrize(("function", "run", "written"), WRITES.values(), ids=WRITES)
@each_case
def test_the_caller_sees_what_is_written(library, options, make, function, run, written):
    x = make()
    before = values(x)
    result = run(ab.adapt(library, **options)(function), x)
    np.testing.assert_array_equal(values(x), written(before))
    if function is doubled and not isinstance(x, Speaks):
        assert result is x
    x = make()
    run(ab.adapt(library, copy=True, result="function", **options)(function), x)
    np.testing.assert_array_equal(values(x), before)  # a copy of its own


@each_case
def test_between_yields(library, options, make):
    @ab.adapt(library, **options)
    def steps(x):
        for _ in range(2):
            x += 1
            yield
        x += 1

    x = make()
    before = values(x)
    for n, _ in enumerate(steps(x), 1):
        np.testing.assert_array_equal(values(x), before + n)
    np.testing.assert_array_equal(values(x), before + 3)


def test_a_view_and_a_copy_of_one_memory():
    x = np.arange(4, dtype="f4")

    @ab.adapt("torch")
    def write(view, copy):
        view[0] = 7  # the copy of the same memory is stale now, and stays as it was

    write(x, x[::-1])
    assert x.tolist() == [7, 1, 2, 3]


PAIRS = {
    "copy, view": lambda o: (o[::-1], o),
    "view, copy": lambda o: (o, o[::-1]),
    "copies": lambda o: (o[::-1], o[::-1]),
    "windows": lambda o: (o[4::-1], o[:1:-1]),
    "byte order": lambda o: (o[::-1], o.view(">f8")),
    "Array": lambda o: (ab.from_dlpack(o[::-1]), o),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_no_write_to_shared_memory_is_lost(pair):
    def both(a, b):
        a.add_(1)
        b.add_(1)
        return a, b

    with pytest.raises(ab.ConversionError, match="share no memory"):
        ab.adapt("torch")(both)(*pair(np.zeros(6)))
    a, b = pair(np.zeros(6))
    a, b = ab.adapt("torch", copy=True, result="numpy")(both)(a, b)  # the remedies
    assert a.any()
    assert b.any()
    a, b = pair(np.zeros(6))[0], np.zeros(6)
    ab.adapt("torch")(both)(a, b)
    assert values(a).tolist() == [1] * len(b[: a.shape[0]])
    assert b.tolist() == [1] * 6


def test_writes_beside_each_other_are_both_seen():
    o = np.zeros(6)
    ab.adapt("torch")(lambda a, b: [a.add_(1), b.add_(2)])(o[4::-2], o[::-2])
    assert o.tolist() == [1, 2, 1, 2, 1, 2]
    ab.adapt("torch")(lambda a, b: [a.add_(b)])(o[::-1], o)  # one of them only read
    assert o.tolist() == [3] * 6


def test_what_the_caller_writes_between_yields_is_not_lost():
    @ab.adapt("torch")
    def steps(x):
        for _ in range(2):
            x += 1
            yield

    o = np.zeros(3)
    running = steps(o[::-1])
    next(running)
    assert o.tolist() == [1, 1, 1]
    o[0] = 7
    with pytest.raises(ab.ConversionError, match="written meanwhile"):
        next(running)
    assert o.tolist() == [7, 1, 1]


@pytest.mark.parametrize("kind", ["jax", "pyarrow", "read-only", "broadcast", "windows"])
def test_what_cannot_be_written_is_an_error(kind):
    host = np.arange(1, 4, dtype="f4")
    if kind == "jax":
        x = pytest.importorskip("jax.numpy").asarray(host)
    elif kind == "pyarrow":
        x = pytest.importorskip("pyarrow").array(host)
    elif kind == "read-only":
        x, host.flags.writeable = host, False
    elif kind == "windows":
        x = np.lib.stride_tricks.as_strided(host[::-1], (2, 2), (-4, -4))
    else:
        x = np.broadcast_arrays(host[0], host)[0]
    for _ in range(2):
        with pytest.raises(ab.ConversionError, match="pass copy=True") as error:
            ab.adapt("torch")(lambda x: x.mul_(2).sum())(x)
        assert "adapted by arraybridge" in error.value.__notes__[0]
    total = ab.adapt("torch", copy=True, result="function")(lambda x: x.mul_(2).sum())
    assert total(x) == 2 * np.asarray(x).sum()  # the remedy
    double = ab.adapt("torch", result="function")(lambda x: [x.mul_(2)])
    np.testing.assert_array_equal(double(x)[0], 2 * np.asarray(x))  # nothing is lost
    assert ab.adapt("torch", result="function")(lambda x: x * 2)(x).shape == np.shape(x)


def test_a_capsule_is_nobody_s():
    double = ab.adapt("torch", result="function")(lambda x: x.mul_(2))
    assert double(backwards().__dlpack__(max_version=(1, 0))).tolist() == [10, 8, 6, 4, 2, 0]


def raising(x):
    x *= 2
    raise KeyError("told")


async def raising_later(x):
    raising(x)


def raising_generator(x):
    yield
    raising(x)


RAISING = [(raising, lambda x: x), (raising_later, asyncio.run), (raising_generator, list)]


@pytest.mark.parametrize(("function", "run"), RAISING)
@each_case
def test_what_was_written_before_an_error_stays(library, options, make, function, run):
    x = make()
    before = values(x)
    call = ab.adapt(library, **options)(function)
    with pytest.raises(KeyError, match="told"):
        run(call(x))
    np.testing.assert_array_equal(values(x), 2 * before)


def test_what_is_lost_by_an_error_is_a_note_of_it():
    x = np.ones(3)
    x.flags.writeable = False
    with pytest.raises(KeyError) as error:
        ab.adapt("torch")(raising)(x)
    assert "cannot be written" in error.value.__notes__[0]
    assert x.tolist() == [1, 1, 1]


def test_what_is_written_when_a_generator_is_closed():
    def steps(x):
        try:
            yield
        finally:
            x *= 2

    async def steps_later(x):
        try:
            yield
        finally:
            x *= 2

    async def run(running):
        await anext(running)
        await running.aclose()

    x = np.ones(3)[::-1]
    running = ab.adapt("torch")(steps)(x)
    next(running)
    running.close()
    assert x.tolist() == [2, 2, 2]
    asyncio.run(run(ab.adapt("torch")(steps_later)(x)))
    assert x.tolist() == [4, 4, 4]


def test_one_that_cannot_be_written_keeps_no_other_from_it():
    x, y = np.ones(3), np.ones(3)[::-1]
    x.flags.writeable = False

    @ab.adapt("torch")
    def both(x, y):
        x.add_(1)
        y.add_(1)

    with pytest.raises(ab.ConversionError, match="cannot be written"):
        both(x, y)
    assert y.tolist() == [2, 2, 2]


def test_containers_that_hold_themselves():
    held = [np.ones(3)]
    held.append(held)
    same = ab.adapt("torch")(lambda *args, **kwargs: held)
    for call, args in ((same, [held]), (same, [np.ones(3)]), (ab.unify, [torch.ones(1), held])):
        with pytest.raises(RecursionError, match="themselves"):
            call(*args)
    with pytest.raises(ValueError, match="itself"):
        ab.namespace(torch.ones(1)).asarray(held)


def test_a_copy_that_has_become_another_array_is_not_written_back():
    def cast(x):
        x[0] = 9
        x.dtype = np.int64

    def widen(x):
        x.data = x.double()

    z = torch.arange(3.0, dtype=torch.float64).to(torch.complex64).conj()
    x = np.arange(3, dtype="f4")[::-1]
    for library, function, given, said in (
        ("numpy", cast, z, "the int64 copy of an argument of compl"),
        ("torch", widen, x, "the float64 copy of an argument of float32"),
    ):
        before = values(given)
        with pytest.raises(ab.ConversionError, match=f"wrote to {said}"):
            ab.adapt(library)(function)(given)
        np.testing.assert_array_equal(values(given), before)
