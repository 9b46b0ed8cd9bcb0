"""The operations of the kernels, as Numba CUDA intrinsics.

Importing this module imports Numba. A kernel's factory gets `OPS`, or the interpreter's object with
the same names (tests/simt).

A value of 1, 2 or 4 bytes is one uint32 (zero-extended), of 8 bytes a pair of them, of 16 bytes
four. Global addresses are int64: Numba combines uint64 and int64 in float64. Offsets in shared
memory are int32, in **bytes**.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic

from arraybridge.kernels.cuda.network import network

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_GLOBAL, _SHARED = 1, 3  # LLVM's address spaces
_WIDTHS = (1, 2, 4, 8, 16)
_u32 = types.uint32
_VALUE = {1: _u32, 2: _u32, 4: _u32, 8: types.UniTuple(_u32, 2), 16: types.UniTuple(_u32, 4)}
_MEMORY = {1: _I8, 2: _I16, 4: _I32, 8: ir.VectorType(_I32, 2), 16: ir.VectorType(_I32, 4)}


def _unpacked(context: Any, builder: ir.IRBuilder, width: int, loaded: ir.Value) -> ir.Value:
    """Convert a loaded value to the form of kernels."""
    if width < 4:
        return builder.zext(loaded, _I32)
    if width == 4:
        return loaded
    parts = [builder.extract_element(loaded, ir.Constant(_I32, i)) for i in range(width // 4)]
    return context.make_tuple(builder, _VALUE[width], parts)


def _packed(builder: ir.IRBuilder, width: int, value: ir.Value) -> ir.Value:
    """Convert a value from the form of kernels to store it."""
    if width < 4:
        return builder.trunc(value, _MEMORY[width])
    if width == 4:
        return value
    packed = ir.Constant(_MEMORY[width], ir.Undefined)
    for i in range(width // 4):
        part = builder.extract_value(value, i)
        packed = builder.insert_element(packed, part, ir.Constant(_I32, i))
    return packed


def _load(width: int) -> Any:
    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, _: Any, args: Any) -> ir.Value:
            pointer = builder.inttoptr(args[0], _MEMORY[width].as_pointer(_GLOBAL))
            loaded = builder.load(pointer, align=width)
            # Source and destination never overlap, so the load may use the read-only path
            # (ld.global.nc).
            loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
            return _unpacked(context, builder, width, loaded)

        return _VALUE[width](types.int64), codegen

    return load


def _load_vector() -> Any:
    """Load 16 bytes in PTX: LLVM would narrow a vector with unused elements."""
    kind = ir.FunctionType(ir.LiteralStructType([_I32] * 4), [_I64])
    text = "ld.global.nc.v4.u32 {$0, $1, $2, $3}, [$4];"

    @intrinsic
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, _: Any, args: Any) -> ir.Value:
            asm = ir.InlineAsm(kind, text, "=r,=r,=r,=r,l", side_effect=False)
            loaded = builder.call(asm, args)
            parts = [builder.extract_value(loaded, i) for i in range(4)]
            return context.make_tuple(builder, _VALUE[16], parts)

        return _VALUE[16](types.int64), codegen

    return load


def _store(width: int) -> Any:
    @intrinsic
    def store(typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, _: Any, args: Any) -> ir.Value:
            pointer = builder.inttoptr(args[0], _MEMORY[width].as_pointer(_GLOBAL))
            builder.store(_packed(builder, width, args[1]), pointer, align=width)
            return context.get_dummy_value()

        return types.void(types.int64, _VALUE[width]), codegen

    return store


def _shared_pointer(
    context: Any, builder: ir.IRBuilder, kind: Any, array: ir.Value, offset: ir.Value, width: int
) -> ir.Value:
    data = context.make_array(kind)(context, builder, array).data
    space = data.type.addrspace
    start = builder.bitcast(data, _I8.as_pointer(space))
    return builder.bitcast(builder.gep(start, [offset]), _MEMORY[width].as_pointer(space))


def _load_shared(width: int) -> Any:
    @intrinsic
    def load(typingctx: Any, array: Any, offset: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            kind, (array, offset) = signature.args[0], args
            pointer = _shared_pointer(context, builder, kind, array, offset, width)
            return _unpacked(context, builder, width, builder.load(pointer, align=width))

        return _VALUE[width](array, types.int32), codegen

    return load


def _store_shared(width: int) -> Any:
    @intrinsic
    def store(typingctx: Any, array: Any, offset: Any, value: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            kind, (array, offset, value) = signature.args[0], args
            pointer = _shared_pointer(context, builder, kind, array, offset, width)
            builder.store(_packed(builder, width, value), pointer, align=width)
            return context.get_dummy_value()

        return types.void(array, types.int32, _VALUE[width]), codegen

    return store


def _copy_async(width: int) -> Any:
    """Copy from global to shared memory by ``cp.async``, past the registers (sm_80 and later).

    The copying thread then calls `_wait_async`, and all threads a barrier, before any reads it.
    """
    function = ir.FunctionType(ir.VoidType(), [_I32, _I64])
    text = f"cp.async.ca.shared.global [$0], [$1], {width};"

    @intrinsic
    def copy(typingctx: Any, array: Any, offset: Any, address: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
            kind, (array, offset, address) = signature.args[0], args
            pointer = _shared_pointer(context, builder, kind, array, offset, width)
            shared = builder.addrspacecast(pointer, _I8.as_pointer(_SHARED))
            asm = ir.InlineAsm(function, text, "r,l,~{memory}", side_effect=True)
            builder.call(asm, [builder.ptrtoint(shared, _I32), address])
            return context.get_dummy_value()

        return types.void(array, types.int32, types.int64), codegen

    return copy


@intrinsic
def _wait_async(typingctx: Any) -> Any:
    """Wait until this thread's `_copy_async` copies are in shared memory."""

    def codegen(context: Any, builder: ir.IRBuilder, _: Any, args: Any) -> ir.Value:
        kind = ir.FunctionType(ir.VoidType(), [])
        asm = ir.InlineAsm(kind, "cp.async.wait_all;", "~{memory}", side_effect=True)
        builder.call(asm, [])
        return context.get_dummy_value()

    return types.void(), codegen


