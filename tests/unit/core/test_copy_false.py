"""copy=False where a copy is needed: a BufferError and a ValueError, as the standard has it."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional
from tests.support.sources import frozen

torch = optional("torch")

X = np.arange(6, dtype="f4").reshape(2, 3)
FOREIGN = X.astype(">f4")
READ_ONLY = frozen(X.copy())
NEGATED = torch._neg_view(torch.ones(3))
CONJUGATED = torch.ones(3, dtype=torch.complex64).conj()


CALLS = {
    "convert": lambda: ab.convert(READ_ONLY, "torch", copy=False),
    "a capsule": lambda: ab.convert(READ_ONLY.__dlpack__(max_version=(1, 0)), "torch", copy=False),
    "to": lambda: ab.from_dlpack(READ_ONLY).to("torch", copy=False),
    "asarray": lambda: ab.asarray(READ_ONLY, like="torch", copy=False),
    "asarray, dtype=": lambda: ab.asarray(X, like="torch", copy=False, dtype="float64"),
    "legacy": lambda: ab.from_dlpack(READ_ONLY).__dlpack__(copy=False),
    "__dlpack__": lambda: ab.from_dlpack(FOREIGN).__dlpack__(max_version=(1, 0), copy=False),
    "__array__": lambda: ab.from_dlpack(NEGATED).__array__(copy=False),
    "numpy.asarray": lambda: np.asarray(ab.from_dlpack(X), "i4", copy=False),
    "namespace": lambda: ab.xp.numpy.asarray(FOREIGN, copy=False),
    "from_dlpack": lambda: ab.xp.torch.from_dlpack(ab.from_dlpack(X[::-1]), copy=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_is_what_the_standard_names(name: str) -> None:
    with pytest.raises(ab.ConversionError, match=r"^copy=False, but ") as told:
        CALLS[name]()
    assert isinstance(told.value, BufferError)
    assert isinstance(told.value, ValueError)


def test_numpy_imports_show_the_elements() -> None:
    from_dlpack = ab.namespace("numpy").from_dlpack
    for x, elements in ((NEGATED, [-1, -1, -1]), (CONJUGATED, [1, 1, 1]), (FOREIGN, X)):
        np.testing.assert_array_equal(from_dlpack(x), elements)
