"""``python -m arraybridge audit``: programs that import libraries end and print as without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.optional import needs
from tests.support.processes import run_python

LIGHT = ("torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict", "dask")
HEAVY = ("tensorflow", "paddle", "mlx", "warp", "dpnp", "openvino", "onnxruntime")
OWN_FRAME = re.compile(r' +File "[^"]*/arraybridge/[^"]*", line \d+, in .*\n(?: {4}.*\n)*')


def run(program: Path, *command: str) -> tuple[int, str, str]:
    done = run_python(*command, str(program), env={"TF_CPP_MIN_LOG_LEVEL": "3"})
    error, _, report = done.stderr.partition("\ncopies in ")
    if command:
        assert report
    # Addresses and other long numbers differ between processes, as do our functions in a traceback:
    # under an audit Python's run rather than those in C.
    error = OWN_FRAME.sub("", error.rstrip("\n"))
    out, error = (re.sub(r"0x[0-9a-f]+|\d{6,}", "", x) for x in (done.stdout, error))
    return done.returncode, out, error


def same(tmp_path: Path, text: str, *, status: int = 0) -> None:
    """Run a program without an audit and with one, as the command line has it by default."""
    program = tmp_path / "program.py"
    program.write_text(text)
    plain = run(program)
    assert plain[0] == status, plain
    assert run(program, "-m", "arraybridge", "audit") == plain


#: A library is first named to arraybridge, which imports it; then all is as ever.
NAMED = """
import sys, traceback
import numpy as np
import arraybridge as ab
x = np.arange(12, dtype="f4").reshape(3, 4)
for name in sys.argv[1:] or {names!r}:
    assert name not in sys.modules
    for given in (x, x[:, ::-1], x.T):
        try:
            made = ab.convert(given, name)
            print(type(made), made.shape, np.asarray(ab.convert(made, "numpy")).tolist())
        except ab.ConversionError:
            traceback.print_exc()
    try:
        print(ab.explain(x, name))
    except Exception as error:  # Dask has a route for each block
        print(error)
"""


@needs(*LIGHT)
def test_libraries_that_are_first_named_to_arraybridge(tmp_path: Path) -> None:
    same(tmp_path, NAMED.format(names=LIGHT))


@pytest.mark.heavy
@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in HEAVY])
def test_a_heavy_library_that_is_first_named_to_arraybridge(name: str, tmp_path: Path) -> None:
    same(tmp_path, NAMED.format(names=(name,)))


@needs("torch", "jax")
def test_every_way_to_import(tmp_path: Path) -> None:
    """Import inside functions, under ``try``, by threads; submodules, names, errors."""
    # Not in the program's own folder, of which Python 3.15's ImportError says more than under -m.
    (tmp_path / "others" / "cupy").mkdir(parents=True)
    (tmp_path / "others" / "cupy" / "__init__.py").write_text(
        "import warnings\nwarnings.warn('of cupy', stacklevel=2)\n"
        "def array(x): return x\nfrom cupy import absent\n"
    )
    same(
        tmp_path,
        """
import importlib.util, os, sys, threading, traceback, warnings
warnings.simplefilter("always")
sys.path.insert(1, os.path.join(os.path.dirname(__file__), "others"))
first = importlib.util.find_spec("torch")
print(first == importlib.util.find_spec("torch"))
for _ in range(2):
    try:
        import cupy
    except ImportError:
        traceback.print_exc()
try:
    from cupy import array
except ImportError as error:
    print(error, "cupy" in sys.modules)
import arraybridge as ab
import numpy as np

def inside():
    import torch  # torch.utils.data beside it is a deadlock of the import system itself
    from torch import Tensor, from_numpy as made
    return Tensor, made(np.ones(3)), torch.__name__

found = []
def thread(name):
    try:
        found.append((name, type(ab.convert(np.ones(3, "f4"), name)).__name__))
    except BaseException:
        traceback.print_exc()

threads = [threading.Thread(target=thread, args=(name,)) for name in ("torch", "jax") * 3]
threads.append(threading.Thread(target=lambda: print(inside())))
[each.start() for each in threads]
[each.join() for each in threads]
print(sorted(found))
import torch.utils.data
print(torch.__spec__ == first, vars(torch.__loader__))
try:
    import torch.absent
