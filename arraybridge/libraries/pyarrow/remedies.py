"""What to pass instead of an array of Arrow's that no tensor holds, by its type and its nulls."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute

from ...protocols.arrow_types import spells_number

__all__ = ["remedy"]

_types = pa.types
_LISTS = tuple(
    getattr(pa, name)
    for name in ("ListArray", "LargeListArray", "ListViewArray", "LargeListViewArray")
    if hasattr(pa, name)
)
_TEXT = (
    "is_string", "is_large_string", "is_string_view",
    "is_binary", "is_large_binary", "is_binary_view", "is_fixed_size_binary",
)  # fmt: skip


def remedy(x: pa.Array, name: str = "x") -> str:
    """Return what to do about an array; ``name`` is what the code calls it."""
    kind = x.type
    if _types.is_null(kind):
        return f"convert it to numbers first, {name}.cast('float64').fill_null(value)"
    if _is_number(kind):
        if not x.null_count:
            return f"pass {name}"
        value = "False" if _types.is_boolean(kind) else "value"
        return f"pass {name}.fill_null({value}) or {name}.drop_null()"
    if isinstance(x, pa.ExtensionArray):
        return remedy(x.storage, f"{name}.storage").replace("pass", "pass what it is stored as,", 1)
    if _is(kind, "is_string_view", "is_binary_view"):
        plain = "string" if _types.is_string_view(kind) else "binary"
        x, name = x.cast(plain), f"{name}.cast({plain!r})"
        kind = x.type
    if x.null_count:
        x, name = x.drop_null(), f"{name}.drop_null()"
    if isinstance(x, pa.MapArray):
        return remedy(x.items, f"{name}.items")
    if isinstance(x, (*_LISTS, pa.FixedSizeListArray)):
        below = x.flatten()  # type: ignore[attr-defined]
        if _is_number(below.type) and not below.null_count:
            if isinstance(x, pa.FixedSizeListArray):
                return f"pass {name}"
            return f"pass {name}.flatten(), as its rows may differ in length"
        return remedy(below, f"{name}.flatten()")
    if isinstance(x, pa.StructArray | pa.UnionArray):
        if not kind.num_fields:
            return "it has no fields"
        at = next((n for n in range(kind.num_fields) if _is_number(kind.field(n).type)), 0)
        told = remedy(x.field(at), f"{name}.field({at})")
        return told.replace("pass", "pass its fields one by one,", 1)
    if _types.is_temporal(kind) and not _types.is_interval(kind):
        return f"pass its integers, {name}.view('int{kind.bit_width}')"
    if _types.is_decimal(kind):
        return f"pass {name}.cast('float64'), which rounds"
    if _types.is_run_end_encoded(kind):
        return remedy(pa.compute.run_end_decode(x), f"pyarrow.compute.run_end_decode({name})")
    if _types.is_dictionary(kind):
        codes, x, name = (
            f"pass its codes, {name}.indices",
            x.dictionary_decode(),
            f"{name}.dictionary_decode()",
        )
        kind = x.type
        if not _is(kind, *_TEXT):  # whose codes these are
            return f"{codes}, or, decoded, {remedy(x, name).removeprefix('pass ')}"
    else:
        codes = f"pass codes, {name}.dictionary_encode().indices"
    if _is(kind, "is_string", "is_large_string") and len(x) and spells_number(x[0].as_py()):
        codes += f", or the numbers that it spells, {name}.cast('float64')"
    return codes


def _is_number(kind: pa.DataType) -> bool:
    return bool(_types.is_integer(kind) or _types.is_floating(kind) or _types.is_boolean(kind))


def _is(kind: pa.DataType, *names: str) -> bool:
    return any(getattr(_types, name, lambda _: False)(kind) for name in names)
