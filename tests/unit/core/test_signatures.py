"""Signatures, the planner's view of them, and the table that remembers what it decided."""

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core.registry import KNOWN, forget, library_named
from arraybridge.core.signature import Finer, Signature, exact_key, of_exact_key
from arraybridge.core.table import MOST
from tests.support.optional import installed
from tests.support.sources import sources

COARSE = [name for name in ("numpy", "torch", "jax") if installed(name)]
FIELDS = (
    "device dtype dtype_name ndim empty readonly padded pending refused c_contiguous f_contiguous "
    "compact negative repeated legacy"
).split()


@pytest.mark.parametrize("name", COARSE)
def test_a_coarse_signature_says_what_the_description_says(name):
    library, seen = library_named(name), 0
    for label, x in sources().items():
        if not library.owns(type(x)) or not library.has_edges(type(x)):
            continue
        key = library.signature(x)
        if key is None:
            continue
        assert hash(key) == hash(library.signature(x))
        try:
            info, coarse = library.describe(x), library.decode(key)
        except (Finer, ab.ConversionError):
            continue
        if info.refused and not info.data:
            continue  # whether the elements are there is the edges' to see
        seen += 1
        for field in FIELDS:
            try:
                value = getattr(coarse, field)
            except Finer:
                continue
            assert value == getattr(info, field), (label, field)
        if coarse.knows("alignment") and info.size:
            assert coarse.aligned_to(coarse.alignment)
            assert info.aligned_to(coarse.alignment), label
    assert seen > (4 if name == "jax" else 100)


def test_what_a_signature_lacks_asks_for_the_exact_one():
    signature = Signature.on_host(ndim=2)
    assert (signature.ndim, signature.pending, signature._exact) == (2, (), False)
    with pytest.raises(Finer, match="shape"):
        _ = signature.shape
    with pytest.raises(Finer):
        _ = Signature().refused


def test_an_exact_key_has_everything_but_the_address():
    x = np.arange(24, dtype="f4").reshape(4, 6)[1:, ::2]
    info = ab.inspect(x)
    again = of_exact_key(info.library, exact_key(info))
    assert again[2:] == info[2:]
    assert again.alignment == min(info.alignment, 64)
    assert exact_key(info) == exact_key(info._replace(data=info.data + 4096))
    assert exact_key(info) != exact_key(info._replace(data=info.data + 1))


def test_what_is_remembered_is_bounded():
    forget()
    x = np.zeros(3)
    for number in range(2 * MOST):
        ab.convert(
            np.zeros(number % 40 + 1, "f4")[::-1].reshape((1,) * (number // 40) + (-1,)), "jax"
        )
        ab.convert(x, "numpy", device=ab.Device(1), order="CFK"[number % 3])
    record = KNOWN[np.ndarray]
    assert len(record.table) <= MOST
    assert len(record.entries) <= MOST
    for entry in record.entries.values():
        assert len(entry.runs) <= MOST
        assert len(entry._plans) <= MOST
    forget()
    assert np.ndarray not in KNOWN


def test_later_calls_make_no_plan(monkeypatch):
    from arraybridge.core import table

    x = np.zeros((3, 4), "f4")
    for array in (x, x.T, x[::-1], x[:, ::2]):
        for to in COARSE:
            ab.convert(array, to)
    monkeypatch.setattr(table, "plan", None)
    for array in (x, x.T, x[::-1], x[:, ::2]):
        for to in COARSE:
            ab.convert(array, to)
