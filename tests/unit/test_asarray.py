"""``asarray(like=, dtype=, casting=)``: the rule of casts is that of ``convert``."""

import array
import contextlib
import inspect
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.core.cast_rules import CASTINGS
from tests.support.optional import installed, optional

torch, jax, pandas = optional("torch"), optional("jax"), optional("pandas")
LIBRARIES = [x for x in ("numpy", "torch", "jax", "array_api_strict", "pyarrow") if installed(x)]
VALUES = np.array([1.9, -1.5, 300, np.nan])
LACKS = {("pyarrow", "complex64"), ("pyarrow", "bool"), ("array_api_strict", "float16")}
EDGES = [1, -1, 300, 2**31, 2**53 + 1, -(2**63), 2**63 + 1, 2**64 - 1, 1.0, 1.5, -0.0]
DTYPES = ("uint8", "int64", "float32", "complex64", "bool")


def outcome(call, *args, **kwargs):
    """The elements and the data type of what a call returns, or the class of its error."""
    try:
        with np.errstate(all="ignore"):
            found = call(*args, **kwargs)
    except Exception as error:
        return type(error)
    return ab.inspect(found).dtype, ab.convert(found, "numpy").tobytes()


def forms(x):
    """Yield arrays, containers of arrays and memory with the elements of ``x`` in one row."""
    yield x
    yield ab.from_dlpack(x)
    yield [x]
    yield [ab.from_dlpack(x)]
    yield (list(x[:2]), x[2:])  # NumPy's scalars are no numbers beside an array
    yield array.array("d", x)
    yield memoryview(x)
    if torch:
        yield torch.from_numpy(x)
        yield [torch.from_numpy(x)]
    if jax:
        with jax.enable_x64():
            yield jax.numpy.asarray(x)
    if pandas:
        yield pandas.Series(x)


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_are_cast_by_the_rule_of_convert(library):
    x = VALUES[:4]
    for dtype, casting in itertools.product(DTYPES, CASTINGS):
        asked = {"dtype": dtype, "casting": casting}
        wanted = outcome(ab.convert, x, library, **asked)
        for form in forms(x):
            if casting == "unsafe" and type(form).__module__.startswith("jax"):
                continue  # whose own casts make other numbers of what does not fit
            made = outcome(ab.asarray, form, like=library, **asked)
            if made != wanted:  # a row of an array with two axes has the same bytes
                kinds = {type(part) for part in form} if isinstance(form, list | tuple) else ""
                raise AssertionError((type(form), kinds, asked, made, wanted))
        model = ab.convert(np.zeros(1, "f4"), library)
        assert outcome(ab.asarray, x, like=model, **asked) == wanted
        if library != "pyarrow":  # of its Arrays, NumPy computes
            assert outcome(ab.asarray, x, like=ab.from_dlpack(model), **asked) == wanted


def test_the_default_is_same_kind():
    asked = inspect.signature(ab.asarray).parameters["casting"]
    assert asked.default == inspect.signature(ab.convert).parameters["casting"].default
    for library in LIBRARIES:
        with pytest.raises(ab.ConversionError, match=r"'same_kind' does not .* casting='unsafe'"):
            ab.asarray(VALUES, like=library, dtype="uint8")
        with pytest.raises(ab.ConversionError, match=r"1\.9 at index .* would become 1 in uint8"):
            ab.asarray(VALUES, like=library, dtype="uint8", casting="same_value")
        with pytest.raises(ValueError, match="casting is 'lossless'"):
            ab.asarray([1], like=library, casting="lossless")


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers_have_a_kind_and_no_width(library):
    rules = ("no", "equiv", "safe", "same_kind")
    for casting in rules:
        for obj in (5, [5], np.int64(5), [np.int64(5)], range(5, 6), [[5], (True,)]):
            for dtype in ("uint8", "int32", "float32", "complex64"):
                if (library, dtype) in LACKS:
                    continue
                made = ab.asarray(obj, like=library, dtype=dtype, casting=casting)
                assert ab.inspect(made).dtype.name == dtype
                assert ab.convert(made, "numpy").reshape(-1)[0] == 5
        for obj in (1.5, [1.5], [[2, 1.5]], np.float32(1.5), [True, np.float64(2)], [1j, 2]):
            with pytest.raises(ab.ConversionError, match="does not allow"):
                ab.asarray(obj, like=library, dtype="int8", casting=casting)
        assert ab.inspect(ab.asarray([], like=library, dtype="int8", casting=casting)).shape == (0,)
        for obj in (300, [np.int64(-1)]):
            with pytest.raises(OverflowError):
                ab.asarray(obj, like=library, dtype="uint8", casting=casting)
    for obj in (1.5, [1.5], [np.float64(1.5)]):
        made = ab.asarray(obj, like=library, dtype="int8", casting="unsafe")
        assert ab.convert(made, "numpy").reshape(-1)[0] == 1
    assert ab.convert(
        ab.asarray([16777217.0], like=library, dtype="int32", casting="unsafe"), "numpy"
    ) == [16777217]  # float32, the default of some, does not have it


