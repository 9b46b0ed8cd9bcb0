"""Every remedy that a message names is carried out as it is written, and works."""

import ast
import datetime
import re
from importlib import import_module
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")

PACKAGE = Path(ab.__file__).parent


def _dates(*days):
    return pa.array([None if day is None else datetime.date(2020, 1, day) for day in days])


def _strings(dtype, shape=(2, 3)):
    return np.full(shape, "1", dtype).T[::2] if shape else np.full(shape, "1", dtype)


def _decimals():
    return pa.array([1, 2], pa.decimal128(5, 2))


def _tensors(holes):
    storage = pa.array(holes, pa.list_(pa.float64(), 2))
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.float64(), [2]), storage)


def _pairs(inner):
    return pa.array([[1, 2], [3, 4]], inner)


# What is refused, for whom, and what to do about it: the code as the message has it. `value` and
# `shape` in it are the caller's.
ROWS = [
    # NumPy
    *(
        (lambda s=shape, d=dtype: _strings(d, s), "torch", f"numpy.frombuffer(x.tobytes(), '{to}')")
        for dtype, to in (("S3", "uint8"), ("U2", "uint32"), ("V3", "uint8"))
        for shape in ((2, 3), (3,), (), (0, 3))
    ),
    (lambda: np.array([5], "M8[s]"), "torch", "x.view('int64')"),
    (lambda: np.array([5], ">M8[s]"), "torch", "x.astype('int64')"),
    (lambda: np.array([[5, 6]], "m8[s]").T, "torch", "x.view('int64')"),
    (lambda: np.array([1, 2.5], object), "torch", "x.astype('float64')"),
    (lambda: np.ones(2, "longdouble"), "torch", "x.astype('float64')"),
    (lambda: np.ones(2, "clongdouble"), "torch", "x.astype('complex128')"),
    (lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]), "torch", "x['a']"),
    (lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), "torch", "x.filled(value)"),
    # Arrow as a source
    (lambda: pa.array([1, None, 3]), "numpy", "x.fill_null(value)"),
    (lambda: pa.array([1, None, 3]), "numpy", "x.drop_null()"),
    (lambda: pa.array([True, None]), "numpy", "x.drop_null()"),
    (lambda: pa.chunked_array([[1, None], [3]]), "numpy", "x.fill_null(value)"),
    (lambda: pa.chunked_array([[1, None], [3]]), "numpy", "x.drop_null()"),
    (lambda: pa.chunked_array([[1, None]]), "numpy", "x.fill_null(value)"),
    (lambda: pa.chunked_array([[1, None]]), "numpy", "x.drop_null()"),
    (lambda: _dates(1, 2), "numpy", "x.view('int32')"),
    (lambda: pa.array([3], pa.timestamp("us")), "numpy", "x.view('int64')"),
    (lambda: pa.array([3], pa.duration("s")), "numpy", "x.view('int64')"),
    (lambda: pa.array([3], pa.time32("s")), "numpy", "x.view('int32')"),
    (lambda: pa.chunked_array([_dates(1), _dates(2)]), "numpy", "x.combine_chunks().view('int32')"),
    (lambda: pa.array([1, 1]).dictionary_encode(), "numpy", "x.dictionary_decode()"),
    (lambda: pa.array([1, 1]).dictionary_encode(), "numpy", "x.indices"),
    (lambda: pa.array(["a", "b"]), "numpy", "x.dictionary_encode().indices"),
    (lambda: pa.array(["1.5"], pa.large_string()), "numpy", "x.cast('float64')"),
    (lambda: pa.array(["a", "b"]).dictionary_encode(), "numpy", "x.indices"),
    (lambda: pa.array([b"a"]).dictionary_encode(), "numpy", "x.indices"),
    (
        lambda: pa.array(["1.5"]).dictionary_encode(),
        "numpy",
        "x.dictionary_decode().cast('float64')",
    ),
    (
        lambda: pa.array([1], pa.date32()).dictionary_encode(),
        "numpy",
        "x.dictionary_decode().view('int32')",
    ),
    (
        lambda: pa.array([["a"], ["b"]], pa.list_(pa.string(), 1)),
        "numpy",
        "x.flatten().dictionary_encode().indices",
    ),
    (
        lambda: pa.chunked_array([["a"], ["b"]]),
        "numpy",
        "x.combine_chunks().dictionary_encode().indices",
    ),
    *(
        (
            lambda n=n: pa.chunked_array([pa.array([1, 1]).dictionary_encode()] * n),
            "numpy",
            "x.combine_chunks().dictionary_decode()",
        )
        for n in (1, 2)
    ),
    (
        lambda: pa.RunEndEncodedArray.from_arrays([2, 3], [1.0, 2.0]),
        "numpy",
        "pyarrow.compute.run_end_decode(x)",
    ),
    (_decimals, "numpy", "x.cast('float64')"),
    (lambda: pa.chunked_array([_decimals()] * 2), "numpy", "x.combine_chunks().cast('float64')"),
    (
        lambda: pa.array([[1], [2]], pa.list_(pa.date32(), 1)),
        "numpy",
        "x.flatten().view('int32')",
    ),
    (lambda: _pairs(pa.list_(pa.int32())), "numpy", "x.flatten()"),
    (lambda: _pairs(pa.large_list(pa.int32())), "numpy", "x.flatten()"),
    (
        lambda: pa.chunked_array([_pairs(pa.list_(pa.int32()))] * 2),
        "numpy",
        "x.combine_chunks().flatten()",
    ),
    (lambda: pa.array([{"a": 1}, {"a": 2}]), "numpy", "x.field(0)"),
    (
        lambda: pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())),
        "numpy",
        "x.storage",
    ),
    (lambda: _tensors([[1.0, 2.0], None]), "numpy", "x.drop_null()"),
    (lambda: _tensors([[1.0, None]]), "numpy", "x.storage.flatten().fill_null(value)"),
    (
        lambda: pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.bool_(), [2]),
            pa.array([[True, False]], pa.list_(pa.bool_(), 2)),
        ),
        "numpy",
        "x.storage.flatten()",
    ),
    (
        lambda: pa.SparseCOOTensor.from_dense_numpy(np.eye(2)),
        "numpy",
        "x.to_tensor()",
    ),
    (lambda: pa.table({"a": [1, 2], "b": [1.0, 2.0]}), "numpy", "x.select(['a'])"),
    (lambda: pa.table({"a": [1, None]}), "numpy", "x.drop_null()"),
    # Arrow as a target
    (lambda: torch.ones(2, 3).T > 0, "pyarrow", "arraybridge.convert(x, 'numpy').view('uint8')"),
    *(
        (
            lambda d=dtype: torch.ones(2, 3, dtype=d).T,
            "pyarrow",
            f"arraybridge.convert(x, 'numpy')[..., None].view('{parts}')",
        )
        for dtype, parts in ((torch.complex64, "float32"), (torch.complex128, "float64"))
    ),
    (
        lambda: torch.ones(3, dtype=torch.bfloat16),
        "pyarrow",
        "arraybridge.convert(x, 'numpy').astype('float32')",
    ),
    (
        lambda: torch.ones(3).to(torch.float8_e5m2),
        "pyarrow",
        "arraybridge.convert(x, 'numpy').view('uint8')",
    ),
    *(
        (lambda: torch.ones(2).to(torch.complex32), to, "torch.view_as_real(x)")
        for to in ("numpy", "pyarrow")
    ),
    # PyTorch
    (lambda: torch.ones(2, requires_grad=True), "numpy", "x.detach()"),
    (lambda: torch._neg_view(torch.ones(2) > 0), "numpy", "torch._neg_view(x)"),
    (lambda: torch.eye(3).to_sparse(), "numpy", "x.to_dense()"),
    (lambda: torch.eye(3).to_sparse_csr(), "numpy", "x.to_dense()"),
    (
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
        "numpy",
        "x.dequantize()",
    ),
    *(
        (
            lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
            "numpy",
            code,
        )
        for code in ("torch.nested.to_padded_tensor(x, 0.0)", "x.unbind()")
    ),
    (torch.nn.UninitializedParameter, "numpy", "x.materialize(shape)"),
    # JAX
    (lambda: jax.random.key(0), "numpy", "jax.random.key_data(x)"),
]


