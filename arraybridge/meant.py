"""Guess the known name that was meant by an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

# Other names, which are not similar in spelling.
_ELSEWHERE = {
    **dict.fromkeys(("nhwc", "nwc", "ndhwc", "channels_last_3d"), "channels_last"),
    **dict.fromkeys(("nchw", "row", "row_major", "contiguous", "contiguous_format"), "C"),
    **dict.fromkeys(("fortran", "column", "column_major", "col_major"), "F"),
    **dict.fromkeys(("a", "any", "preserve", "preserve_format", "keep"), "K"),
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"fp{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"c{bits}": f"complex{bits}" for bits in (64, 128)},
    **dict.fromkeys(("bf16", "brain"), "bfloat16"),
    **dict.fromkeys(("host", "processor"), "cpu"),
    "tvm": "tvm_ffi",
    "strict": "array_api_strict",
    "nvidia": "cuda",
    "hip": "rocm",
    "sycl": "oneapi",
    "forbidden": "forbid",
}


def closest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that was meant, if one is close or others call it so."""
    from difflib import get_close_matches  # for an error's message alone

    given, lower = str(name).lower(), {each.lower(): each for each in known}
    elsewhere = _ELSEWHERE.get(given.replace("-", "_"), "").lower()
    if elsewhere in lower:
        return lower[elsewhere]
    parts = given.split("_")  # C_CONTIGUOUS
    if parts[0] in lower and len(parts[0]) == 1:
        return lower[parts[0]]
    return lower[found[0]] if (found := get_close_matches(given, lower, 1, 0.7)) else None


def meant(name: object, known: Iterable[str]) -> str:
    """End a message about an unknown name: with the one that was meant, and all that are known."""
    known = list(known)
    guess = closest(name, known)
    return (f": did you mean {guess!r}?" if guess else ";") + f" expected {', '.join(known)}"
