"""`import arraybridge` costs NumPy and little else (contract 8), proven in a fresh process."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.processes import ROOT, python, run_python

PROBE = """\
import json, sys
import numpy
before = set(sys.modules)
import arraybridge
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_loads_nothing_beside_itself_and_numpy() -> None:
    """No other package, no library's file, no kernel, no slow part of the standard library."""
    done = run_python("-W", "error", "-c", PROBE, check=True, cwd=ROOT.parent)
    loaded = set(json.loads(done.stdout))
    assert {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names == {"arraybridge"}
    lazy = ("arraybridge.libraries.", "arraybridge.kernels", "arraybridge.cli")
    assert [name for name in loaded if name.startswith(lazy)] == []
    # Each costs milliseconds, and `import numpy` is about 60.
    slow = {"asyncio", "email", "importlib.metadata", "inspect", "multiprocessing", "subprocess"}
    assert not slow & loaded


def test_dir_lists_the_public_names():
    import arraybridge as ab

    public = {*ab.__all__, "auditing", "sharding", "tree"} - {"__version__"}
    assert {name for name in dir(ab) if not name.startswith("__")} == public
    assert "__version__" in dir(ab)


def test_what_is_left_of_an_interrupted_import_disturbs_nobody_else():
    pytest.importorskip("jax")
    said = python(
        """
import jax, numpy as np
import arraybridge as ab
del jax.core  # missing after an interrupted import is repeated
try:
    ab.convert(np.ones(3, "f4"), "jax")
except AttributeError:
    print("JAX's own")
print(ab.contiguous(np.ones((300, 300)).T).sum(), ab.convert(np.ones(3), "tvm_ffi").shape)
""",
        env={"JAX_PLATFORMS": "cpu"},
    )
    assert said == "JAX's own\n90000.0 (3,)\n"


def test_an_import_is_a_guest_in_the_process():
    """The process is not changed: hooks, handlers, threads, other packages' functions."""
    python(
        """
import atexit, builtins, faulthandler, gc, importlib, os, signal, sys, threading, warnings
import concurrent.futures.thread, logging, multiprocessing.util
import numpy as np

forks, register = [], os.register_at_fork
os.register_at_fork = lambda **hooks: (forks.extend(hooks), register(**hooks))

def state():
    functions = [
        (module, name, value)
        for module in ("builtins", "importlib", "logging", "numpy", "os", "sys", "threading")
        for name, value in vars(sys.modules[module]).items()
        if callable(value) or isinstance(value, (list, str, int))
        if name not in ("last_exc", "__warningregistry__")
        and getattr(value, "__name__", "") != "__getattr__"
    ]
    return (
        [*sys.meta_path], [*sys.path_hooks], atexit._ncallbacks(), [*gc.callbacks],
        [signal.getsignal(number) for number in signal.valid_signals()],
        [*warnings.filters], threading.active_count(), len(os.listdir("/proc/self/task")),
        sys.gettrace(), sys.getprofile(), sys.getswitchinterval(), faulthandler.is_enabled(),
        os.environ.copy(), logging.getLogger().handlers[:], functions,
    )

before = state()
import arraybridge as ab
import arraybridge.xp.numpy, arraybridge.dlpack
x = np.arange(12.0).reshape(3, 4)
ab.convert(x[::-1], "numpy", copy=True), ab.contiguous(x.T), ab.explain(x, "numpy")
np.from_dlpack(ab.from_dlpack(x))
with ab.audit() as log:
    assert state()[0] == before[0]  # of sys.meta_path, while it is on, too
    import colorsys
    ab.contiguous(x.T)
assert log.copies == 1, log
after = state()
for one, other in zip(before[:-1], after[:-1]):
    assert one == other, (one, other)
known = {(module, name) for module, name, _ in before[-1]}
changed = [item for item in after[-1] if item[:2] in known and item not in before[-1]]
assert not changed, changed
import arraybridge.kernels.cpu.loader, arraybridge.kernels.cuda.driver, arraybridge.native.blocks
assert set(forks) == {"after_in_child"}, forks  # nothing runs before a fork, or in the parent
""",
        flags=(),
    )
