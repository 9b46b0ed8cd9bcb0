"""Kernels for small arrays, where they are quicker than NumPy's own copy and there already.

Small arrays load no compiler: what a kernel saves on one of them is a few microseconds. Where one
that was loaded for something larger fits, it is used; and after many copies one is looked for on
disk, which takes a millisecond.
"""

from __future__ import annotations

from array import array
from functools import lru_cache

from arraybridge.kernels.cpu import loader
from arraybridge.kernels.cpu.plan import Key, plan
from arraybridge.kernels.cpu.slices import slices
from arraybridge.layout import c_strides, canonical

__all__ = ["AGAIN", "pays", "prepared"]

#: Copies by NumPy after which to look for the kernel again, then on disk too.
AGAIN = 1000

_awaited: set[Key] = set()

_KB = 1 << 10
_ALL = 1 << 62

# Kind and bytes an item -> the least of `parts`, and from how many bytes up to how many a result
# was made sooner than NumPy does, on all of the layouts of `usual`; 1.3 to 8 times mostly.
_PAYS = {
    **{("merge", width): (2, 0, _ALL) for width in (1, 2, 4, 8)},
    **{("split", width): (2, 0, _ALL) for width in (1, 2, 4)},
    ("split", 8): (2, 0, 16 * _KB),
    ("tile", 1): (4, 0, _ALL),
    ("tile", 2): (4, 0, _ALL),
    ("tile", 4): (8, 0, _ALL),
    ("tile", 8): (4, 0, 16 * _KB),
    ("tile", 16): (2, 0, 16 * _KB),
    **{("reverse", width): (0, 8 * _KB, _ALL) for width in (1, 2, 4)},
    **{("items", width): (0, 0, _ALL) for width in (6, 12, 24)},
    ("items", 0): (0, 0, 4 * _KB),
}


def pays(kernel: Key, nbytes: int) -> bool:
    """Whether a kernel makes a result of so many bytes sooner than NumPy's copy."""
    parts, least, most = _PAYS.get((kernel.kind, kernel.width), (0, _ALL, 0))
    return kernel.parts >= parts and least <= nbytes <= most


def prepared(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, array[int], int]:
    """Choose what makes a small array C-contiguous.

    Parameters
    ----------
    shape, strides : tuple of int
        Of the source; strides in **bytes**.
    itemsize : int
        Bytes.

    Returns
    -------
    kernel : int
        Address of a ``void(int64)``; 0 where NumPy is to copy.
    record : array of int64
        What the kernel takes the address of; its first two words are offsets, to which the
        addresses of destination and source are to be added.
    again : int
        After how many copies by NumPy to ask again; -1 for never.
    """
    key, record = _record(shape, strides, itemsize)
    if key is None:
        return 0, record, -1
    kernel = None
    if key in _awaited or loader.is_loaded("nest", *key):
        kernel = loader.kept("nest", *key)
    _awaited.add(key)
    return (0, record, AGAIN) if kernel is None else (kernel.address, record, -1)


@lru_cache(1024)
def _record(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[Key | None, array[int]]:
    form = canonical(shape, c_strides(shape, itemsize), strides, itemsize)
    if form.shape and 0 not in form.shape:
        made = plan(form)
        if pays(made.kernel, made.nbytes):
            (record,) = slices(made, form.dst_offset, form.src_offset)
            return made.kernel, record
    return None, array("q")