def _call(builder: ir.IRBuilder, name: str, args: Any) -> ir.Value:
    kind = ir.FunctionType(_I32, [_I32] * len(args))
    return builder.call(builder.module.declare_intrinsic(name, fnty=kind), args)


@intrinsic
def _prmt(typingctx: Any, a: Any, b: Any, selector: Any) -> Any:
    """PRMT: byte n of the result is the byte of ``b:a`` that nibble n of the selector names."""

    def codegen(context: Any, builder: ir.IRBuilder, _: Any, args: Any) -> ir.Value:
        return _call(builder, "llvm.nvvm.prmt", args)

    return _u32(_u32, _u32, _u32), codegen


def _binary(emit: Callable[[ir.IRBuilder, Any], ir.Value]) -> Any:
    """Make an intrinsic from two uint32 to one."""

    @intrinsic
    def operation(typingctx: Any, a: Any, b: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, _: Any, args: Any) -> ir.Value:
            return emit(builder, args)

        return _u32(_u32, _u32), codegen

    return operation


def _permute(table: tuple[int, ...], words: int) -> Any:
    """Make an intrinsic from `words` uint32 to those whose bytes `table` names."""
    steps = network(table)
    source, result = types.UniTuple(_u32, words), types.UniTuple(_u32, len(steps))

    @intrinsic
    def permuted(typingctx: Any, values: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, _: Any, args: Any) -> ir.Value:
            given = [builder.extract_value(args[0], i) for i in range(words)]
            made = []
            for first, more in steps:
                value = given[first]
                for word, selector in more:
                    operands = value, given[word], ir.Constant(_I32, selector)
                    value = _call(builder, "llvm.nvvm.prmt", operands)
                made.append(value)
            return context.make_tuple(builder, result, made)

        return result(source), codegen

    return permuted


def _device(function: Callable[..., Any]) -> Any:
    """Make a device function: inlined before typing, which needs no device."""
    return cuda.jit(device=True, inline="always")(function)


#: The argument of a kernel's factory: see the module's docstring. ``ld``, ``st`` (global) and
#: ``lds``, ``sts`` (shared) have one operation per width in bytes.
OPS: Any = SimpleNamespace(
    cuda=cuda,
    i32=types.int32,
    i64=types.int64,
    u32=types.uint32,
    ld={**{width: _load(width) for width in _WIDTHS[:-1]}, 16: _load_vector()},
    st={width: _store(width) for width in _WIDTHS},
    lds={width: _load_shared(width) for width in _WIDTHS},
    sts={width: _store_shared(width) for width in _WIDTHS},
    copy_async={},
    wait_async=None,
    prmt=_prmt,
    mulhi=_binary(lambda builder, args: _call(builder, "llvm.nvvm.mulhi.ui", args)),
    shr=_binary(lambda builder, args: builder.lshr(*args)),  # logical; Numba's has 64 bits
    permute=_permute,
    device=_device,
)

#: The operations of devices that copy asynchronously, from compute capability 8.0 on.
OPS_ASYNC: Any = SimpleNamespace(
    **vars(OPS)
    | {"copy_async": {width: _copy_async(width) for width in (4, 8)}, "wait_async": _wait_async}
)
