"""Object code is linked without LLVM as LLVM would link it, or left to it."""

from __future__ import annotations

import ctypes
import platform
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

from arraybridge.kernels.cpu import cache, loader, strided
from arraybridge.kernels.cpu.plan import plan
from arraybridge.layout import c_strides, canonical
from arraybridge.machine_code import elf, linker
from tests.support.processes import python

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="another format"
)

IR = """
@few = private constant [4 x i64] [i64 3, i64 5, i64 7, i64 11]
declare ptr @memcpy(ptr, ptr, i64)
define i64 @pick(i64 %which) {
  %at = getelementptr [4 x i64], ptr @few, i64 0, i64 %which
  %value = load i64, ptr %at
  ret i64 %value
}
define void @both(ptr %to, ptr %from, i64 %count) {
  %done = call ptr @memcpy(ptr %to, ptr %from, i64 %count)
  %five = call i64 @pick(i64 1)
  store i64 %five, ptr %to
  ret void
}
"""


def test_constants_calls_and_functions():
    pick, both = elf.linked(linker.object_of(IR), ("pick", "both"), linker.CALLS)
    picked = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(pick)
    assert [picked(k) for k in range(4)] == [3, 5, 7, 11]
    source, to = np.arange(4), np.zeros(4, "i8")
    ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 2, ctypes.c_int64)(both)(
        to.ctypes.data, source.ctypes.data, 32
    )
    assert to.tolist() == [5, 1, 2, 3]


def test_what_is_left_to_llvm():
    code = linker.object_of(IR)
    assert elf.linked(code, ("pick", "none"), linker.CALLS) is None
    assert elf.linked(code, ("both",), frozenset()) is None
    assert elf.linked(b"MZ" + code, ("pick",), linker.CALLS) is None
    writable = IR.replace("private constant", "private global")
    assert elf.linked(linker.object_of(writable), ("pick",), linker.CALLS) is None
    near = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
    other = near.emit_object(llvm.parse_assembly(IR))
    assert elf.linked(other, ("pick",), linker.CALLS) is None
    (address,) = linker.linked(other, "pick")
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(2) == 7
    assert linker.linked(code, "none") == [0]


def test_half_a_file():
    code = linker.object_of(IR)
    assert elf.is_whole(code)
    for length in range(len(code)):
        assert not elf.is_whole(code[:length])
        assert elf.linked(code[:length], ("pick",), linker.CALLS) is None


def test_a_file_with_something_of_another_in_it():
    """It is whole or it is not: nothing is raised, whichever bytes are others."""
    code = linker.object_of(IR)
    for at in range(len(code)):
        for byte in (0, 1, 0x7F, 0xFF):
            elf.is_whole(code[:at] + bytes([byte]) + code[at + 1 :])
    assert not elf.is_whole(code.replace(b"\0", b"\xff"))
    assert not elf.is_whole(b"\0" * len(code))


@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "c16", "V3"])
def test_kernels(dtype, monkeypatch, tmp_path):
    """Loaded from the disk by `elf`, and just compiled by Numba: the same bytes."""
    rng = np.random.default_rng(0)
    itemsize = np.dtype(dtype).itemsize
    memory = rng.integers(0, 255, 300 * 301 * itemsize, np.uint8).view(dtype).reshape(300, 301)
    for number, x in enumerate((memory.T, memory[:, ::-1])):
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path / str(number)))
        form = canonical(x.shape, c_strides(x.shape, itemsize), x.strides, itemsize)
        made = plan(form)
        compiled = cache.compiled("nest", *made.kernel)
        kept = cache.kept("nest", *made.kernel)
        assert not compiled.cached
        assert kept.cached
        for kernel in (compiled, kept):
            monkeypatch.setitem(loader._kernels, ("nest", *made.kernel), kernel)
            out = np.zeros(x.shape, dtype)
            assert strided.copy(
                out.ctypes.data + form.dst_offset, x.ctypes.data + form.src_offset, made
            )
            assert out.tobytes() == x.tobytes()


def test_a_later_process_needs_no_compiler(tmp_path):
    code = """
import sys
import numpy as np, arraybridge as ab
x = np.arange(9_000_000, dtype="f4").reshape(3000, 3000)
assert (ab.contiguous(x.T) == x.T).all()
assert (ab.contiguous(x, out=np.empty_like(x)) == x).all()
"""
    where = {"ARRAYBRIDGE_CACHE_DIR": str(tmp_path)}
    python(code, env=where)
    python(code + "assert not {'numba', 'llvmlite'} & set(sys.modules)", env=where)