except ImportError as error:
    print(error)
try:
    from torch import absent
except ImportError as error:
    print(error)
raise SystemExit(3)
""",
        status=3,
    )


@needs("torch")
def test_warnings_and_tracebacks_name_the_lines_of_the_program(tmp_path: Path) -> None:
    same(
        tmp_path,
        """
import traceback, warnings
import numpy as np, torch, arraybridge as ab
warnings.simplefilter("always")
fixed = np.zeros(3)
fixed.flags.writeable = False
torch.from_numpy(fixed)
torch.tensor(torch.ones(3))

class Old:
    def __array__(self, dtype=None):
        return np.zeros(3)

np.array(Old(), copy=True)

def ragged():
    return np.asarray([[1], [1, 2]])

for wrong in (
    ragged,
    lambda: torch.from_numpy("text"),
    lambda: np.require(fixed, requirements="?"),
    lambda: torch.ones(3).to("nowhere"),
):
    try:
        wrong()
    except Exception:
        traceback.print_exc()

class Mine:  # functions of C code are no methods of a class that has them
    first, second, third = np.asarray, staticmethod(torch.tensor), np.array

print(Mine().first([1, 2]), Mine().second([1]), Mine.third([3]))
ab.convert(np.array(["text"]), "numpy", copy=True)
""",
        status=1,
    )


def test_what_the_program_replaces_stays(tmp_path: Path) -> None:
    """A function that it replaces, a library that it imports again."""
    same(
        tmp_path,
        """
import atexit, importlib
import numpy as np

def own(x):
    return "own"

np.asarray, before = own, np.asarray
print(np.asarray(3), before([3]))
import arraybridge as ab
with ab.audit(libraries=True):
    np.require, required = own, np.require
print(np.require(1), required(np.ones(1)))
import array_api_strict
print(importlib.reload(array_api_strict) is array_api_strict)
""",
    )


def test_a_library_of_a_users_own(tmp_path: Path) -> None:
    """It is registered before it is imported, and a part of it is imported later still."""
    package = tmp_path / "table_library"
    package.mkdir()
    (package / "__init__.py").write_text("def take(x): return x\n")
    (package / "late.py").write_text("def copied(x): return x.copy()\n")
    program = tmp_path / "program.py"
    program.write_text(
        """
import numpy as np
import arraybridge as ab
class Table(ab.Library):
    name = "table"
    accepts = ab.Accepts(library="table", tested="1", dtypes=frozenset())
    def owns(self, array_type):
        return False
    watched = ("table_library.take", "table_library.late.copied", "table_library.absent", "odd")
ab.register_library(Table())
import table_library
table_library.take(np.ones(2))
import table_library.late
table_library.late.copied(np.ones(2))
"""
    )
    done = run_python("-m", "arraybridge", "audit", "program.py", cwd=tmp_path, check=True)
    assert "table_library.take takes it as it is" in done.stderr
    assert "table_library.late.copied copies whatever it is given" in done.stderr


def test_an_audit_that_begins_while_a_thread_imports_a_library(tmp_path: Path) -> None:
    """What is half imported is left alone, and watched once it is whole."""
    (tmp_path / "cupy.py").write_text(
        """
import threading
def array(x): return x.copy()
inside = array
import hold
assert array is inside
"""
    )
    (tmp_path / "hold.py").write_text(
        "import builtins\nbuiltins.ready.set()\nassert builtins.go.wait(60)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(
        """
import builtins, sys, threading
import numpy as np
import arraybridge as ab
builtins.ready, builtins.go = threading.Event(), threading.Event()
thread = threading.Thread(target=__import__, args=("cupy",))
thread.start()
assert builtins.ready.wait(60)
with ab.audit(libraries=True) as log:
    assert type(sys.modules["cupy"].array).__name__ == "function"
    builtins.go.set()
    thread.join()
    import colorsys, cupy
    cupy.array(np.ones(3))
print([record.call for record in log], type(cupy.array).__name__)
"""
    )
    code, out, error = run(program)
    assert (code, out, error) == (0, "['cupy.array'] function\n", "")
