"""The table of docs/start/coming_from.md: each row is a view, a copy or an error, as it states."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import needs
from tests.support.processes import ROOT, run_python

PAGE = ROOT / "docs" / "start" / "coming_from.md"
HEAVY = {"pandas", "paddle", "polars", "tensorflow", "warp", "xarray"}
ALIASES = {
    "array_api_compat": "compat",
    "jax.numpy": "jnp",
    "numpy": "np",
    "pandas": "pd",
    "polars": "pl",
    "pyarrow": "pa",
    "tensorflow": "tf",
    "warp": "wp",
    "xarray": "xr",
}


class Row(NamedTuple):
    """Modules, an array, the library's conversion of it, what it is; the same by arraybridge."""

    needs: str
    x: str
    own: str
    own_is: str
    ours: str
    ours_is: str


X = "np.arange(64, dtype='f4').reshape(8, 8)"
T = "torch.arange(64.0).reshape(8, 8)"
J = "jnp.arange(64.0).reshape(8, 8)"
#: By the first cell of a row that can run; "equal" compares results that are not arrays.
ROWS = {
    "torch.from_numpy(x)": [
        Row("torch", X, "torch.from_numpy(x)", "view", "ab.convert(x, 'torch')", "view"),
        Row("torch", f"{X}[::-1]", "torch.from_numpy(x)", "ValueError", "ab.convert(x, 'torch')", "copy"),
    ],
    "torch.as_tensor(x)": [
        Row("torch", X, "torch.as_tensor(x)", "view", "ab.asarray(x, like='torch')", "view"),
        Row("torch jax.numpy", J, "torch.as_tensor(x)", "view", "ab.convert(x, 'torch')", "copy"),
    ],
    "torch.tensor(x)": [
        Row("torch", X, "torch.tensor(x)", "copy", "ab.convert(x, 'torch', copy=True)", "copy"),
    ],
    "t.numpy()": [
        Row("torch", T, "x.numpy()", "view", "ab.convert(x, 'numpy')", "view"),
        Row("torch", f"{T}.bfloat16()", "x.numpy()", "TypeError", "ab.convert(x, 'numpy')", "view"),
    ],
    "torch.from_dlpack(x)": [
        Row("torch", X, "torch.from_dlpack(x)", "view", "ab.convert(x, 'torch')", "view"),
    ],
    "np.asarray(x)": [
        Row("torch", T, "np.asarray(x)", "view", "ab.convert(x, 'numpy')", "view"),
        Row("jax.numpy", J, "np.asarray(x)", "view", "ab.convert(x, 'numpy')", "view"),
    ],
    "np.from_dlpack(x)": [
        Row("torch", T, "np.from_dlpack(x)", "view", "ab.convert(x, 'numpy')", "view"),
        Row("torch", f"{T}.bfloat16()", "np.from_dlpack(x)", "RuntimeError", "ab.convert(x, 'numpy')", "view"),
    ],
    "jnp.asarray(x)": [
        Row("jax.numpy", X, "jnp.asarray(x)", "copy", "ab.convert(x, 'jax')", "copy"),
        Row("jax.numpy torch", T, "jnp.array(x)", "copy", "ab.convert(x, 'jax')", "copy"),
    ],
    "jax.dlpack.from_dlpack(x)": [
        Row("jax torch", T, "jax.dlpack.from_dlpack(x)", "view", "ab.convert(x, 'jax', copy=False)", "view"),
        Row("jax torch", f"{T}[:, 1:]", "jax.dlpack.from_dlpack(x)", "JaxRuntimeError", "ab.convert(x, 'jax')", "copy"),
        Row("jax torch", f"{T}.flatten()[1:]", "jax.dlpack.from_dlpack(x)", "copy", "ab.convert(x, 'jax', copy=False)", "ConversionError"),
    ],
    "array_namespace(x)": [
        Row("array_api_compat", X, "compat.array_namespace(x).mean(x)", "equal", "ab.namespace(x).mean(x)", "equal"),
    ],
    "device(x)": [
        Row("array_api_compat torch", T, "str(compat.device(x))", "equal", "str(ab.inspect(x).device)", "equal"),
        Row("array_api_compat torch", T, "compat.to_device(x, 'cpu')", "view", "ab.convert(x, 'torch', device='cpu')", "view"),
    ],
    "tvm_ffi.from_dlpack(x)": [
        Row("tvm_ffi torch", T, "tvm_ffi.from_dlpack(x)", "view", "ab.convert(x, 'tvm_ffi')", "view"),
    ],
    "paddle.to_tensor(x)": [
        Row("paddle", X, "paddle.to_tensor(x)", "copy", "ab.convert(x, 'paddle')", "view"),
        Row("paddle torch", T, "paddle.to_tensor(x)", "TypeError", "ab.convert(x, 'paddle')", "view"),
    ],
    "paddle.from_dlpack(x)": [
        Row("paddle torch", T, "paddle.from_dlpack(x)", "view", "ab.convert(x, 'paddle')", "view"),
    ],
    "tf.convert_to_tensor(x)": [
        Row("tensorflow", X, "tf.convert_to_tensor(x)", "copy", "ab.convert(x, 'tensorflow')", "copy"),
        Row("tensorflow torch", f"{T}.bfloat16()", "tf.convert_to_tensor(x)", "TypeError", "ab.convert(x, 'tensorflow')", "copy"),
    ],
    "tf.experimental.dlpack": [
        Row("tensorflow torch", T, "tf.experimental.dlpack.from_dlpack(x.__dlpack__())", "view", "ab.convert(x, 'tensorflow', copy=False)", "view"),
    ],
    "wp.from_numpy(x)": [
        Row("warp", X, "wp.from_numpy(x)", "copy", "ab.convert(x, 'warp')", "view"),
    ],
    "wp.from_torch(t)": [
        Row("warp torch", T, "wp.from_torch(x)", "view", "ab.convert(x.detach(), 'warp')", "view"),
    ],
    "pa.array(x)": [
        Row("pyarrow", f"{X}[0]", "pa.array(x)", "view", "ab.convert(x, 'pyarrow.Array')", "view"),
    ],
    "pa.Tensor.from_numpy(x)": [
        Row("pyarrow", X, "pa.Tensor.from_numpy(x)", "view", "ab.convert(x, 'pyarrow')", "view"),
        Row("pyarrow", f"{X}[::-1]", "pa.Tensor.from_numpy(x)", "ArrowInvalid", "ab.convert(x, 'pyarrow')", "copy"),
    ],
    "a.to_numpy()": [
        Row("pyarrow", "pa.array([1, 2])", "x.to_numpy()", "view", "ab.convert(x, 'numpy')", "view"),
        Row("pyarrow", "pa.array([1, None])", "x.to_numpy()", "ArrowInvalid", "ab.convert(x, 'numpy')", "ConversionError"),
    ],
    "frame.to_numpy()": [
        Row("pandas", f"pd.DataFrame({X})", "x.to_numpy()", "view", "ab.convert(x, 'numpy')", "view"),
    ],
    "frame.to_torch()": [
        Row("polars torch", f"pl.Series({X}[0])", "x.to_torch()", "copy", "ab.convert(x, 'torch')", "copy"),
    ],
    "map_blocks(torch.from_numpy)": [
        Row(
            "dask.array torch",
            "dask.array.ones(4, chunks=2)",
            "alone('import dask.array, torch; dask.array.ones(4, chunks=2).map_blocks(torch.from_numpy).compute()')",
            "equal TypeError",
            "ab.convert(x, 'torch').compute().sum().item()",
            "equal 4.0",
        ),
    ],
    "xr.DataArray(t)": [
        Row("xarray torch", T, "type(xr.DataArray(x).data) is np.ndarray", "equal True", "xr.DataArray(ab.from_dlpack(x)).data", "view"),
    ],
}  # fmt: skip
NOT_RUN = {"cp.asarray(x)"}  # needs a GPU; array-api-extra's functions are in the page's snippets


