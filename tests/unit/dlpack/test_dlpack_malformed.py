"""Bad structs: a clear error, the deleter run at once, nothing read."""

import ctypes

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.dlpack import MalformedTensorError, Tensor, UnsupportedVersionError
from arraybridge.dlpack.types import BY_NAME
from tests.support.producers import Managed, capsule_name

# An address that no process on Linux has mapped: reading it would end the process.
NOWHERE = 0x7FFF_FFFF_F000
BIG = 2**63 - 1

# name: (fields of Managed, what the message says came, what it says was expected)
MALFORMED = {
    "negative ndim": ({"ndim": -1}, "ndim is -1", "expected 0 to 64"),
    "ndim of 65": ({"ndim": 65}, "ndim is 65", "expected 0 to 64"),
    "NULL shape": ({"shape": None, "ndim": 2}, "shape is NULL", "ndim is 2"),
    "negative extent": ({"shape": (2, -3)}, "(2, -3) has a negative", "expected 0 or more"),
    "size": ({"shape": (2**32, 2**31)}, "(4294967296, 2147483648) of float32", "less than 2**63"),
    "size in bytes": ({"shape": (2**61,)}, "overflows", "less than 2**63"),
    "size beside 0": ({"shape": (0, 2**62, 2**62)}, "overflows", "less than 2**63"),
    "size of bits": ({"shape": (BIG, 2), "dtype": (1, 1, 1)}, "of uint1 overflows", "2**63"),
    "stride": ({"strides": (BIG, 1)}, f"strides ({BIG}, 1)", "less than 2**63"),
    "strides apart": ({"strides": (2**60, -(2**60))}, "overflow", "less than 2**63"),
    "wraps around": ({"data": 2**64 - 8}, "data 0xfffffffffffffff8", "64-bit address space"),
    "wraps below": ({"data": 8, "strides": (-3, 1)}, "bytes -12 to", "64-bit address space"),
    "byte_offset": ({"byte_offset": 2**63}, "byte_offset 9223372036854775808", "less than 2**63"),
    "NULL data": ({"data": 0}, "data is NULL", "expected an address on cpu"),
    "NULL data elsewhere": ({"data": 0, "device": (8, 1)}, "data is NULL", "address on metal:1"),
    "no bits": ({"dtype": (2, 0, 1)}, "code 2 has 0 bits", "expected one of 16, 32, 64, 128"),
    "odd bits": ({"dtype": (0, 33, 1)}, "code 0 has 33 bits", "one of 1, 2, 4, 8, 16, 32, 64"),
    "bits of float6": ({"dtype": (15, 8, 1)}, "code 15 has 8 bits", "expected one of 6"),
    "no lanes": ({"dtype": (2, 32, 0)}, "lanes=0", "expected 1 for a scalar type"),
    "no bits of a later code": ({"dtype": (18, 0, 1)}, "code 18 has 0 bits", "1 to 255"),
    "no device": ({"device": (0, 0)}, "unknown device type 0", "1 (CPU), 2 (CUDA)"),
    "device type": ({"device": (5, 0)}, "unknown device type 5", "20 (TPU_HOST)"),
    "device id": ({"device": (2, -1)}, "device id is -1", "expected 0 to 2147483647"),
}


@pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])
@pytest.mark.parametrize(("fields", "came", "expected"), MALFORMED.values(), ids=MALFORMED)
def test_malformed(fields, came, expected, versioned):
    # Nothing may be read where the data would be, nor behind a field that is refused.
    managed = Managed(versioned, **{"data": NOWHERE, **fields})
    capsule = managed.capsule()

    with pytest.raises(MalformedTensorError) as caught:
        dlpack.peek(capsule)
    assert managed.deleted == 0
    assert capsule_name(capsule) == managed.name

    with pytest.raises(MalformedTensorError) as again:
        dlpack.from_capsule(capsule)
    assert again.value.__traceback__ is not None  # it holds every frame, and still:
    assert managed.deleted == 1
    assert capsule_name(capsule) == b"used_" + managed.name
    assert isinstance(again.value, BufferError)
    assert str(again.value) == str(caught.value)
    assert came in str(again.value)
    assert expected in str(again.value)
    del capsule, caught, again
    assert managed.deleted == 1
    with pytest.raises(MalformedTensorError) as raw:
        Tensor(ctypes.addressof(managed.struct.dl_tensor))
    assert came in str(raw.value)
    assert expected in str(raw.value)
    assert managed.deleted == 1


