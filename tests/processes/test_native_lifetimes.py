"""What native code refers to lives as long as that code does, whatever Python runs meanwhile."""

import gc

import numpy as np

from arraybridge.array import from_dlpack
from tests.support.optional import optional
from tests.support.processes import python

torch = optional("torch")

# Objects of `sys` die when the modules are gone, and with them whatever these hold.
LATE = """
import os, sys
import numpy as np
import arraybridge as ab
from arraybridge.xp import numpy as xp

strided, array = np.arange(600.0)[::2], xp.asarray(np.arange(6.0))
ab.contiguous(strided), np.from_dlpack(array), np.from_dlpack(array)

class Late:
    def __init__(self):
        self.calls = [
            lambda call=ab.contiguous: call(strided),
            lambda call=ab.contiguous: call([1, 2]),
            lambda call=ab.contiguous: call(strided, out=strided),
            lambda call=np.from_dlpack: call(array),
            lambda call=type(array).__dlpack__: call(array),
            lambda call=type(array).__dlpack__: call(array, max_version=(1, 0), copy=True),
            lambda call=array.__dlpack__: repr(call) + call.__doc__,
        ]
        self.strided, self.array, self.write = strided, array, os.write

    def __del__(self):
        strided, array = self.strided, self.array
        for call in self.calls:
            reused = [bytes(size) for size in range(3000)]
            try:
                call()
            except Exception:  # Python functions find their modules empty
                pass
        self.write(1, b"ended")

sys.late = Late()
"""


def test_calls_when_the_modules_are_gone():
    env = {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"}
    assert python(LATE, env=env).endswith("ended")


def test_an_export_whose_array_is_exported_anew_in_between():
    x = from_dlpack(torch.arange(6.0))
    from torch.overrides import TorchFunctionMode

    exported, other = x._native, torch.arange(3.0)

    class Swaps(TorchFunctionMode):
        """Runs in `requires_grad`, which the native code asks."""

        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function.__name__ == "__get__" and x._native is exported:
                x._native = other
                for _ in range(3):  # another one is kept, and the words of this are freed
                    np.from_dlpack(x)
                x._native = exported
                gc.collect()
                self.reused = [b"\xa5" * size for size in range(2000)]
            return function(*args, **(kwargs or {}))

    expected = exported.numpy()
    gc.collect()
    gc.freeze()  # else each of 200 collections walks the millions of objects of earlier tests
    for _ in range(200):
        np.from_dlpack(x)
        with Swaps():
            assert np.array_equal(np.from_dlpack(x), expected)


def test_an_export_is_not_of_memory_that_a_lazy_clone_shows():
    x = torch.arange(4.0)
    array = from_dlpack(x)
    for _ in range(3):
        np.from_dlpack(array)
    clone = torch._lazy_clone(x)
    np.from_dlpack(array)[0] = 9
    assert x.tolist() == [9, 1, 2, 3]
    assert clone.tolist() == [0, 1, 2, 3]
