"""The loop nest around an inner kernel, which `compiled` compiles.

Importing this module imports Numba. A kernel is called with the address of one record (see
``plan_types.NEST``). It depends on neither dtype nor rank, so a process only compiles a few.

A kernel is a C function (``numba.cfunc``), called through ctypes or from native threads without the
GIL. Compared with ``numba.njit(nogil=True)`` that avoids Numba's dispatcher and Python wrapper,
gives an address that any thread or C library can call, and works under ``NUMBA_DISABLE_JIT=1``,
which people set to debug their own code.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from llvmlite import ir
from numba import cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic

from arraybridge.kernels.cpu.microkernels import EMIT, Block, emit_lines, emit_part
from arraybridge.kernels.cpu.plan_types import LINE, NEST, SCRATCH, Key
from arraybridge.kernels.cpu.shuffle import INT, Vectors

_WORD = {name: 8 * place for place, name in enumerate(NEST)}
_AXES = 8 * len(NEST)
_SECOND_LEVEL = 2  # cache level of LLVM's prefetch: the current block fills the nearest one


def _emits(result: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a Numba intrinsic on 64-bit integers of a function that emits LLVM IR."""

    def made(emit: Callable[..., Any]) -> Any:
        def template(typingctx: Any, *given: Any) -> Any:
            def codegen(context: Any, builder: ir.IRBuilder, _: Any, args: Any) -> ir.Value:
                value = emit(builder, *args)
                return context.get_dummy_value() if value is None else value

            return result(*[types.int64] * len(given)), codegen

        vars(template)["__signature__"] = signature(emit)  # Numba does not support *args
        return intrinsic(prefer_literal=True)(template)

    return made


@_emits(types.int64)
def word(builder: ir.IRBuilder, record: ir.Value, offset: ir.Value) -> ir.Value:
    """Load a word of the record."""
    at = builder.add(record, offset)
    return builder.load(builder.inttoptr(at, INT.as_pointer()), align=8)


@_emits(types.void)
def set_word(builder: ir.IRBuilder, address: ir.Value, value: ir.Value) -> None:
    """Write a word of a record."""
    builder.store(value, builder.inttoptr(address, INT.as_pointer()), align=8)


@_emits(types.int64)
def _scratch(builder: ir.IRBuilder) -> ir.Value:
    """Return the address of the block's buffer, on the stack."""
    with builder.goto_entry_block():
        buffer = builder.alloca(ir.ArrayType(ir.IntType(8), SCRATCH))
    buffer.align = 64
    return builder.ptrtoint(buffer, INT)


@_emits(types.int64)
def _quotient(builder: ir.IRBuilder, dividend: ir.Value, divisor: ir.Value) -> ir.Value:
    """Divide non-negative numbers, without Python's check for zero."""
    return builder.udiv(dividend, divisor)


@_emits(types.void)
def _prefetch(builder: ir.IRBuilder, address: ir.Value) -> None:
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    # LLVM versions with typed pointers correct the suffix of the name.
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(
        prefetch, [builder.inttoptr(address, byte), number(0), number(_SECOND_LEVEL), number(1)]
    )


@_emits(types.void)
def _move_line(builder: ir.IRBuilder, dst: ir.Value, src: ir.Value) -> None:
    line = Vectors(builder, 1, LINE)
    line.store(line.load(src), dst)


@_emits(types.void)
def _fence(builder: ir.IRBuilder) -> None:
    """Order streamed stores before the store that signals them to another thread."""
    if _is_x86():
        kind = ir.FunctionType(ir.VoidType(), [])
        fence = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence")
        builder.call(fence, [])
    else:
        builder.fence("seq_cst")


def _intrinsics(key: Key) -> tuple[Any, Any, Any]:
    """Make the intrinsics of one kernel: the inner kernel, and moves from the scratch buffer."""

    @_emits(types.void)
    def inner(
        builder: ir.IRBuilder, out: ir.Value, src: ir.Value, rows: ir.Value, rows_out: ir.Value,
        rows_src: ir.Value, cols: ir.Value, cols_out: ir.Value, cols_src: ir.Value, item: ir.Value,
        part_src: ir.Value, stream: ir.Value,
    ) -> None:  # fmt: skip
        words = out, src, rows, rows_out, rows_src, cols, cols_out, cols_src, item, part_src, stream
        EMIT[key.kind](builder, Block(*words, key.width, key.parts, key.rows, key.vector))

    @_emits(types.void)
    def whole_lines(
        builder: ir.IRBuilder, dst: ir.Value, src: ir.Value, nbytes: ir.Value, stream: ir.Value
    ) -> None:
        streamed = builder.icmp_signed("!=", stream, ir.Constant(INT, 0))
        with builder.if_else(streamed, likely=True) as (then, otherwise):
            with then:
                emit_lines(builder, dst, src, nbytes, key.vector)
            with otherwise:
                emit_lines(builder, dst, src, nbytes, key.vector, past=False)

    @_emits(types.void)
    def part_line(builder: ir.IRBuilder, dst: ir.Value, src: ir.Value, nbytes: ir.Value) -> None:
        emit_part(builder, dst, src, nbytes, key.vector)

    return inner, whole_lines, part_line


def _is_x86() -> bool:
    import llvmlite.binding

    triple: str = llvmlite.binding.get_process_triple()
    return triple.startswith(("x86_64", "i386", "i686"))


