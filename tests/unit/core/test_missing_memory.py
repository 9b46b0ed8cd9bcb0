"""Arrays whose memory is not there: address 0, storages too small, modes that pretend.

Each is refused, the first time and later, by every route alike, with a remedy that works.
"""

from __future__ import annotations

import itertools
import pickle
import re
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core.registry import forget
from arraybridge.dlpack import CPU, DataType
from tests.support.optional import optional

torch = optional("torch")
FakeTensorMode = optional("torch._subclasses.fake_tensor").FakeTensorMode

TARGETS = ["numpy", "jax", "tvm_ffi", "pyarrow", "array_api_strict"]
FLOAT32 = DataType.named("float32")


def resized(x: torch.Tensor, nbytes: int) -> torch.Tensor:
    x.untyped_storage().resize_(nbytes)
    return x


def turns(target: str) -> Iterator[None]:
    """When nothing is known of tensors, and when one was converted before."""
    forget()
    yield
    ab.convert(torch.ones(3), target)
    yield


CLONE = (r"pass x\.clone\(\)", lambda x: x.clone())


def resize(said: str):
    return said, lambda x: resized(x, 48)


# name -> (an array without its memory, (what is said, the remedy))
MISSING = {
    "zeros": (lambda: torch._efficientzerotensor((3, 4)), CLONE),
    "the imaginary part of zeros": (
        lambda: torch._efficientzerotensor((3, 4), dtype=torch.complex64).imag,
        CLONE,
    ),
    "functionalized": (
        lambda: torch._to_functional_tensor(torch.ones(3, 4)),
        (r"outside torch\.func\.functionalize", lambda x: torch._from_functional_tensor(x)),
    ),
    "storage of 0 bytes": (
        lambda: resized(torch.ones(12), 0),
        resize(r"x\.untyped_storage\(\)\.resize_\(48\)"),
    ),
    "storage too small": (lambda: resized(torch.ones(12), 44), resize("to 44 bytes, .* need 48")),
    "transposed": (lambda: resized(torch.ones(3, 4).T, 47), resize("to 47 bytes, .* need 48")),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("missing", MISSING)
def test_refused_with_a_remedy_that_works(missing, target):
    pytest.importorskip(target)
    make, (said, remedy) = MISSING[missing]
    for _ in turns(target):
        x = make()
        assert ab.explain(x, target).kind == "refuse"
        with pytest.raises(BufferError, match=said):
            ab.convert(x, target)
        with pytest.raises(BufferError) as caught:
            ab.from_dlpack(x).__dlpack__(max_version=(1, 0))
        assert re.search(said, str(caught.value).replace("x.native.", "x."))
        assert ab.inspect(ab.convert(remedy(x), target)).shape == tuple(x.shape)


@pytest.mark.parametrize("target", ["numpy", "tvm_ffi"])
def test_an_expanded_tensor_is_not_beyond_its_storage(target):
    x = torch.ones(3, 1).expand(3, 1000)
    for _ in turns(target):
        assert ab.inspect(ab.convert(x, target)).pointer == x.data_ptr()


class TestAnyLibrary:
    """Where a library's own file did not see it."""

    class Blind(ab.Library):
        name = "blind"
        exports_description = True
        accepts = ab.Accepts("blind", "1", frozenset({"float32"}))

        def owns(self, array_type):
            return array_type is type(self)

        def describe(self, x):
            return ab.TensorInfo("blind", 0, 0, x.shape, (1,), FLOAT32, CPU)

        shape = (3,)

    @pytest.fixture
    def blind(self):
        library = self.Blind()
        ab.register_library(library)
        yield library
        ab.unregister_library("blind")

    @pytest.mark.parametrize("target", TARGETS)
    def test_address_0_is_refused(self, blind, target):
        pytest.importorskip(target)
        assert ab.explain(blind, target).kind == "refuse"
        for copy in (None, True, False):
            with pytest.raises(BufferError, match="data pointer is null"):
                ab.convert(blind, target, copy=copy)
        with pytest.raises(BufferError, match="NULL"):
            ab.copyto(np.ones(3, "f4"), blind)
        with pytest.raises(BufferError, match="NULL"):
            ab.from_dlpack(blind).__dlpack__()

    def test_address_0_under_nothing_is_fine(self, blind):
        blind.shape = (0,)
        assert ab.convert(blind, "numpy").shape == (0,)


MEANWHILE = {
    "to 0": lambda x: resized(x, 0),
    "to less": lambda x: resized(x, 16),
    "to other memory": lambda x: setattr(x, "data", resized(torch.ones_like(x.data), 16)),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("change", MEANWHILE)
def test_memory_that_another_thread_takes_just_before_the_view(change, dtype):
    """`Tensor.numpy` is called between two checks: from then on the storage stays as it is."""
    layouts = {"c": lambda x: x, "permuted": lambda x: x.T, "stepped": lambda x: x[:, ::2]}
    calls = {
        "numpy": lambda x: ab.convert(x, "numpy"),
        "tvm_ffi": lambda x: ab.convert(x, "tvm_ffi"),
        "planned": lambda x: ab.convert(x, "numpy", copy=False, device=ab.Device(1)),
        "an Array": lambda x: np.asarray(ab.from_dlpack(x)),
        "a capsule": lambda x: ab.convert(ab.from_dlpack(x).__dlpack__(), "numpy"),
    }
    for (layout, view), (name, call) in itertools.product(layouts.items(), calls.items()):
        if name == "tvm_ffi":
            pytest.importorskip("tvm_ffi")
        for _ in range(2):
            x = view(torch.ones(64, 64, dtype=getattr(torch, dtype)))
            changed, before = [], x.data_ptr()

            def meanwhile(frame, event, arg, x=x, changed=changed):
                if event == "c_call" and arg.__name__ == "numpy" and not changed:
                    changed.append(True)
                    MEANWHILE[change](x)

            sys.setprofile(meanwhile)
            try:
                made = call(x)
            except ab.ConversionError as error:
                made = None
                said = str(error)
            finally:
                sys.setprofile(None)
            if made is None:
                assert changed
                assert "its storage was resized" in said or "replaced meanwhile" in said
            elif changed:  # what it was a moment before
                assert change == "to other memory"
                assert ab.inspect(made).pointer == before, (layout, name)


# What copies an Array over a tensor in arraybridge itself.
COPIES = {
    "asarray": lambda x: ab.asarray(x, like="torch", copy=True),
    "asarray with a dtype": lambda x: ab.asarray(x, like="torch", dtype="float64"),
    "to": lambda x: x.to("numpy", copy=True),
    "__array__": lambda x: np.asarray(x, "f8"),
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("nbytes", [0, 16])
@pytest.mark.parametrize("copies", COPIES)
def test_no_copy_of_an_array_reads_beyond_its_storage(copies, nbytes):
    x = torch.ones(3, 4)
    array = ab.from_dlpack(x)
    COPIES[copies](ab.from_dlpack(torch.ones(3, 4)))
    resized(x, nbytes)
    with pytest.raises(ab.ConversionError, match="was resized"):
        COPIES[copies](array)
    assert "its storage was resized" in repr(array)
