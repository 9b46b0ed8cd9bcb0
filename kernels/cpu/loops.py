"""The loop nest around the inner kernels, which `nest_code` compiles.

Importing this module imports Numba. The nest is a C function that native threads call without the
GIL::

    void nest(int64 record, int64 dst, int64 src, int64 start, int64 stop)

It copies the blocks from `start` on and before `stop` of a layout, in the order of its loops. The
record (see ``plan_types.NEST``) has everything else, with the address of the inner kernel. It is
only read, so that any number of threads may use one.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from llvmlite import ir
from numba import cfunc, config, types
from numba.core import cgutils
from numba.extending import intrinsic

from arraybridge.kernels.cpu.microkernels import INNER, emit_lines, emit_part
from arraybridge.kernels.cpu.plan_types import LINE, MOST_OUTER, NEST, SCRATCH
from arraybridge.kernels.cpu.shuffle import INT, Vectors

_SECOND_LEVEL = 2  # cache level of LLVM's prefetch: the current block fills the nearest one
_WORDS = types.UniTuple(types.int64, len(NEST))


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


@_emits(_WORDS)
def _words(builder: ir.IRBuilder, record: ir.Value) -> ir.Value:
    """Load the words of a record, in the order of `NEST`."""
    words = ir.ArrayType(INT, len(NEST))
    return builder.load(builder.inttoptr(record, words.as_pointer()), align=8)


@_emits(types.int64)
def _word(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.load(builder.inttoptr(address, INT.as_pointer()), align=8)


@_emits(types.void)
def _set_word(builder: ir.IRBuilder, address: ir.Value, value: ir.Value) -> None:
    builder.store(value, builder.inttoptr(address, INT.as_pointer()), align=8)


@_emits(types.int64)
def _on_stack(builder: ir.IRBuilder, nbytes: ir.Constant) -> ir.Value:
    """Return the address of so many bytes on the stack."""
    with builder.goto_entry_block():
        buffer = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes.constant))
    buffer.align = LINE
    return builder.ptrtoint(buffer, INT)


@_emits(types.void)
def _inner(
    builder: ir.IRBuilder, address: ir.Value, out: ir.Value, src: ir.Value, rows: ir.Value,
    rows_out: ir.Value, rows_src: ir.Value, cols: ir.Value, cols_out: ir.Value, cols_src: ir.Value,
    item: ir.Value, part_src: ir.Value, stream: ir.Value,
) -> None:  # fmt: skip
    words = out, src, rows, rows_out, rows_src, cols, cols_out, cols_src, item, part_src, stream
    builder.call(builder.inttoptr(address, INNER.as_pointer()), words)


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
def _lines(
    builder: ir.IRBuilder, dst: ir.Value, src: ir.Value, nbytes: ir.Value, stream: ir.Value,
    vector: ir.Constant,
) -> None:  # fmt: skip
    """Move whole lines by vectors of so many bytes."""
    streamed = builder.icmp_signed("!=", stream, ir.Constant(INT, 0))
    with builder.if_else(streamed, likely=True) as (then, otherwise):
        with then:
            emit_lines(builder, dst, src, nbytes, vector.constant)
        with otherwise:
            emit_lines(builder, dst, src, nbytes, vector.constant, past=False)


_part_line = _emits(types.void)(emit_part)


@_emits(types.void)
def _fence(builder: ir.IRBuilder, x86: ir.Constant) -> None:
    """Order streamed stores before the store that signals them to another thread."""
    if x86.constant:
        kind = ir.FunctionType(ir.VoidType(), [])
        fence = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse.sfence")
        builder.call(fence, [])
    else:
        builder.fence("seq_cst")


def nest(vector: int, *, x86: bool, merging: bool) -> Callable[[int, int, int, int, int], None]:
    """Return the Python function of a nest, for Numba to compile.

    `vector` is the bytes of the machine's vectors. `merging` is for kernels of the kind "merge",
    which read several channels; the others are 3 % faster without that loop.
    """
    x86_or_0, axes, counters_bytes = int(x86), 8 * len(NEST), 8 * MOST_OUTER

    def kernel(record: int, dst: int, src: int, start: int, stop: int) -> None:
        (
            inner, least_rows, least_cols, parts, item, stream, staged, joined, part_src,
            rows, rows_dst, rows_src, rows_chunk, rows_out,
            planes, planes_dst, planes_src, planes_chunk, leaves, leaves_dst, leaves_src,
            cols, cols_dst, cols_src, cols_chunk, ahead, outer,
        ) = _words(record)  # fmt: skip
        if not merging:
            parts = 1
        innermost = record + axes + 24 * (outer - 1)
        scratch, counters = _on_stack(SCRATCH), _on_stack(counters_bytes)

        # The place of the first block, as the last chunk takes a rest of less than the least.
        chunks = _quotient(cols - least_cols, cols_chunk) + 1
        left = _quotient(start, chunks)
        col = (start - left * chunks) * cols_chunk
        chunks = _quotient(planes - 1, planes_chunk) + 1
        rest = _quotient(left, chunks)
        plane = (left - rest * chunks) * planes_chunk
        chunks = _quotient(rows - least_rows, rows_chunk) + 1
        left = _quotient(rest, chunks)
        row = (rest - left * chunks) * rows_chunk
        at = innermost
        for counter in range(outer):
            rest = _quotient(left, _word(at))
            index = left - rest * _word(at)
            _set_word(counters + 8 * counter, index)
            dst += index * _word(at + 8)
            src += index * _word(at + 16)
            left = rest
            at -= 24

        block, last = start, True
        while block < stop:
            row_count = rows - row
            if row_count >= rows_chunk + least_rows:
                row_count = rows_chunk
            plane_count = min(planes_chunk, planes - plane)
            col_count = cols - col
            if col_count >= cols_chunk + least_cols:
                col_count = cols_chunk
            to = dst + row * rows_dst + plane * planes_dst + col * cols_dst
            source = src + row * rows_src + plane * planes_src + col * cols_src
            out = scratch + LINE if staged else to
            for i in range(plane_count):
                for j in range(leaves):
                    _inner(
                        inner,
                        out + i * planes_dst + j * leaves_dst,
                        source + i * planes_src + j * leaves_src,
                        row_count, rows_out, rows_src,
                        col_count, cols_dst, cols_src,
                        item, part_src, stream,
                    )  # fmt: skip
            # Step to the next block. `first`, `last`: whether a run starts and ends in this one, or
            # the part of it that is ours.
            block += 1
            first, last = last, block == stop
            col += col_count
            if col == cols:
                col = 0
                plane += plane_count
                if plane == planes:
                    plane = 0
                    last |= not joined
                    row += row_count
                    if row == rows:
                        row = 0
                        last = True
                        at = innermost
                        for counter in range(outer):
                            index = _word(counters + 8 * counter) + 1
                            dst += _word(at + 8)
                            src += _word(at + 16)
                            if index < _word(at):
                                _set_word(counters + 8 * counter, index)
                                break
                            _set_word(counters + 8 * counter, 0)
                            dst -= index * _word(at + 8)
                            src -= index * _word(at + 16)
                            at -= 24
            if not staged:
                continue
            nbytes = plane_count * leaves * col_count * item
            runs = row_count
            if joined:
                nbytes *= row_count
                runs = 1
            # A run is written in whole lines: the rest of the last line waits in front of its next
            # part. A short part in the middle of a run, where another call's ends, has no lines.
            if first:
                last |= nbytes < LINE
            # Meanwhile the next block is prefetched, a share after each piece.
            source = src + row * rows_src + plane * planes_src + col * cols_src
            share = 0
            reach = max(row_count * rows_src, item)
            if abs(ahead * cols_src) <= LINE:
                reach = max(reach, LINE)
            if ahead and block < stop:
                pieces = runs * ((nbytes >> 10) + 1)
                share = _quotient(plane_count * leaves * col_count, pieces) + 1
            i_asked = j_asked = col_asked = 0
            # Where runs are cut, lines that are written in part must be read, which takes a while.
            if (block == start + 1) | (block == stop):
                for i in range(runs):
                    _prefetch(to + i * rows_dst + (nbytes if block == stop else 0))
            for i in range(runs):
                begin = to + i * rows_dst
                end = begin + nbytes
                buffer = scratch + i * rows_out
                at = buffer + LINE
                if first:
                    head = min(-begin & (LINE - 1), nbytes)
                    _part_line(begin, at, head)
                else:
                    head = -(begin & (LINE - 1))
                begin += head
                at += head
                while True:
                    piece = min(end - begin, 1024) & -LINE
                    _lines(begin, at, piece, stream, vector)
                    begin += piece
                    at += piece
                    asked = 0
                    while asked < share:
                        line = source + col_asked * cols_src
                        line += i_asked * planes_src + j_asked * leaves_src
                        for _ in range(parts):
                            beyond = line + reach
                            at_line = line & -LINE
                            while at_line < beyond:
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
                    if end - begin < LINE:
                        break
                if last:
                    _part_line(begin, at, end - begin)
                elif end > begin:
                    _move_line(buffer, at + (end - begin) - LINE)
        if stream:
            _fence(x86_or_0)

    return kernel


def nest_code(vector: int, *, x86: bool, merging: bool) -> tuple[str, str]:
    """Compile a nest to LLVM IR for machines with vectors of so many bytes.

    Returns the IR, and the name of the nest's function in it.
    """
    disabled, config.DISABLE_JIT = config.DISABLE_JIT, 0  # NUMBA_DISABLE_JIT is for user code
    try:
        made = cfunc(types.void(*[types.int64] * 5))(nest(vector, x86=x86, merging=merging))
    finally:
        config.DISABLE_JIT = disabled
    return made.inspect_llvm(), made.native_name
