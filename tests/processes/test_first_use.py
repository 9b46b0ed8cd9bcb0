"""What the first use of a process does not load: it is left until something needs it."""

import json
from importlib.util import find_spec

from arraybridge.kernels.cpu import SMALL
from tests.support.processes import python

COMPILERS = "^(numba|llvmlite)$"
# What is done in a fresh process, and what it does not load.
NOT_LOADED = {
    "a name": ("ab.convert", r"^arraybridge\.(auditing|signatures|xp)$"),
    "a view": (
        """
ab.convert(x, "numpy", copy=False)
assert np.shares_memory(ab.convert(memoryview(x), "numpy"), x)
assert ab.explain(x, "numpy", device="cpu").kind == "view"
""",
        r"^arraybridge\.kernels\.cpu\.|transfer",
    ),
    "a copy": (
        "ab.convert(x[::-1], 'numpy'), ab.inspect(x), ab.contiguous(np.ones((3, 4)).T)",
        "^(torch|jax|numba|llvmlite)$",
    ),
    "a large copy": ("ab.contiguous(np.ones((999, 999)).T)", "^(numba|llvmlite|hashlib)$"),
    "the largest small copies": (
        f"""
x = np.ones((2, {SMALL} // 8), "f4")[:, ::-1][:, :{SMALL} // 8]
ab.contiguous(x), ab.contiguous(x, out=np.empty_like(x)), ab.copyto(np.empty_like(x), x)
""",
        COMPILERS,
    ),
    "an Array of NumPy": (
        """
a = ab.from_dlpack(x)
a += (a + a * 2)[1:2]
np.from_dlpack(a), np.asarray(a), a.shape, a.dtype, a.device, repr(a)
""",
        r"array_api_compat|^numpy\.f2py$",
    ),
    "a namespace": ("assert ab.xp.numpy.sum(ab.xp.numpy.ones(3)) == 3", "^(torch|jax)$"),
    "a plan": (
        """
from arraybridge.kernels.cpu import plan
from arraybridge.layout import canonical
plan.plan(canonical((99, 99), (396, 4), (4, 396), 4)).record(0)
""",
        COMPILERS,
    ),
    "a plan for CUDA, without a driver": (
        """
import ctypes
ctypes.CDLL = None
from arraybridge.layout import canonical
from arraybridge.kernels.cuda import family, plan
for item in 1, 2, 4, 8, 16:
    form = canonical((999, 999), (999 * item, item), (item, 999 * item), item)
    assert plan.plan(form, 0, 0)[0].kernel in family.FAMILY
""",
        "^(numba|llvmlite|numba_cuda|cuda)$",
    ),
}


#: Each case in a child of one process, which has imported arraybridge but not used it.
EACH_IN_A_CHILD = """
import json, os, sys, numpy as np, arraybridge as ab
x = np.arange(6.0)
for code in json.loads(sys.argv[1]):
    print(end="", flush=True)
    if not os.fork():
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    assert os.wait()[1] == 0, code
"""


def each(codes: list[str]) -> list[str]:
    """What is printed by the first use of a process, a line each."""
    return python(EACH_IN_A_CHILD, json.dumps(codes), flags=("-W", "ignore")).splitlines()


def test_does_not_load():
    codes = [
        f"{code}\nimport re; print([name for name in sys.modules if re.search({names!r}, name)])"
        for code, names in NOT_LOADED.values()
    ]
    assert dict(zip(NOT_LOADED, each(codes), strict=True)) == dict.fromkeys(NOT_LOADED, "[]")


def test_a_view_loads_27_modules_at_most():
    code = r"""{}
print(sum(re.match(r"arraybridge(?!\._native)", name) is not None for name in sys.modules))"""
    views = (
        ("torch", "ab.convert(np.ones(3), 'torch')"),
        ("torch", "ab.convert(torch.ones(3), 'numpy')"),
        ("jax", "ab.convert(jax.numpy.ones(3), 'numpy')"),
    )
    found = [f"import {name}, re; {view}" for name, view in views if find_spec(name)]
    assert all(int(said) <= 27 for said in each([code.format(view) for view in found]))


def test_whatever_opens_the_namespace_first():
    code = """
a = ab.from_dlpack(x)
print(float({}))
xp = ab.namespace(a)
assert xp is ab.xp.numpy is sys.modules["arraybridge.xp.numpy"] is type(a)._namespace
assert xp.native is type(a)._native_namespace is ab.namespace(x) and xp.__doc__
"""
    uses = (
        "a.__array_namespace__().sum(a)",
        "ab.namespace(a).sum(a)",
        "ab.xp.numpy.sum(a)",
        "__import__('arraybridge.xp.numpy').xp.numpy.sum(a)",
        "type('Mine', (type(a),), {'__slots__': ()})._of(x)._namespace.sum(a)",
    )
    assert each([code.format(use) for use in uses]) == ["15.0"] * len(uses)


def test_what_is_not_numpys_own():
    """A corrected operator, an integer beyond the dtype, attributes that are functions."""
    code = "a = ab.from_dlpack(np.array([np.inf]))\nprint(np.asarray({}).tolist())"
    uses = {
        "a // 0": "[inf]",  # NumPy's own is NaN where the standard has infinity
        "5 // a": "[0.0]",
        "a > 2**70": "[True]",
        "a[:, None].T": "[[inf]]",
        "float('inf') in a": "True",
    }
    assert each([code.format(use) for use in uses]) == list(uses.values())


def test_threads_open_one_namespace():
    code = """
import threading
a, found = ab.from_dlpack(x), []
start = threading.Barrier(4)
def open_it():
    start.wait()
    found.append(ab.namespace(a))
    found[-1].fft.fft(a), a // 2, found[-1].float32
threads = [threading.Thread(target=open_it) for _ in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(len(found), len(set(map(id, found))))
"""
    assert each([code]) == ["4 1"]
