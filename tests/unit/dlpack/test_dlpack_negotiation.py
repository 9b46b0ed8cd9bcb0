"""What the core and its producers and consumers agree on: versions, keywords, streams, flags."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.dlpack import acquire
from tests.support.producers import Managed, Producer, capsule_name

NEWEST = (1, 3)


def test_numpys_flags_are_read():
    array = np.zeros(3)
    assert not acquire(array).readonly
    array.flags.writeable = False
    assert acquire(array).readonly
    assert not acquire(array).copied
    copy = acquire(array, copy=True)
    assert (copy.copied, copy.readonly) == (True, False)
    assert copy.pointer != array.ctypes.data


# Versions


def test_the_newest_version_is_asked_for():
    producer = Producer(Managed())
    acquire(producer)
    assert producer.asked == [{"max_version": NEWEST}]


@pytest.mark.parametrize("version", [(0, 9), (2, 0), (2**32 - 1, 0)])
@pytest.mark.parametrize("read", [dlpack.from_capsule, dlpack.peek])
def test_other_major_versions_are_refused_unread(version, read):
    # All behind the deleter would be refused as well, if it were looked at.
    managed = Managed(version=version, ndim=-1, dtype=(99, 0, 0), device=(0, -1), data=0)
    capsule = managed.capsule()
    with pytest.raises(dlpack.UnsupportedVersionError) as caught:
        read(capsule)
    assert isinstance(caught.value, BufferError)
    assert f"version {version[0]}.{version[1]}" in str(caught.value)
    assert "reads version 1.x" in str(caught.value)
    assert managed.deleted == (read is dlpack.from_capsule)
    del capsule, caught  # whose traceback holds it as well
    assert managed.deleted == 1


# Keywords


def make(signature: str, body: str = "pass", returns: str = "self.managed.capsule()"):
    """A producer's class with ``def __dlpack__(self, <signature>)``; it notes how it was called."""
    source = (
        f"def __dlpack__(self, {signature}):\n"
        "    given = {k: v for k, v in locals().items() if k not in ('self', 'rest')}\n"
        "    given.update(locals().get('rest', {}))\n"
        "    self.asked.append(given)\n"
        f"    {body}\n"
        f"    return {returns}\n"
    )
    scope: dict = {}
    exec(source, scope)
    return type("Hand", (Producer,), {"__dlpack__": scope["__dlpack__"]})


EVERYTHING = {"stream": 3, "max_version": NEWEST, "dl_device": (1, 0), "copy": True}


@pytest.mark.parametrize(
    ("signature", "known"),
    [
        ("", ()),
        ("stream=None", ("stream",)),
        ("*, stream=None", ("stream",)),
        ("max_version=None", ("max_version",)),
        ("*, stream=None, max_version=None", ("stream", "max_version")),
        ("*, stream=None, copy=None", ("stream", "copy")),
        ("stream=None, /", ()),  # positional only: no keyword
        ("*, stream=None, max_version=None, dl_device=None, copy=None", tuple(EVERYTHING)),
        ("**rest", tuple(EVERYTHING)),
    ],
)
def test_only_known_keywords_are_sent(signature, known):
    cls = make(signature)
    for _ in range(2):  # the second call uses what the first has learnt
        managed = Managed(device=(2, 0))
        producer = cls(managed)
        acquire(producer, stream=3, dl_device=(1, 0), copy=True)
        assert len(producer.asked) == 1
        asked = {k: v for k, v in producer.asked[0].items() if v is not None}
        assert asked == {key: EVERYTHING[key] for key in known}
        assert managed.deleted == 1


@pytest.mark.parametrize(
    "message",
    ["mine", "got an unexpected keyword argument 'max_version'", "takes no keyword arguments"],
)
@pytest.mark.parametrize(
    "signature",
    ["**rest", "stream=None", "stream=None, max_version=None, dl_device=None, copy=None"],
)
def test_a_type_error_from_inside_is_the_producers_own(signature, message):
    cls = make(signature, body=f"raise TypeError({message!r})")
    producer = cls(Managed())
    for _ in range(2):
        with pytest.raises(TypeError) as caught:
            acquire(producer)
        assert caught.value.args == (message,)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
    assert len(producer.asked) == 2  # one a call: never tried again