def test_text_of_any_width_goes_on_as_text():
    x = np.array(["a", "bc"], np.dtypes.StringDType())
    code = "numpy.array(x.tolist())"
    with pytest.raises(ab.ConversionError, match=re.escape(code)):
        ab.convert(x, "torch")
    with pytest.raises(ab.ConversionError, match=r"numpy.frombuffer\(x.tobytes\(\), 'uint32'\)"):
        ab.convert(carried_out(code, x), "torch")


def carried_out(code, x):
    names = {"x": x, "value": 0, "shape": (2, 3), "numpy": np, "arraybridge": ab}
    names |= {"torch": torch, "pyarrow": pa, "jax": jax}
    return eval(code, names)


@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated")
@pytest.mark.filterwarnings("ignore:.*quantiz")
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize(
    ("make", "to", "code"), ROWS, ids=[f"{i}-{row[1]}-{row[2]}" for i, row in enumerate(ROWS)]
)
def test_the_remedy_works_as_it_is_written(make, to, code):
    x = make()
    with pytest.raises((ab.ConversionError, TypeError)) as caught:
        ab.convert(x, to)
    assert code in str(caught.value)
    found = carried_out(code, x)
    if code == "x.materialize(shape)":
        found = x.detach()
    for each in found if isinstance(found, tuple | list) else [found]:
        ab.convert(each, to)
        assert ab.convert(each, "numpy").dtype != object