LATER = {  # what a struct of any version may have, and how it is printed
    "code18_4": {"dtype": (18, 4, 1)},
    "code255_3x2": {"dtype": (255, 3, 2)},
    "tpu:0": {"device": (19, 0)},
    "tpu_host:1": {"device": (20, 1)},
    "device21:0": {"device": (21, 0)},
    "device2147483647:2": {"device": (2**31 - 1, 2)},
}
VERSIONS = {"versioned": (1, 3), "later": (1, 4), "legacy": None}


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
@pytest.mark.parametrize(("name", "fields"), LATER.items(), ids=LATER)
def test_later_codes_are_metadata(name, fields, version):
    """They pass through as numbers; every library refuses them in a sentence, and nothing leaks."""
    managed = Managed(version is not None, version=version or (1, 3), **fields)
    tensor = dlpack.from_capsule(managed.capsule())
    wanted = {"dtype": (2, 32, 1), "device": (1, 0), **fields}
    raw = ab.inspect(ctypes.addressof(managed.struct.dl_tensor))
    for info in (
        tensor,
        dlpack.peek(tensor.__dlpack__(max_version=(1, 3))),
        ab.inspect(tensor),
        raw,
    ):
        assert {"dtype": info.dtype, "device": info.device} == wanted
        assert name in (str(info.dtype), str(info.device))
    x = ab.from_dlpack(tensor)
    assert name in repr(x)
    for to in ("numpy", "torch", "jax"):
        route = ab.explain(x, to)
        assert route.kind == "refuse"
        assert name in route.why
        with pytest.raises(ab.ConversionError, match=name):
            ab.convert(tensor, to)
        if "device" in fields:
            assert "with the library that made" in route.why
            assert "with the library that made" in ab.explain(x, to, device="cpu").why
    api = dlpack.exchange_api(type(ab.from_dlpack(np.ones(2))))
    if api is not None:  # there is the C extension
        x = api.wrap(tensor)
        assert (x.library, x.info.dtype, x.info.device) == ("dlpack", *wanted.values())
    assert managed.deleted == 0
    del tensor, x, route, info
    assert managed.deleted == 1


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"dtype": (18, 8, 0)}, "lanes=0"),
        ({"dtype": (2, 33, 1)}, "code 2 has 33 bits"),
        ({"device": (5, 0)}, "unknown device type 5"),  # a gap, never to be filled
        ({"device": (77, -1)}, "device id is -1"),
    ],
    ids=str,
)
def test_what_no_later_minor_version_allows(fields, text):
    managed = Managed(version=(1, 4), **fields)
    with pytest.raises(MalformedTensorError, match=text):
        dlpack.from_capsule(managed.capsule())
    assert managed.deleted == 1


@pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])
@pytest.mark.parametrize("fields", [{}, {"ndim": -1}], ids=["right", "wrong"])
def test_null_deleter(fields, versioned):
    managed = Managed(versioned, deleter=False, **fields)
    if fields:
        with pytest.raises(MalformedTensorError):
            dlpack.from_capsule(managed.capsule())
    else:
        assert dlpack.from_capsule(managed.capsule()).shape == (2, 3)
    assert managed.deleted == 0


@pytest.mark.parametrize("number", [5, -1, -8, 8, 4095, 4096 + 4, 2**64, 2**70])
def test_numbers_that_are_no_addresses(number):
    """Reading any of them would end the process."""
    what = f"pointer is {number}; expected an address: a multiple of 8, from 4096"
    for read in (ab.inspect, Tensor, lambda at: dlpack.ManagedTensor.from_struct(at, True)):
        with pytest.raises(MalformedTensorError, match=what):
            read(number)
    if 0 < number < 2**64:
        with pytest.raises(MalformedTensorError, match=what):
            ab.inspect(ctypes.c_void_p(number))


@pytest.mark.parametrize("fields", [{"ndim": 0}, {"shape": (0, 5)}, {"shape": (5, 0), "ndim": 2}])
def test_what_looks_odd_and_is_right(fields):
    fields = {"shape": None, "strides": None, "data": 0, **fields}
    if fields.get("ndim") == 0:
        fields["data"] = NOWHERE  # a scalar; its shape is NULL
    managed = Managed(**fields)
    tensor = dlpack.from_capsule(managed.capsule())
    assert tensor.shape == tuple(fields["shape"] or ())
    again = dlpack.peek(dlpack.to_capsule(tensor))
    assert again.shape == tensor.shape


# Whole structs, of any contents. Pointers are NULL or lead to real memory, arrays are as long as
# any rank that passes; other values of a pointer cannot be checked.

_edges = (0, 1, 2, 3, 7, 8, 63, 64, 65, 2**15, 2**31 - 1, 2**32, 2**53, 2**62, BIG)


