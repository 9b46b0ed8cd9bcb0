"""The stored machine code: what LLVM makes of their IR, and no compiler needed."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import llvmlite
import pytest

from arraybridge.machine_code import arrow, blocks, offered, release, stored

from . import emit
from .support.processes import python


@pytest.mark.skipif(
    llvmlite.__version__ != stored.VERSION, reason="another LLVM may choose other code"
)
def test_the_stored_code_is_that_of_the_ir():
    assert emit.text() == Path(stored.__file__).read_text(), "changed: run python -m tests.emit"


@pytest.mark.parametrize("machine", emit.TRIPLES)
def test_code_for_every_machine_holds_every_function(machine):
    made = emit.emitted(emit.TRIPLES[machine])
    entries = {*release.ENTRIES, *blocks.ENTRIES, *offered.ENTRIES, *arrow.ENTRIES, "contiguous"}
    entries |= {"enqueue", "launch"}
    assert made.keys() == stored.CODE[machine].keys() == entries


WORK = """
import gc, sys, weakref
import numpy as np
from arraybridge import dlpack
from tests.support.exporters import Exported, Owner
for versioned in (True, False):
    owner = Owner()
    alive = weakref.ref(owner)
    tensor = dlpack.from_capsule(dlpack.to_capsule(owner.tensor, versioned=versioned))
    array = np.from_dlpack(Exported(tensor, versioned))
    capsule = dlpack.to_capsule(tensor, versioned=versioned)
    del owner, tensor, capsule
    assert array.tolist() == [1, 2, 3, 4] and alive() is not None
    del array
    gc.collect()
    assert alive() is None
"""


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in stored.CODE,
    reason="compiled by llvmlite on this machine",
)
def test_no_compiler_is_needed():
    script = "import sys\nsys.modules['llvmlite'] = sys.modules['numba'] = None\n"
    python(script + WORK, flags=("-X", "faulthandler"))


def test_copies_without_machine_code():
    python(
        """
import sys
import numpy as np
import arraybridge as ab
array = np.arange(301 * 577, dtype="f4").reshape(301, 577)
assert (ab.contiguous(array.T) == array.T).all()
from arraybridge.kernels.cpu import flat, loader
flat.PARTED = 0
assert (ab.contiguous(array, out=np.zeros_like(array)) == array).all()
assert "NO_KERNELS" in loader.unavailable() and "llvmlite" not in sys.modules
""",
        env={"ARRAYBRIDGE_NO_KERNELS": "1"},
    )


def test_compiled_elsewhere():
    """As on a machine that the package has no code for."""
    script = "from arraybridge.machine_code import stored\nstored.CODE.clear()\n"
    loaded = "\nassert 'llvmlite' in sys.modules and 'numba' not in sys.modules\n"
    python(script + WORK + loaded, flags=("-X", "faulthandler"))