def _read_only():
    x = np.zeros(3)
    x.flags.writeable = False
    return x


UNWRITABLE = {  # what `copyto` cannot write to, what it says of it, what it has been given
    "read-only": (_read_only, "it is read-only", np.ones(3)),
    "jax": (lambda: jax.numpy.zeros(3), "it is read-only", np.ones(3, "f4")),
    "pyarrow": (lambda: pa.array([0.0] * 3), "it is read-only", np.ones(3)),
    "chunks": (lambda: pa.chunked_array([[0.0], [1.0]]), "it is read-only", np.ones(2)),
    "bits": (lambda: pa.array([False, True]), "it is read-only", np.ones(2, bool)),
    "memory": (lambda: ab.from_dlpack(ab.dlpack.acquire(_read_only())), "read-only", np.ones(3)),
    "byteorder": (lambda: np.zeros(3, ">f8"), "in foreign order", np.ones(3)),
    "conj": (lambda: torch.zeros(3, dtype=torch.cfloat).conj(), "conjugation", np.ones(3, "F")),
    "neg": (lambda: torch.zeros(3, dtype=torch.cfloat).conj().imag, "negation", np.ones(3, "f4")),
    "fraction": (
        lambda: np.zeros(3, [("a", "f8"), ("b", "i1")])["a"],
        "no whole elements",
        torch.ones(3, dtype=torch.float64),
    ),
    "gradients": (lambda: torch.zeros(3, requires_grad=True), "gradients are", np.ones(3, "f4")),
    "gradients of an Array": (
        lambda: ab.from_dlpack(torch.zeros(3, requires_grad=True)),
        "gradients are",
        np.ones(3, "f4"),
    ),
    "one cell": (
        lambda: np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,)),
        "one cell of memory",
        np.ones(3),
    ),
    "sparse": (lambda: torch.zeros(3).to_sparse(), "is not dense memory", np.ones(3, "f4")),
}