@pytest.mark.parametrize(
    "complaint",
    [
        "f() takes no keyword arguments",
        "'copy' is an invalid keyword argument for f()",
        "f(): incompatible function arguments. The following argument types are supported",
        "f() got an unexpected keyword argument 'max_version'",
    ],
)
def test_a_c_function_tells_by_its_message(complaint):
    class Function:  # callable, and without a signature
        __signature__ = "unreadable"

        def __init__(self):
            self.asked = []

        def __call__(self, **keywords):
            self.asked.append(keywords)
            if keywords.keys() - {"stream"}:
                raise TypeError(complaint)
            return Managed(device=(2, 0)).capsule()

    class Foreign:
        __dlpack__ = Function()

        def __dlpack_device__(self):
            return (2, 0)

    acquire(Foreign(), stream=1, copy=False)
    assert [sorted(keywords) for keywords in Foreign.__dlpack__.asked] == [
        ["copy", "max_version", "stream"],
        ["max_version", "stream"],
        ["stream"],
    ]
    acquire(Foreign(), stream=1)
    assert Foreign.__dlpack__.asked[3:] == [{"stream": 1}]


# Streams, dl_device, copy


@pytest.mark.parametrize("stream", [None, -1, 0, 1, 2, 2**63])
@pytest.mark.parametrize("device", [(1, 0), (1, 2), (2, 0), (2, 3), (10, 0), (14, 1), (13, 0)])
def test_streams_are_sent_to_all_but_the_cpu(device, stream):
    producer = Producer(Managed(device=device))
    acquire(producer, stream=stream)
    sent = {} if stream is None or device[0] == 1 else {"stream": stream}
    assert producer.asked == [{"max_version": NEWEST, **sent}]


# What is no producer, no device, no capsule


@pytest.mark.parametrize("result", [None, 5, b"dltensor", np.zeros(2)], ids=repr)
def test_what_is_no_capsule(result):
    producer = make("**rest", returns="self.managed")(Managed())
    producer.managed = result
    name = type(result).__name__
    with pytest.raises(TypeError, match=rf"__dlpack__\(\) returned a {name}, expected a PyCapsule"):
        acquire(producer)
    with pytest.raises(TypeError, match=f"expected a PyCapsule named 'dltensor'.*got {name}"):
        dlpack.from_capsule(result)


@pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])
def test_a_bare_capsule_is_consumed_once(versioned):
    managed = Managed(versioned)
    capsule = managed.capsule()
    assert dlpack.is_capsule(capsule)
    for _ in range(2):
        assert dlpack.peek(capsule).shape == (2, 3)
    tensor = acquire(capsule)
    assert capsule_name(capsule) == b"used_" + managed.name
    for read in (acquire, dlpack.from_capsule, dlpack.peek):
        with pytest.raises(
            dlpack.ConsumedCapsuleError, match=r"consumed already.*__dlpack__ again"
        ):
            read(capsule)
    del capsule
    assert managed.deleted == 0
    del tensor
    assert managed.deleted == 1


class Contradictory:
    """A producer whose device is another than its tensor's."""

    def __init__(self, said, came):
        self.managed = Managed(device=came)
        self.said = said

    def __dlpack_device__(self):
        return self.said

    def __dlpack__(self, **kwargs):
        return self.managed.capsule()


@pytest.mark.parametrize(
    ("said", "came"),
    [((2, 0), (1, 0)), ((1, 0), (2, 0)), ((2, 1), (2, 0))],
)
def test_a_device_that_contradicts_the_tensor_is_refused_and_the_tensor_released(said, came):
    for way in (
        dlpack.acquire,
        ab.inspect,
        ab.from_dlpack,
        lambda x: ab.convert(x, "numpy"),
        lambda x: ab.convert(x, "numpy", device="cpu"),
    ):
        x = Contradictory(said, came)
        with pytest.raises(dlpack.MalformedTensorError, match="one of them is wrong") as caught:
            way(x)
        assert x.managed.deleted == 1
        del caught
        gc.collect()
        assert x.managed.deleted == 1
