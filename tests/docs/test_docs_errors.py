"""docs/start/errors.md has every message of arraybridge, as arraybridge words it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import arraybridge as ab
from tests.docs.test_docs import DOCS
from tests.docs.test_remedies import ROWS, UNWRITABLE, refusal
from tests.support.optional import installed, needs

PAGE = DOCS / "start" / "errors.md"
PACKAGE = Path(ab.__file__).parent
OWN, _, OTHERS = PAGE.read_text().partition("## Messages of other libraries")
ENTRIES = re.findall(r"^- ((?:`[^`]+`(?:, )?)+): ", OWN, re.MULTILINE)
LIBRARIES_OWN = OWN.partition("## The library's own error")[2].replace("\n", " ")


def pattern(text: str) -> re.Pattern[str]:
    """The beginning of a message, in which ... is any text."""
    return re.compile(".+".join(map(re.escape, text.split("..."))), re.DOTALL)


KNOWN = {
    text: pattern(text)
    for entry in [*ENTRIES, LIBRARIES_OWN]
    for text in re.findall(r"`(.+?)`", entry)
}


def is_known(message: str) -> bool:
    return any(known.match(message) for known in KNOWN.values())


#: A library that is not installed: CuPy is, beside the newest versions of the others.
ABSENT = next((name for name in ("cupy", "dpnp", "mlx") if not installed(name)), "")
NAMES = """
import numpy as np, torch, jax, jax.numpy as jnp, pyarrow as pa, dask.array as da
import arraybridge as ab
from array_api_compat import array_namespace
x, frozen = np.arange(6.0).reshape(2, 3), np.zeros(3)
frozen.flags.writeable = False
elsewhere = ab.from_pointer(0x7F0000000000, (2, 3), "float32", device="cuda:0")
resized, capsule, audit = torch.ones(12), x.__dlpack__(), ab.audit(copies="forbid")
resized.untyped_storage().resize_(0)
ab.dlpack.from_capsule(capsule)
"""
#: Code that raises a message: those that are put together from parts.
RAISED = {
    "copy=False, but ...": "ab.convert(x[:, ::-1], 'torch', copy=False)",
    "copies='forbid', but ...": "audit.__enter__() and ab.convert(x[:, ::-1], 'torch')",
    "the array is on ..., which ... cannot address": "ab.convert(elsewhere, 'numpy')",
    "... has no arrays on ...": "ab.convert(x, 'numpy', device='cuda:0')",
    "jax has no ...": "ab.convert(x, 'jax')",
    "... has no ...: ...": "ab.convert(x > 1, 'pyarrow')",
    "... has no DLPack type": "ab.convert(x.astype('M8[D]'), 'torch')",
    "casting='...' does not allow ...": "ab.convert(x, 'torch', dtype='int8')",
    "casting='same_value', but ...": "ab.convert(x + 300, 'torch', dtype='int8', casting='same_value')",
    "Python integer ... out of bounds for ...": "ab.from_dlpack(x.astype('u1')) * 300",
    "gradients are tracked and would be cut silently": "ab.convert(torch.ones(2, requires_grad=True), 'numpy')",
    "... has no memory...": "jax.jit(lambda a: ab.convert(a, 'numpy'))(jnp.ones(3))",
    "its storage was resized to ...": "ab.convert(resized, 'numpy')",
    "... is not dense memory": "ab.convert(torch.eye(2).to_sparse(), 'numpy')",
    "... is not an array in memory": "ab.from_dlpack(da.ones(3))",
    "... null, which no tensor holds": "ab.convert(pa.array([1, None, 3]), 'numpy')",
    "... is not a tensor dtype": "ab.convert(pa.array(['a', 'b']), 'numpy')",
    "the columns have several data types": "ab.convert(pa.table({'a': [1], 'b': [1.0]}), 'numpy')",
    "... would lose its ...": "ab.convert(np.ma.array([1.0, 2.0], mask=[0, 1]), 'torch')",
    "... cannot be written": "ab.copyto(jnp.zeros(3), np.ones(3, np.float32))",
    "dst has ..., but src has ...": "ab.copyto(x, np.ones((3, 2)))",
    "out has ..., but x has ...": "ab.contiguous(x, out=np.ones((3, 2)))",
    "the function ... pass copy=True to adapt": "ab.adapt('torch')(lambda a: a.fill_(1).sum())(frozen)",
    "arrays of several libraries (...)": "ab.namespace(x, torch.ones(2))",
    "an Array ... and a ... in one ...": "ab.from_dlpack(x) + x",
    "an arraybridge Array has no '...'": "ab.from_dlpack(x).sum()",
    "... does not take an arraybridge Array": "np.mean(ab.from_dlpack(x))",
    "... cannot be converted to ..., so nothing was converted": "ab.tree.convert({'layers': [x, 7]}, 'jax')",
    "no library '...'": "ab.convert(x, 'pytorch')",
    "... is not installed or does not load": f"ab.convert(x, '{ABSENT}')",
    "... is not an array: expected ...": "ab.convert(object(), 'torch')",
    "the capsule has the name '...': it was consumed already": "ab.dlpack.from_capsule(capsule)",
}  # fmt: skip
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
    "module 'arraybridge' has no attribute 'convert'": None,  # of another project
}  # fmt: skip


@pytest.fixture
def names():
    names: dict[str, Any] = {}
    exec(NAMES, names)
    yield names
    names["audit"].__exit__(None, None, None)


@needs("torch", "dask", "array_api_compat")
@pytest.mark.parametrize("text", RAISED)
def test_message_is_raised(text, names):
    if "''" in RAISED[text]:
        pytest.skip("every library is installed")
    with pytest.raises(Exception, match=KNOWN[text].pattern) as caught:
        eval(RAISED[text], names)
    assert KNOWN[text].match(str(caught.value))


ROWS_OF_OTHERS = re.findall(r"^\| `(.*?)` \| `?(.*?)[`|].*? \| `?(.*?)[`|]", OTHERS, re.MULTILINE)


@needs("torch", "dask", "array_api_compat")
@pytest.mark.parametrize(("text", "theirs", "ours"), ROWS_OF_OTHERS)
def test_message_of_another_library(text, theirs, ours, names):
    """What the row names raises the message, or warns; what it has in its place does not."""
    given = GIVEN[text]
    if given is None:
        return
    exec(given, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Exception, match=re.escape(text)):
            exec(theirs, names)
        exec(ours, names)


@pytest.mark.filterwarnings("ignore")
@needs("torch")
def test_each_refusal_of_the_remedies_is_on_the_page():
    messages = [refusal(make(), to) for make, to in ROWS]
    for make, _, src in UNWRITABLE.values():
        with pytest.raises(ab.ConversionError) as caught:
            ab.copyto(make(), src)
        messages.append(str(caught.value))
    assert [message for message in messages if message and not is_known(message)] == []


def wording(node: ast.expr) -> str:
    """The text of a string's expression, with X for what is put into it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(wording(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return wording(node.left) + wording(node.right)
    return "X"


def strings(of: Callable[[ast.AST], list[ast.expr]]) -> set[tuple[str, str]]:
    """(place, wording) of the strings that ``of`` finds in the package, node by node."""
    return {
        (f"{path.relative_to(PACKAGE)}:{text.lineno}", wording(text))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for text in of(node)
    }


def raised(node: ast.AST) -> list[ast.expr]:
    """The text of a ConversionError, unless it is made elsewhere (X, or X and a remedy)."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ConversionError"):
        return []
    return [text for text in node.args[:1] if re.search(r"\w{4}", wording(text).partition(":")[0])]


def anywhere(node: ast.AST) -> list[ast.expr]:
    return [node] if isinstance(node, ast.JoinedStr | ast.Constant) else []


def test_each_refusal_of_the_source_is_on_the_page():
    found = strings(raised)
    assert len(found) > 60  # or the search itself is broken
    assert sorted((place, text) for place, text in found if not is_known(text)) == []


def test_each_message_of_the_page_is_in_the_source():
    found = [text for _, text in strings(anywhere)]
    known = {text: p for text, p in KNOWN.items() if text not in RAISED}
    assert [text for text, p in known.items() if not any(p.match(each) for each in found)] == []