def function(key: Key) -> Callable[[int], None]:
    """Return the Python function of a kernel, for Numba to compile."""
    inner, whole_lines, part_line = _intrinsics(key)
    least_rows, least_cols = key.least_rows, key.least_cols
    (DST, SRC, ITEM, STREAM, STAGED, JOINED, PART) = (_WORD[name] for name in NEST[:7])
    ROWS, PLANES, LEAVES, COLS = (_WORD[name] for name in ("rows", "planes", "leaves", "cols"))
    PARTS = key.parts if key.kind == "merge" else 1
    OUTER, AXES, AHEAD = _WORD["outer"], _AXES, _WORD["ahead"]

    def kernel(record: int) -> None:
        dst, src, item = word(record, DST), word(record, SRC), word(record, ITEM)
        stream, staged = word(record, STREAM), word(record, STAGED)
        joined, part_src = word(record, JOINED), word(record, PART)
        rows, rows_dst = word(record, ROWS), word(record, ROWS + 8)
        rows_src, rows_chunk = word(record, ROWS + 16), word(record, ROWS + 24)
        rows_out = word(record, ROWS + 32)
        planes, planes_dst = word(record, PLANES), word(record, PLANES + 8)
        planes_src, planes_chunk = word(record, PLANES + 16), word(record, PLANES + 24)
        leaves, leaves_dst = word(record, LEAVES), word(record, LEAVES + 8)
        leaves_src = word(record, LEAVES + 16)
        cols, cols_dst = word(record, COLS), word(record, COLS + 8)
        cols_src, cols_chunk = word(record, COLS + 16), word(record, COLS + 24)
        ahead = word(record, AHEAD)
        axes = record + AXES

        innermost = axes + 32 * (word(record, OUTER) - 1)
        beyond = 0
        if innermost >= axes:
            beyond = word(innermost, 16)
        scratch = _scratch()
        while True:
            row = 0
            while row < rows:
                row_count = rows - row
                if row_count >= rows_chunk + least_rows:
                    row_count = rows_chunk
                plane = 0
                while plane < planes:
                    plane_count = min(planes_chunk, planes - plane)
                    col = 0
                    while col < cols:
                        col_count = cols - col
                        if col_count >= cols_chunk + least_cols:
                            col_count = cols_chunk
                        to = dst + row * rows_dst + plane * planes_dst + col * cols_dst
                        source = src + row * rows_src + plane * planes_src + col * cols_src
                        out = scratch + LINE if staged else to
                        for i in range(plane_count):
                            for j in range(leaves):
                                inner(
                                    out + i * planes_dst + j * leaves_dst,
                                    source + i * planes_src + j * leaves_src,
                                    row_count, rows_out, rows_src,
                                    col_count, cols_dst, cols_src,
                                    item, part_src, stream,
                                )  # fmt: skip
                        if staged:
                            # Every run is written in whole lines: the rest of the last line waits
                            # in front of the next part of the run.
                            first = plane + col == 0
                            last = (plane + plane_count == planes) & (col + col_count == cols)
                            nbytes = plane_count * leaves * col_count * item
                            runs = row_count
                            if joined:
                                nbytes *= row_count
                                runs = 1
                                first &= row == 0
                                last &= row + row_count == rows
                            # Meanwhile the next block is prefetched, a share after each piece.
                            if col + col_count < cols:
                                source += col_count * cols_src
                            elif plane + plane_count < planes:
                                source += plane_count * planes_src - col * cols_src
                            elif row + row_count < rows:
                                source += row_count * rows_src - col * cols_src
                                source -= plane * planes_src
                            else:
                                source += beyond - col * cols_src - plane * planes_src
                                source -= row * rows_src
                            share = 0
                            reach = max(row_count * rows_src, item)
                            if abs(ahead * cols_src) <= LINE:
                                reach = max(reach, LINE)
                            if ahead:
                                pieces = runs * ((nbytes >> 10) + 1)
                                share = _quotient(plane_count * leaves * col_count, pieces) + 1
                            i_asked = j_asked = col_asked = 0
                            for i in range(runs):
                                start = to + i * rows_dst
                                stop = start + nbytes
                                buffer = scratch + i * rows_out
                                at = buffer + LINE
                                if first:
                                    head = min(-start & (LINE - 1), nbytes)
                                    part_line(start, at, head)
                                else:
                                    head = -(start & (LINE - 1))
                                start += head
                                at += head
                                while True:
                                    piece = min(stop - start, 1024) & -LINE
                                    whole_lines(start, at, piece, stream)
                                    start += piece
                                    at += piece
                                    asked = 0
                                    while asked < share:
                                        line = source + col_asked * cols_src
                                        line += i_asked * planes_src + j_asked * leaves_src
                                        for _ in range(PARTS):
                                            end = line + reach
                                            at_line = line & -LINE
                                            while at_line < end:
                                                _prefetch(at_line)
                                                at_line += LINE
                                            line += part_src
                                        asked += ahead
                                        col_asked += ahead
                                        if col_asked >= col_count:
                                            col_asked = 0
                                            j_asked += 1
                                            if j_asked == leaves:
                                                j_asked = 0
                                                i_asked += 1
                                                if i_asked == plane_count:
                                                    share = 0
                                    if stop - start < LINE:
                                        break
                                if last:
                                    part_line(start, at, stop - start)
                                elif stop > start:
                                    _move_line(buffer, at + (stop - start) - LINE)
                        col += col_count
                    plane += plane_count
                row += row_count
            # Count up the outer axes, the last one fastest.
            at = innermost
            while at >= axes:
                index = word(at, 24) + 1
                if index < word(at, 0):
                    set_word(at + 24, index)
                    dst += word(at, 8)
                    src += word(at, 16)
                    break
                set_word(at + 24, 0)
                dst -= (index - 1) * word(at, 8)
                src -= (index - 1) * word(at, 16)
                at -= 32
            if at < axes:
                break
        if stream:
            _fence()

    return kernel


def compiled(*key: Any) -> Any:
    """Compile a kernel from the fields of its ``plan.Key``; the ``numba.cfunc`` owns the code."""
    return cfunc(types.void(types.int64))(function(Key(*key)))