def integers(bits, signed):
    """Integers of a field: small ones, edges, and anything."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = {v for e in _edges for v in (e, -e, low + e, high - e) if low <= v <= high}
    return st.one_of(
        st.integers(max(low, -2), 8), st.sampled_from(sorted(edges)), st.integers(low, high)
    )


int64, uint64, int32 = integers(64, True), integers(64, False), integers(32, True)
uint32, uint16, uint8 = integers(32, False), integers(16, False), integers(8, False)
small = st.integers(0, 4)
known = st.tuples(st.sampled_from([*BY_NAME.values()]), st.integers(1, 4)).map(
    lambda drawn: (*drawn[0][:2], drawn[1])
)
USED = 5  # numbers that are drawn for a shape or strides; a rank up to 64 repeats them


def array(numbers):
    return st.tuples(*[numbers] * USED)


HOSTILE = {
    "ndim": st.one_of(st.integers(0, 64), int32),
    "shape": st.one_of(st.none(), array(small | int64)),
    "strides": st.one_of(array(small), array(int64)),
    "dtype": st.one_of(known, st.tuples(uint8, uint8, uint16)),
    "device": st.one_of(st.tuples(st.integers(1, 20), small), st.tuples(int32, int32)),
    "data": st.one_of(st.just(0), uint64),
    "byte_offset": uint64,
    "flags": uint64,
    "version": st.tuples(st.just(1) | uint32, uint32),
    "deleter": st.just(False),
}


_BITS = [0] + [1 << a | 1 << b for a in range(len(HOSTILE)) for b in range(a + 1)]


@st.composite
def structs(draw):
    """Draw a `Managed` of which any fields, none or all of them, may be anything."""
    fields = {"ndim": draw(small), "shape": draw(array(small))}
    which = draw(st.integers(0, 2 ** len(HOSTILE) - 1) | st.sampled_from(_BITS))
    for bit, (name, values) in enumerate(HOSTILE.items()):
        if which >> bit & 1:
            fields[name] = draw(values)
    for name in ("shape", "strides"):
        if fields.get(name):
            fields[name] = (fields[name] * 13)[:64]
    return Managed(draw(st.booleans()), **fields)


@pytest.mark.parametrize("examples", [500, pytest.param(3000, marks=pytest.mark.heavy)])
def test_fuzz(examples):
    settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )(given(structs())(taken_or_refused))()


def taken_or_refused(managed):
    """A struct is read or an error, and its deleter is called once."""
    owes = int(managed.struct.deleter is not None)
    capsule = managed.capsule()
    try:
        tensor = dlpack.from_capsule(capsule)
    except (MalformedTensorError, UnsupportedVersionError) as error:
        assert managed.deleted == owes
        event(type(error).__name__)
    else:
        assert managed.deleted == 0
        check_agreement(tensor, managed)
        check_re_export(tensor, managed.versioned)
        del tensor
        assert managed.deleted == owes
        event("accepted")
    del capsule
    assert managed.deleted == owes


def check_agreement(tensor, managed):
    """The tensor says what the struct says."""
    raw = managed.struct.dl_tensor
    shape, strides = (
        tuple((ctypes.c_int64 * raw.ndim).from_address(a)) if a and raw.ndim else None
        for a in (raw.shape, raw.strides)
    )
    assert tensor.ndim == raw.ndim
    assert tensor.shape == (shape or ())
    assert tensor.strides == (strides or dlpack.c_strides(tensor.shape))
    assert tensor.dtype == (raw.dtype.code, raw.dtype.bits, raw.dtype.lanes)
    assert tensor.device == (raw.device.device_type, raw.device.device_id)
    assert (tensor.data, tensor.byte_offset) == (raw.data or 0, raw.byte_offset)
    assert tensor.data or tensor.size == 0
    assert 0 <= tensor.nbytes < 2**63
    if managed.versioned:
        assert tensor.version == (managed.struct.version.major, managed.struct.version.minor)
        assert tensor.flags == managed.struct.flags % 8
    else:
        assert (tensor.version, tensor.flags) == (None, dlpack.FLAG_READ_ONLY)


def check_re_export(tensor, versioned):
    """What was taken can be given away again, as it was."""
    given_on = dlpack.to_capsule(tensor, versioned=versioned)
    again = dlpack.from_capsule(given_on)
    for what in ("shape", "dtype", "device", "flags"):
        assert getattr(again, what) == getattr(tensor, what)
    assert again.data + again.byte_offset == tensor.data + tensor.byte_offset
    for extent, old, new in zip(tensor.shape, tensor.strides, again.strides, strict=True):
        assert old == new or extent == 1 or tensor.size == 0
