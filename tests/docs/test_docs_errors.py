"""docs/start/errors.md: what raises another library's message does so, and the remedy does not."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest

from tests.docs.test_docs import DOCS
from tests.support.optional import needs

OTHERS = (DOCS / "start" / "errors.md").read_text().partition("## Messages of other libraries")[2]
NAMES = """
import numpy as np, torch, jax, jax.numpy as jnp, pyarrow as pa
import arraybridge as ab
from array_api_compat import array_namespace
x, frozen = np.arange(6.0).reshape(2, 3), np.zeros(3)
frozen.flags.writeable = False
"""
#: What a row of the other libraries' messages is about: x, t, a or rows; None if it cannot run.
GIVEN = {
    "The given NumPy array is not writable": "x = frozen",
    "At least one stride in the given numpy array is negative": "x = x[::-1]",
    "Storage size calculation overflowed": None,  # kills the process before PyTorch 2.14
    "step must be greater than zero": "t = torch.arange(6)",
    "Can't call numpy() on Tensor that requires grad": "t = torch.ones(2, requires_grad=True)",
    "Can't export tensors that require gradient": "t = torch.ones(2, requires_grad=True)",
    "can't convert cuda:0 device type tensor to numpy": None,  # needs a GPU
    "Got unsupported ScalarType BFloat16": "t = torch.ones(2, dtype=torch.bfloat16)",
    "__array__ implementation doesn't accept a copy keyword": "t = torch.ones(2)",
    "Creating a tensor from a list of numpy.ndarrays is extremely slow": "rows = [x, x]",
    "Trying to resize storage that is not resizable": None,  # in worker processes
    "assignment destination is read-only": "x = jnp.zeros(3)",
    "Cannot export readonly array since signalling readonly is unsupported by DLPack": "x = frozen.astype('f4'); x.flags.writeable = False",
    "Explicitly requested dtype float64": "",
    "UNIMPLEMENTED: Only DLPack tensors with trivial (compact) striding": "t = torch.ones(4, 6)[:, ::3]",
    "Specified input which requires a copy since the source data buffer is not aligned": "x = np.frombuffer(bytearray(128), 'f4', offset=4)",
    "Needed to copy 1 chunks with 1 nulls, but zero_copy_only was True": "a = pa.array([1, None, 3])",
    "Multiple namespaces for array inputs": "t = torch.ones(2, 3, dtype=torch.float64)",
    "Segmentation fault": None,
    "module 'arraybridge' has no attribute 'convert'": None,  # of another project
}  # fmt: skip


ROWS = re.findall(r"^\| `(.*?)` \| `?(.*?)[`|].*? \| `?(.*?)[`|]", OTHERS, re.MULTILINE)


@needs("torch", "jax", "pyarrow", "array_api_compat")
@pytest.mark.parametrize(("text", "theirs", "ours"), ROWS)
def test_message_of_another_library(text, theirs, ours):
    """What the row names raises the message, or warns; what it has in its place does not."""
    given, names = GIVEN[text], dict[str, Any]()
    if given is None:
        return
    exec(NAMES, names)
    exec(given, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match=re.escape(text)):
            exec(theirs, names)
        exec(ours, names)