@pytest.mark.parametrize("library", LIBRARIES)
def test_numbers_of_the_same_value(library):
    for obj, dtype in (([2.0, 3], "int8"), (300, "int16"), ([0.5], "float16"), ([1], "bool")):
        if (library, dtype) in LACKS:
            continue
        made = ab.asarray(obj, like=library, dtype=dtype, casting="same_value")
        assert ab.convert(made, "numpy").reshape(-1)[0] == np.asarray(obj).reshape(-1)[0]
    for obj, dtype in (([2.5], "int8"), (300, "uint8"), ([0.1], "float32")):
        with pytest.raises(ab.ConversionError, match="same_value"):
            ab.asarray(obj, like=library, dtype=dtype, casting="same_value")


def test_memory_is_copied_if_that_is_asked_for():
    memory = bytearray(b"abcd")
    for library in LIBRARIES:
        made = ab.asarray(memory, like=library, copy=True)
        memory[0] = 7
        assert ab.convert(made, "numpy")[0] == 97
        memory[0] = 97
    shared = ab.asarray(memory, like="numpy", copy=False)
    memory[0] = 7
    assert shared[0] == 7
    with pytest.raises(ab.ConversionError, match="copy=False"):
        ab.asarray(memory, like="numpy", dtype="float32", copy=False)


def test_a_table_of_data_types():
    table = {"float64": "float32", "int64": "int32"}
    assert ab.asarray(VALUES, like="numpy", dtype=table).dtype == "float32"
    assert ab.asarray([VALUES], like="numpy", dtype=table).dtype == "float32"
    assert ab.asarray([1, 2], like="numpy", dtype=table).dtype == "int32"
    assert ab.asarray(VALUES > 0, like="numpy", dtype=table).dtype == "bool"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_table_of_data_types_casts_what_the_library_makes_of_numbers(library):
    for numbers in ([1.5], [1, 2]):
        usual = ab.inspect(ab.asarray(numbers, like=library)).dtype
        assert ab.inspect(ab.asarray(numbers, like=library, dtype={})).dtype == usual
        found = ab.asarray(numbers, like=library, dtype={usual.name: "uint8"}, casting="unsafe")
        assert ab.inspect(found).dtype.name == "uint8"


HEAVY = ("tensorflow", "paddle", "mlx", "warp")
NO_NUMBERS = {
    "a generator": lambda: (i for i in range(3)),
    "a map": lambda: map(float, "12"),
    "a set": lambda: {1, 2},
    "a generator in a list": lambda: [iter([1])],
    "None in a list": lambda: [1, None],
    "a dict": lambda: {"a": 1},
}


@pytest.mark.parametrize(
    "library", [*LIBRARIES, *(pytest.param(name, marks=pytest.mark.heavy) for name in HEAVY)]
)
def test_what_is_no_number_is_refused(library):
    if not installed(library):
        pytest.skip(f"{library} is not installed")
    for make in NO_NUMBERS.values():
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            ab.asarray(make(), like=library)
    for text in ("a", ["a"], [[1, "a"]], [None, np.zeros(2)]):
        with pytest.raises(TypeError, match="asarray takes numbers"):
            ab.asarray(text, like=library)
    for what in ("a generator", "a map", "a set"):
        made = ab.asarray(list(NO_NUMBERS[what]()), like=library)
        assert ab.inspect(made).shape == (len(list(NO_NUMBERS[what]())),)
    made = ab.asarray(b"ab", like=library)
    assert (ab.inspect(made).dtype.name, ab.inspect(made).shape) == ("uint8", (2,))


