"""The compiled part of the strided copy: Numba source, compiled by `compiled`.

Importing this module imports Numba. One kernel, in a few specialisations by the width of the item
in bytes: neither dtype nor rank is known to it, so a process compiles one or two of them in its
life. It is called with the address of one record of 64-bit words (see `RECORD`), which keeps the
call cheap and makes slices of a copy, for threads, a matter of writing several records.

Written as a C function (``numba.cfunc``) and called through ctypes, which lets go of the GIL for
the call. Next to ``numba.njit(nogil=True)`` that saves Numba's dispatcher and its Python wrapper,
gives an address that any thread or C library may call, and stands ``NUMBA_DISABLE_JIT=1``, which
people set to trace their own code. No ``parallel=True``: on the OpenMP layer a forked child that
calls the kernel again is killed, on the workqueue layer concurrent callers abort the process
(numba/numba#8563, #10565).
"""

from __future__ import annotations

from llvmlite import ir
from numba import cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["RECORD", "compiled"]

#: The words of a record, 8 bytes each. Then axes, four words each: the extent, the destination's
#: stride, the source's stride (bytes), and a counter that must come in as 0. First the inner two,
#: ``rows`` and ``cols``, then the others, outermost first.
RECORD = ("dst", "src", "nbytes", "outer axes", "rows a tile", "cols a tile")

# The intrinsics take addresses as int64. Every access states an alignment of 1 byte: LLVM takes
# the natural alignment for granted otherwise, and may emit vmovaps, which faults on odd addresses.


@intrinsic
def _load_word(typingctx, address):
    def codegen(context, builder, signature, args):
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=8)

    return types.int64(types.int64), codegen


@intrinsic
def _store_word(typingctx, address, word):
    def codegen(context, builder, signature, args):
        pointer = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        builder.store(args[1], pointer, align=8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic(prefer_literal=True)
def _move(typingctx, dst, src, width, nbytes):
    """Move one item: of `width` bytes, known when compiled, or for width 0 of `nbytes` bytes."""
    if not isinstance(width, types.IntegerLiteral):
        return None
    known = width.literal_value

    def codegen(context, builder, signature, args):
        dst, src, _, nbytes = args
        if known:
            _move_ends(builder, dst, src, known, ())
        else:
            _move_bytes(builder, dst, src, nbytes)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, width, types.int64), codegen


def _move_ends(builder, dst, src, width, offsets):
    """Emit moves of `width` bytes at offset 0 and at `offsets`: every load before any store."""
    # 16 bytes as a vector: one load and one store, where i128 may become two of each.
    item = ir.IntType(8 * width) if width <= 8 else ir.VectorType(ir.IntType(64), width // 8)
    values = []
    for offset in (None, *offsets):
        address = src if offset is None else builder.add(src, offset)
        values.append(builder.load(builder.inttoptr(address, item.as_pointer()), align=1))
    for offset, value in zip((None, *offsets), values, strict=True):
        address = dst if offset is None else builder.add(dst, offset)
        builder.store(value, builder.inttoptr(address, item.as_pointer()), align=1)


def _move_bytes(builder, dst, src, nbytes):
    """Emit a move of `nbytes` bytes, not known when compiled: memcpy beyond 32 bytes."""
    many = builder.icmp_signed(">", nbytes, ir.Constant(nbytes.type, 32))
    with builder.if_else(many) as (then, otherwise):
        with then:
            byte = ir.IntType(8).as_pointer()
            to, source = builder.inttoptr(dst, byte), builder.inttoptr(src, byte)
            cgutils.raw_memcpy(builder, to, source, nbytes, 1)
        with otherwise:
            _move_few_bytes(builder, dst, src, nbytes, 16)


def _move_few_bytes(builder, dst, src, nbytes, width):
    """Emit a move of 1 to 32 bytes: two moves of the widest kind that fits, which may overlap."""
    if width == 1:
        _move_ends(builder, dst, src, 1, ())
        return
    size = ir.Constant(nbytes.type, width)
    with builder.if_else(builder.icmp_signed(">=", nbytes, size)) as (then, otherwise):
        with then:
            _move_ends(builder, dst, src, width, (builder.sub(nbytes, size),))
        with otherwise:
            _move_few_bytes(builder, dst, src, nbytes, width // 2)


def _specialised(width):
    """Return the kernel for items of `width` bytes (0: any number, taken from the record)."""

    def kernel(record):
        dst, src = _load_word(record), _load_word(record + 8)
        nbytes, outer = _load_word(record + 16), _load_word(record + 24)
        tile_rows, tile_cols = _load_word(record + 32), _load_word(record + 40)
        rows, row_dst, row_src = (
            _load_word(record + 48),
            _load_word(record + 56),
            _load_word(record + 64),
        )
        cols, col_dst, col_src = (
            _load_word(record + 80),
            _load_word(record + 88),
            _load_word(record + 96),
        )
        axes = record + 112
        while True:
            # The two inner axes, tile by tile.
            first_row = 0
            while first_row < rows:
                last_row = first_row + tile_rows
                if last_row > rows:
                    last_row = rows
                first_col = 0
                while first_col < cols:
                    last_col = first_col + tile_cols
                    if last_col > cols:
                        last_col = cols
                    for row in range(first_row, last_row):
                        to = dst + row * row_dst + first_col * col_dst
                        source = src + row * row_src + first_col * col_src
                        for _ in range(last_col - first_col):
                            _move(to, source, width, nbytes)
                            to += col_dst
                            source += col_src
                    first_col = last_col
                first_row = last_row
            # Count up the outer axes, the last one fastest.
            at = axes + 32 * (outer - 1)
            while at >= axes:
                index = _load_word(at + 24) + 1
                if index < _load_word(at):
                    _store_word(at + 24, index)
                    dst += _load_word(at + 8)
                    src += _load_word(at + 16)
                    break
                _store_word(at + 24, 0)
                dst -= (index - 1) * _load_word(at + 8)
                src -= (index - 1) * _load_word(at + 16)
                at -= 32
            if at < axes:
                return

    kernel.__qualname__ = f"strided_{width}"
    return kernel


def compiled(width: int):
    """Compile the kernel for one width of item; ``cache`` keeps it on disk.

    Parameters
    ----------
    width : int
        Bytes an item: 1, 2, 4, 8, 16; or 0 for items of any size, given in the record.

    Returns
    -------
    numba.core.ccallback.CFunc
        A ``void(int64)`` taking the address of a record. Owns the code: keep it.
    """
    return cfunc(types.void(types.int64))(_specialised(width))
