"""The stub of a CUDA driver, with launches in machine code that return at once: for timing."""

from __future__ import annotations

import re

from arraybridge.machine_code import linker
from tests.support.stub_driver import Stub

__all__ = ["QuickStub"]

#: What a launch calls, as machine code: device 0's context is current, and nothing is done.
QUICK = """
define i32 @cuCtxGetCurrent(ptr %context) {
  store ptr inttoptr (i64 4096 to ptr), ptr %context
  ret i32 0
}
define i32 @cuStreamGetCtx(ptr %stream, ptr %context) {
  store ptr inttoptr (i64 4096 to ptr), ptr %context
  ret i32 0
}
define i32 @cuEventRecord(ptr %event, ptr %stream) {
  ret i32 0
}
define i32 @cuStreamWaitEvent(ptr %stream, ptr %event, i32 %flags) {
  ret i32 0
}
define i32 @cuMemcpyDtoDAsync(i64 %dst, i64 %src, i64 %nbytes, ptr %stream) {
  ret i32 0
}
define i32 @cuLaunchKernel(ptr %f, i32 %x, i32 %y, i32 %z, i32 %tx, i32 %ty, i32 %tz, i32 %shared,
    ptr %stream, ptr %arguments, ptr %extra) {
  ret i32 0
}
"""


class QuickStub(Stub):
    """A stub whose launches return at once, for timing: they are not recorded."""

    def __init__(self, *capabilities: tuple[int, int]) -> None:
        super().__init__(*capabilities)
        names = re.findall(r"@(\w+)", QUICK)
        self.stack.append(self.context(0))
        self._quick = dict(zip(names, linker.linked(linker.object_of(QUICK), *names), strict=True))

    def lookup(self, symbol: str) -> int:
        return self._quick.get(symbol.partition("_v")[0]) or super().lookup(symbol)