def parameters():
    for cell, rows in ROWS.items():
        for i, row in enumerate(rows):
            modules = row.needs.split()
            marks = [needs(*modules)]
            if HEAVY & set(modules):
                marks.append(pytest.mark.heavy)
            yield pytest.param(row, id=f"{cell}-{i}", marks=marks)


def pointer(x: Any) -> int | None:
    try:
        return ab.inspect(x).pointer
    except (TypeError, ab.ConversionError):
        return None


def alone(code: str) -> str:
    """The error that ends code in a process without arraybridge."""
    done = run_python("-c", code)
    return done.stderr.strip().splitlines()[-1].partition(":")[0]


def outcome(expression: str, names: dict[str, Any]) -> str:
    try:
        result = eval(expression, names)
    except Exception as error:
        return type(error).__name__
    if isinstance(result, str | bool | float | np.generic):
        return f"equal {result}"
    address = pointer(result)
    return "view" if address is not None and address == pointer(names["x"]) else "copy"


@pytest.mark.filterwarnings("ignore:.*writable:UserWarning")
@pytest.mark.parametrize("row", list(parameters()))
def test_row(row):
    names: dict[str, Any] = {"ab": ab, "np": np, "alone": alone}
    for module in row.needs.split():
        loaded = import_module(module)
        names[ALIASES.get(module, module.partition(".")[0])] = (
            loaded if module in ALIASES else import_module(module.partition(".")[0])
        )
    if "wp" in names:
        names["wp"].config.log_level = names["wp"].LOG_ERROR
        names["wp"].init()
    names["x"] = eval(row.x, names)
    own, ours = outcome(row.own, names), outcome(row.ours, names)
    if own == "BufferError" and row.own_is == "RuntimeError":
        own = "RuntimeError"  # NumPy's before 2.5
    if row.own_is == row.ours_is == "equal":
        assert own == ours
        assert own.startswith("equal ")
    else:
        assert (own, ours) == (row.own_is, row.ours_is)


def test_the_table_is_the_page_s():
    cells = re.findall(r"^\| \[`([^`]*)`", PAGE.read_text(), re.MULTILINE)
    assert set(cells) == set(ROWS) | NOT_RUN
