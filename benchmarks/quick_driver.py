"""The stub of a CUDA driver, with launches in compiled code that return at once: for timing."""

from __future__ import annotations

from functools import cache

from numba import cfunc, types

from tests.support.stub_driver import Stub

__all__ = ["QuickStub"]

_CONTEXT, _WORD = types.CPointer(types.int64), types.int64


@cache
def _quick() -> dict[str, object]:
    """The functions that a launch calls: device 0's context is current, and nothing happens."""

    @cfunc(types.int32(_CONTEXT))
    def current(context):
        context[0] = 4096
        return 0

    @cfunc(types.int32(_WORD, _CONTEXT))
    def of_stream(stream, context):
        context[0] = 4096
        return 0

    @cfunc(types.int32(_WORD, _WORD))
    def nothing(first, second):  # it gets more arguments than it reads
        return 0

    names = ("cuEventRecord", "cuStreamWaitEvent", "cuMemcpyDtoDAsync", "cuLaunchKernel")
    return {"cuCtxGetCurrent": current, "cuStreamGetCtx": of_stream} | dict.fromkeys(names, nothing)


class QuickStub(Stub):
    """A stub whose launches return at once, for timing: they are not recorded."""

    def __init__(self, *capabilities: tuple[int, int]) -> None:
        super().__init__(*capabilities)
        self.stack.append(self.context(0))

    def lookup(self, symbol: str) -> int:
        quick = _quick().get(symbol.partition("_v")[0])
        return quick.address if quick is not None else super().lookup(symbol)
