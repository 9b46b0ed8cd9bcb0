"""The inner kernels, which copy one block of rows and columns, as LLVM IR: see `inner_code`.

A block is ``rows`` x ``cols`` items. Every kernel writes exactly its bytes, and reads only bytes of
the source. Edges need no extra code: the last vector of a row, or tile of a block, is moved back to
end with the block, and repeats a part of its neighbor. The plan ensures that no extent is less than
a vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from llvmlite import ir
from numba.core import cgutils

from arraybridge.kernels.cpu.plan_types import Key
from arraybridge.kernels.cpu.shuffle import INT, Vectors, constant

_BYTE = ir.IntType(8)
_LINE = 64
#: The type of an inner kernel; its arguments are the first fields of `Block`.
INNER = ir.FunctionType(ir.VoidType(), [INT] * 11)


class Block(NamedTuple):
    """The arguments of an inner kernel, and its key."""

    out: ir.Value  # like the next ten, a 64-bit integer
    src: ir.Value
    rows: ir.Value
    rows_out: ir.Value
    rows_src: ir.Value
    cols: ir.Value
    cols_out: ir.Value
    cols_src: ir.Value
    item: ir.Value
    part_src: ir.Value
    stream: ir.Value
    key: Key


@contextmanager
def _loop(builder: ir.IRBuilder, stop: ir.Value, step: int = 1) -> Iterator[ir.Value]:
    """Loop over ``range(0, stop, step)``; yields the index."""
    before = builder.block
    head = builder.append_basic_block("loop")
    body = builder.append_basic_block("body")
    after = builder.append_basic_block("after")
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(INT)
    index.add_incoming(constant(0), before)
    builder.cbranch(builder.icmp_signed("<", index, stop), body, after)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, constant(step)), builder.block)
    # Loops start at a line of the cache for code: short ones in two took 1.7 times as long.
    align = builder.module.add_metadata(["llvm.loop.align", ir.IntType(32)(_LINE)])
    loop = builder.module.add_metadata([align])
    loop.operands = loop, align  # its first operand is itself
    builder.branch(head).set_metadata("llvm.loop", loop)
    builder.position_at_end(after)


@contextmanager
def _tiles(builder: ir.IRBuilder, extent: ir.Value, step: int) -> Iterator[ir.Value]:
    """Loop over the starts of pieces of `step` that cover `extent`; the last one may overlap."""
    last = builder.sub(extent, constant(step))
    with _loop(builder, extent, step) as index:
        late = builder.icmp_signed(">", index, last)
        yield builder.select(late, last, index)


def _address(
    builder: ir.IRBuilder, base: ir.Value, index: ir.Value, stride: ir.Value | int
) -> ir.Value:
    if isinstance(stride, int):
        stride = constant(stride)
    return builder.add(base, builder.mul(index, stride))


@contextmanager
def _rows(builder: ir.IRBuilder, block: Block) -> Iterator[tuple[ir.Value, ir.Value]]:
    """Loop over the rows; yields where each is made and where it comes from."""
    with _loop(builder, block.rows) as row:
        out = _address(builder, block.out, row, block.rows_out)
        yield out, _address(builder, block.src, row, block.rows_src)


def _tile(builder: ir.IRBuilder, block: Block) -> None:
    width, side = block.key.width, block.key.parts
    vectors = Vectors(builder, width, side)
    with _tiles(builder, block.cols, side) as col, _tiles(builder, block.rows, side) as row:
        source = _address(builder, block.src, row, width)
        source = _address(builder, source, col, block.cols_src)
        rows = []
        for _ in range(side):
            rows.append(vectors.load(source))
            source = builder.add(source, block.cols_src)
        out = _address(builder, block.out, row, block.rows_out)
        out = _address(builder, out, col, width)
        for column in vectors.transpose(rows):
            vectors.store(column, out)
            out = builder.add(out, block.rows_out)


def _split(builder: ir.IRBuilder, block: Block) -> None:
    vectors = _vectors(builder, block.key)
    _, width, parts, wanted, _ = block.key
    whole = builder.sub(block.cols, constant(vectors.count))

    def pixels(col: ir.Value, shift: int) -> None:
        # The last loads end with the last wanted channel: memory beyond it may not be ours.
        source = _address(builder, block.src, col, parts * width)
        starts = [part * vectors.nbytes - shift * width for part in range(parts)]
        loaded = [vectors.load(source, start) for start in starts]
        out = _address(builder, block.out, col, width)
        for channel in vectors.split(loaded, shift, wanted):
            vectors.store(channel, out)
            out = builder.add(out, block.rows_out)

    with _loop(builder, whole, vectors.count) as col:
        pixels(col, 0)
    pixels(whole, parts - wanted)


def _merge(builder: ir.IRBuilder, block: Block) -> None:
    vectors = _vectors(builder, block.key)
    with _tiles(builder, block.cols, vectors.count) as col:
        source = _address(builder, block.src, col, block.key.width)
        loaded = []
        for _ in range(block.key.parts):
            loaded.append(vectors.load(source))
            source = builder.add(source, block.part_src)
        out = _address(builder, block.out, col, block.key.width * block.key.parts)
        for part, pixels in enumerate(vectors.merge(loaded)):
            vectors.store(pixels, out, part * vectors.nbytes)


def _reverse(builder: ir.IRBuilder, block: Block) -> None:
    vectors, width = _vectors(builder, block.key), block.key.width
    with _rows(builder, block) as (out, src), _tiles(builder, block.cols, vectors.count) as col:
        value = vectors.load(_address(builder, src, col, -width), width - vectors.nbytes)
        vectors.store(vectors.reverse(value), _address(builder, out, col, width))


def _fill(builder: ir.IRBuilder, block: Block) -> None:
    vectors = _vectors(builder, block.key)
    with _rows(builder, block) as (out, src):
        item = Vectors(builder, block.key.width, 1).load(src)
        value = vectors.shuffle(item, item, [0] * vectors.count)
        with _tiles(builder, block.cols, vectors.count) as col:
            vectors.store(value, _address(builder, out, col, block.key.width))


def _items(builder: ir.IRBuilder, block: Block) -> None:
    with _rows(builder, block) as (out, src), _loop(builder, block.cols) as col:
        to = _address(builder, out, col, block.cols_out)
        source = _address(builder, src, col, block.cols_src)
        if block.key.width:
            _move(builder, to, source, block.key.width)
        else:
            emit_run(builder, to, source, block.item)


def _runs(builder: ir.IRBuilder, block: Block) -> None:
    with _rows(builder, block) as (to, source):
        streamed = builder.icmp_signed("!=", block.stream, constant(0))
        with builder.if_else(streamed, likely=True) as (then, otherwise):
            with then:
                emit_stream(builder, to, source, block.cols, block.key.vector)
            with otherwise:
                emit_run(builder, to, source, block.cols)


def _vectors(builder: ir.IRBuilder, key: Key) -> Vectors:
    return Vectors(builder, key.width, key.vector // key.width)


def _move(
    builder: ir.IRBuilder, dst: ir.Value, src: ir.Value, nbytes: int, *then: ir.Value
) -> None:
    """Emit a move of `nbytes` bytes, and another at each offset of `then`: loads before stores."""
    whole = 1 << (nbytes.bit_length() - 1)
    offsets = [constant(0), *then]
    if whole != nbytes:  # two moves that overlap
        offsets += [builder.add(at, constant(nbytes - whole)) for at in offsets]
    # A vector has one load and one store, while i128 may have two of each.
    vectors = Vectors(builder, min(whole, 8), max(whole // 8, 1))
    values = [vectors.load(builder.add(src, at)) for at in offsets]
    for at, value in zip(offsets, values, strict=True):
        vectors.store(value, builder.add(dst, at))


def emit_run(builder: ir.IRBuilder, dst: ir.Value, src: ir.Value, nbytes: ir.Value) -> None:
    """Emit a move of any number of bytes: memcpy beyond 64, else two moves that may overlap."""
    many = builder.icmp_signed(">", nbytes, constant(64))
    with builder.if_else(many, likely=True) as (then, otherwise):
        with then:
            to, source = (builder.inttoptr(at, _BYTE.as_pointer()) for at in (dst, src))
            cgutils.raw_memcpy(builder, to, source, nbytes, 1)
        with otherwise:
            _few(builder, dst, src, nbytes, 32)


def _few(builder: ir.IRBuilder, dst: ir.Value, src: ir.Value, nbytes: ir.Value, width: int) -> None:
    """Emit a move of 1 to ``2 * width`` bytes as two moves of the widest kind that fits."""
    if width == 1:
        with builder.if_then(builder.icmp_signed(">", nbytes, constant(0))):
            _move(builder, dst, src, 1, builder.sub(nbytes, constant(1)))
        return
    with builder.if_else(builder.icmp_signed(">=", nbytes, constant(width))) as (then, otherwise):
        with then:
            _move(builder, dst, src, width, builder.sub(nbytes, constant(width)))
        with otherwise:
            _few(builder, dst, src, nbytes, width // 2)


def emit_stream(
    builder: ir.IRBuilder, dst: ir.Value, src: ir.Value, nbytes: ir.Value, vector: int
) -> None:
    """Emit a move of any number of bytes that writes whole lines past the cache.

    Ordinary stores write incomplete first and last lines.
    """
    head = builder.and_(builder.neg(dst), constant(_LINE - 1))
    short = builder.icmp_signed(">", head, nbytes)
    head = builder.select(short, nbytes, head)
    emit_part(builder, dst, src, head)
    dst, src = builder.add(dst, head), builder.add(src, head)
    left = builder.sub(nbytes, head)
    lines = builder.and_(left, constant(-_LINE))
    emit_lines(builder, dst, src, lines, vector)
    dst, src = builder.add(dst, lines), builder.add(src, lines)
    emit_part(builder, dst, src, builder.sub(left, lines))


def emit_lines(
    builder: ir.IRBuilder,
    dst: ir.Value,
    src: ir.Value,
    nbytes: ir.Value,
    vector: int,
    past: bool = True,
) -> None:
    """Emit a move of whole lines, `past` the cache; `dst` and `nbytes` are multiples of a line."""
    vectors = Vectors(builder, 1, vector)
    store = vectors.stream if past else vectors.store
    with _loop(builder, nbytes, _LINE) as at:
        source, to = builder.add(src, at), builder.add(dst, at)
        values = [vectors.load(source, part) for part in range(0, _LINE, vector)]
        for part, value in zip(range(0, _LINE, vector), values, strict=True):
            store(value, to, part)


def emit_part(builder: ir.IRBuilder, dst: ir.Value, src: ir.Value, nbytes: ir.Value) -> None:
    """Emit a move of less than a line, as a call, which keeps the loops around it small."""
    name = "arraybridge_part"
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(ir.VoidType(), [INT] * 3)
        function = ir.Function(builder.module, kind, name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        inside = ir.IRBuilder(function.append_basic_block())
        out, source, count = function.args
        with inside.if_then(inside.icmp_signed("!=", count, constant(0))):
            _few(inside, out, source, count, 32)
        inside.ret_void()
    builder.call(function, (dst, src, nbytes))


#: The functions that append an inner kernel to a builder, by kind.
EMIT = {
    "tile": _tile, "split": _split, "merge": _merge, "reverse": _reverse, "fill": _fill,
    "items": _items, "runs": _runs,
}  # fmt: skip


def inner_code(key: Key) -> tuple[str, str]:
    """Return an inner kernel as LLVM IR, a module without a target, and its function's name."""
    module = ir.Module()
    name = "_".join(map(str, ("arraybridge", *key)))
    function = ir.Function(module, INNER, name)
    builder = ir.IRBuilder(function.append_basic_block())
    words = *function.args, key
    EMIT[key.kind](builder, Block(*words))
    builder.ret_void()
    return str(module), name