@pytest.mark.parametrize("name", ["dst", "out"])
@pytest.mark.parametrize(("make", "what", "src"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_to_do_about_a_destination(make, what, src, name):
    dst, source = make(), "src" if name == "dst" else "x"
    with pytest.raises(ab.ConversionError, match=f"^{name} cannot be written: .*{what}") as caught:
        ab.copyto(dst, src) if name == "dst" else ab.contiguous(src, out=dst)
    text = str(caught.value)
    names = {name: dst, source: src, "arraybridge": ab}
    if "new array" in text:
        dst = eval(text.partition("instead, ")[2], names)
    elif ".detach()" in text:
        ab.copyto(eval(re.findall(r"pass (\S+) ", text)[0], names), src)
        dst = getattr(dst, "native", dst).detach()
    else:
        exec(text.partition("library, ")[2], names)
        dst = dst.resolve_conj().resolve_neg() if isinstance(dst, torch.Tensor) else dst
    assert (ab.convert(dst, "numpy") == 1).all()


ARRAY = {
    "numpy": lambda found: found.tolist() == [1, 1],
    "tolist": lambda found: found == [1, 1],
    "item": lambda found: found == 1,
    "cpu": lambda found: found.device == (1, 0),
    "clone": lambda found: isinstance(found, ab.Array),
    "copy": lambda found: isinstance(found, ab.Array),
    "contiguous": lambda found: isinstance(found, ab.Array),
    "is_contiguous": lambda found: found is True,
    "dim": lambda found: found == 1,
    "numel": lambda found: found == 2,
    "data_ptr": lambda found: found > 0,
    "stride": lambda found: found == (1,),
}


@pytest.mark.parametrize("name", ARRAY)
@pytest.mark.parametrize(
    "make",
    [
        lambda n: ab.from_dlpack(np.ones(n)),
        lambda n: ab.from_dlpack(torch.ones(n)),
        lambda n: ab.from_dlpack(ab.dlpack.acquire(np.ones(n))),
    ],
    ids=["numpy", "torch", "bare"],
)
def test_methods_that_an_array_has_not(make, name):
    x = make(1 if name == "item" else 2)
    with pytest.raises(AttributeError, match=f"has no '{name}': ") as caught:
        getattr(x, name)
    code = CODE.search(str(caught.value))
    assert code is not None
    assert ARRAY[name](carried_out(code[0], x))


def test_an_array_is_made_of_numbers_and_of_arrays():
    for arguments in ((), ([1, 2],), ([1, 2], "numpy"), (np.ones(2), None)):
        with pytest.raises(TypeError, match="an Array is made of an array by") as caught:
            ab.Array(*arguments)
    first, second = CODE.findall(str(caught.value))
    import_module("arraybridge.xp.numpy")
    assert carried_out(first, np.ones(2)).shape == carried_out(second, [1, 2]).shape == (2,)


@pytest.mark.heavy
def test_remedies_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    for x, code in (
        (tf.ragged.constant([[1.0], [2.0, 3.0]]), "x.to_tensor()"),
        (tf.sparse.from_dense([0.0, 1.0]), "tf.sparse.to_dense(x)"),
        (
            tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([3, 2])),
            "tf.convert_to_tensor(x)",
        ),
        (tf.bitcast(tf.constant([1, 2], tf.int8), tf.qint8), "tf.bitcast(x, tf.int8)"),
        (tf.constant(["1", "2"]), "tf.strings.to_number(x)"),
    ):
        with pytest.raises(ab.ConversionError) as caught:
            ab.convert(x, "numpy")
        assert code in str(caught.value)
        assert ab.convert(eval(code, {"x": x, "tf": tf}), "numpy").size


# In the text of a message: a call with x in it, or what is asked of x.
CODE = re.compile(
    r"[A-Za-z_][\w.]*\(x[^()]*(?:\([^()]*\))?[^()]*\)(?:\[[^\]]*\])?(?:\.\w+\([^()]*\))*"
    r"|\bx\.[a-z_]\w*(?:\.\w+|\([^()]*\))*|\bx\[[^\]]*\]"
)
# Tested where the error is, or on what is not here. A new remedy gets a row above, or a line here.
ELSEWHERE = {
    "x.clone()": "test_missing_memory",
    "x.untyped_storage().resize_({})": "test_missing_memory",
    "x.to(device='cuda')": "needs a GPU",
    "x.to('numpy', device='cpu')": "needs another device than the host: tests of dpnp",
    "x.data": "test_foreign; the mask of a CUDA array",
    "x.rechunk(...)": "test_adapt_signature",
    "list(x)": "test_asarray",
    "x.fake_mode.from_tensor(y)": "test_namespace",
    "cupy.ascontiguousarray(x)": "needs CuPy and a GPU",
    "x.astype(...)": "CuPy's and Paddle's, for data types that they may get one day",
    "x.to_device('0')": "tests of dpnp",
    "jax.device_put(x, jax.devices()[0])": "test_xp_jax_devices",
    "x.cpu()": "Paddle on a device that DLPack does not have",
    "x._local_value()": "needs several Paddle processes",
    "x.copy_to": "Arrow's memory on a GPU",
    "numpy.array(x.tolist())": "above",
    "x.astype(\0)": "test_from_pointer",
    "reshape(x, (-1,))": "test_array_elsewhere",
    "x.validate()": "what Arrow itself refuses to build",
    "x.view(torch.uint8)": "data types without arithmetic",
    "x.contiguous()": "test_library_warp: an indexed array",
    "x.native": "test_array_object",
    **dict.fromkeys(("x.contents", "memoryview(x).cast('B')"), "test_foreign"),
    "ab.namespace(x)": "test_array_object",
    "arraybridge.namespace(x)": "tests of NumPy's functions on Arrays",
    "numpy.asarray(x)": "test_foreign, and tests of NumPy's functions on Arrays",
    "bytes(x)": "tests of the buffer of an Array",
    "xp.real(x)": "test_array_object",
    "arraybridge.convert(x, 'numpy')": "test_namespace",
    "x.astype": "tests of asarray",
    "awkward.to_numpy(x)": "test_foreign",
    **dict.fromkeys(
        ("x.magnitude", "x.compute()", "x.toarray()", "x.todense()", "x.to_numpy()", "x[...]"),
        "test_foreign",
    ),
    "x.read().result()": "TensorStore",
    "x.to_arrow_table()": "test_frames",
    "x.as_numpy()": "test_xarray",
    "x.to_dataarray().data": "a Dataset of xarray",
    "x.to_tensor()": "above, and TensorFlow's",
    **dict.fromkeys(("x.to('numpy')", "x.to('numpy').tolist()", "x.to('numpy').item()"), "ARRAY"),
    **dict.fromkeys(
        ("x.to(device='cpu')", "x.to(copy=True)", "arraybridge.contiguous(x)"), "ARRAY"
    ),
    **dict.fromkeys(("x.info.c_contiguous", "x.info.pointer", "x.strides"), "ARRAY"),
    **dict.fromkeys(("x.ndim", "x.size"), "ARRAY"),
    **dict.fromkeys(("arraybridge.from_dlpack(x)", "arraybridge.xp.numpy.asarray(x)"), "above"),
    **dict.fromkeys(
        ("tf.sparse.to_dense(x)", "tf.convert_to_tensor(x)", "tf.bitcast(x, tf.int8)"), "above"
    ),
    "tf.strings.to_number(x)": "above",
    **dict.fromkeys(
        (
            *("x.fillna(value)", "x.dropna()", "x.pint.magnitude", "x.cat.codes", "x[[\0]]"),
            *("x.sparse.to_dense()", "x.array.left", "x.array.right", "pandas.to_numeric(x)"),
            *("x.drop_nulls()", "x.to_physical()", "x.select", "x.cast(...)", "x.collect()"),
            *("x.astype('category').cat.codes", "x.cast(polars.Categorical).to_physical()"),
            *("x.cast(polars.Float64)", "x.list.to_array(width)", "pyarrow.table(x)"),
        ),
        "test_frames",
    ),
    "x.select([\0])": "above",
    "x.view(dtype=...)": "test_library_cuda_core",
    **dict.fromkeys(("x.values()", "x.as_sparse_tensor().values()"), "test_library_onnxruntime"),
    "x.numpy()": "test_library_onnxruntime",
    **dict.fromkeys(("x.str_data", "x.get_shape()"), "test_library_openvino"),
    "x.convert('RGBA')": "test_library_pillow",
    **dict.fromkeys(("x.blocks", "x.map_blocks", "arraybridge.convert(x, 'dask')"), "test_dask"),
    **dict.fromkeys(
        (
            "awkward.pad_none(x, length, axis=\0, clip=True)",
            "awkward.flatten(x, axis=None)",
            "awkward.drop_none(x, axis=\0)",
            "awkward.to_numpy(x.snapshot())",
        ),
        "test_foreign",
    ),
    "x.combine_chunks()": "above: put before what the chunks say",
    "arraybridge.unify(x, like=library)": "test_foreign",
}


def remedies():
    """(file and line, code) of each remedy in the strings of the package; a hole in it is NUL."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if {"cli", "kernels", "machine_code", "standard"} & set(path.relative_to(PACKAGE).parts):
            continue
        tree, apart = ast.parse(path.read_text(encoding="utf-8")), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                apart.add(node.value)  # a docstring
            if isinstance(node, ast.JoinedStr):
                apart |= set(ast.walk(node)) - {node}
        for node in ast.walk(tree):
            if node in apart:
                continue
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "\0" for p in node.values]
                text = "".join(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            for code in CODE.findall(text):
                yield f"{path.name}:{node.lineno}", code


def test_no_remedy_is_named_that_no_test_carries_out():
    tested = {row[2] for row in ROWS} | set(ELSEWHERE)
    tested |= {row[2].replace("uint8", "{}") for row in ROWS}
    missing = [
        f"{where}: {code}"
        for where, code in remedies()
        if not any(
            re.fullmatch(re.escape(code).replace("\0", ".+").replace("\\.+", ".+"), known)
            for known in tested
        )
    ]
    assert not missing, "remedies without a row here: " + "; ".join(missing)
    assert len(set(remedies())) > 60  # or the search itself is broken