class TestIntegersAreExact:
    """Integers never pass through floats, and never wrap."""

    @pytest.mark.parametrize("library", ["numpy", "torch", "jax", "array_api_strict"])
    def test_out_of_range(self, library):
        for numbers in (
            [2**63 + 1, 1],
            [[2**63], [-1]],
            2**64,
            [np.uint64(2**63 + 5), 1],
            [np.uint64(2**63 + 5), np.int64(1)],
        ):
            with pytest.raises(OverflowError):
                ab.asarray(numbers, like=library)

    @pytest.mark.parametrize("numbers", [[8, 1], -9, [[10**12]]])
    def test_out_of_range_of_int4(self, numbers):
        with pytest.raises(OverflowError, match="int4"):
            ab.asarray(numbers, like="numpy", dtype="int4")
        assert ab.asarray([-8, 7], like="numpy", dtype="int4").tolist() == [-8, 7]

    def test_numpys_integers_keep_their_type_or_are_refused(self):
        wide = [[np.uint64(2**63 + 1)], [np.uint64(1)]]
        assert ab.asarray(wide, like="torch").tolist() == [[2**63 + 1], [1]]
        assert ab.asarray([np.int8(3), np.int8(4)], like="numpy").dtype == np.int8
        for numbers in ([np.uint64(2**32 + 5), 1], [np.uint64(2**32 + 5)]):
            with pytest.raises(OverflowError):
                ab.asarray(numbers, like="jax")  # with x64 off
        assert ab.asarray([np.int64(5)], like="jax").tolist() == [5]

    def test_whole_floats_among_them(self):
        like = {"like": "torch", "dtype": "int64", "casting": "same_value"}
        assert ab.asarray([1.0, 2**53 + 1], **like).tolist() == [1, 2**53 + 1]
        for wrong in ([1.5, 2**53 + 1], [float("inf"), 1], [1e300, 1]):
            with pytest.raises(ab.ConversionError, match="same_value"):
                ab.asarray(wrong, **like)

    @given(
        numbers=st.lists(st.sampled_from(EDGES), min_size=1, max_size=4),
        dtype=st.sampled_from(["int8", "int64", "uint64", "float32", "float64", "complex64"]),
        casting=st.sampled_from(["same_value", "unsafe"]),
    )
    def test_of_all_kinds(self, numbers, dtype, casting):
        new = [np.asarray(0, dtype)] * len(numbers)
        for i, number in enumerate(numbers):
            with contextlib.suppress(OverflowError, TypeError, ValueError):
                new[i] = np.asarray(number, dtype)
        held = all(old == made.item() for old, made in zip(numbers, new, strict=True))
        like = {"like": "numpy", "dtype": dtype, "casting": casting}
        if held:
            assert ab.asarray(numbers, **like).tolist() == numbers
        elif casting == "same_value":
            with pytest.raises(ab.ConversionError, match="same_value"):
                ab.asarray(numbers, **like)
        elif "int" in dtype:
            exact = [np.uint64(x % 2**64) if type(x) is int else np.float64(x) for x in numbers]
            wrapped = [x.astype(dtype).item() for x in exact]
            assert ab.asarray(numbers, **like).tolist() == wrapped

    def test_beyond_64_bits(self):
        assert ab.asarray([2**64, 1.5], like="numpy", dtype="int8", casting="unsafe").tolist() == [
            0,
            1,
        ]
        assert ab.asarray([2**64], like="numpy", dtype="bool", casting="unsafe").tolist() == [True]
        for casting in ("same_kind", "same_value"):
            made = ab.asarray([2**63], like="numpy", dtype="bfloat16", casting=casting)
            assert float(made[0]) == 2.0**63
        with pytest.raises(OverflowError):
            ab.asarray([10**400], like="numpy", dtype="float64", casting="unsafe")

    def test_rows_of_one_kind_are_stacked(self):
        rows = [np.arange(3.0) + i for i in range(4)]
        for library in ("numpy", "torch", "array_api_strict"):
            made = ab.convert(ab.asarray(rows, like=library), "numpy")
            np.testing.assert_array_equal(made, np.stack(rows))
        assert ab.asarray([np.ones((3, 2)).T], like="torch").is_contiguous()
        with pytest.raises(ab.ConversionError, match="copy=False"):
            ab.asarray(rows, like="numpy", copy=False)
        with pytest.raises(ab.ConversionError, match="no float64"):
            ab.asarray(rows, like="jax")
