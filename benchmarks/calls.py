"""Measure every kind of call against the library's own, or against what you would write by hand.

python -m benchmarks.calls                prints the tables
python -m benchmarks.calls --write        and keeps them in benchmarks/RESULTS.md
python -m benchmarks.calls --only conj    the rows with that word
python -m benchmarks.calls --against TREE     the same calls here and in another tree, in turn
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from statistics import median

import array_api_compat
import jax
import numpy as np
import torch
import tvm_ffi

import arraybridge as ab

from .goals import Case, Found, measure, summary, table
from .results import against, head, heading, number, write

COUNT = 24
REFERENCE = 2_400  # ns of np.from_dlpack(tensor) on the machine of the goals
NEW_SHAPES = 6_000  # more than the cache of plans holds

#: Goals, in times the peer and in nanoseconds.
VIEW = {"ratio": 1.2, "ns": 2500}
COPY = {"ratio": 2.5, "ns": 3000}
JAX = {"ratio": 1.0}
COPY_TO_JAX = {"ratio": 0.25}
ASARRAY = {"ratio": 1.5}
EXPORT = {"ratio": 1.0}
TVM_FFI = {"ratio": 1.5}
NAMESPACES = {"ratio": 0.3}
CALL = {"ns": 3500}
LEAF = {"ratio": 1.3}


class Operands:
    """The arrays of all cases: 24 elements of float64, or of float32 for JAX."""

    def __init__(self) -> None:
        self.array = np.arange(float(COUNT))
        self.read_only = self.array.copy()
        self.read_only.flags.writeable = False
        self.swapped = self.array.astype(">f8")
        self.tensor = torch.arange(COUNT, dtype=torch.float64)
        self.matrix = self.tensor.reshape(4, 6)
        self.conjugate = torch.view_as_complex(self.tensor.reshape(-1, 2)).conj()
        self.negative = self.conjugate.imag
        self.single = self.array.astype(np.float32)
        self.single_tensor = torch.from_numpy(self.single)
        self.jax = jax.numpy.asarray(self.single)
        self.aligned = np.asarray(ab.from_dlpack(self.jax).to("numpy", copy=True))
        self.fixed = self.aligned.view()
        self.fixed.flags.writeable = False


# One case per line.
# fmt: off


def plain(of: Operands) -> Iterator[Case]:
    """Without keywords."""
    convert, wrap = ab.convert, ab.from_dlpack
    x, t, j, fixed, aligned = of.array, of.tensor, of.jax, of.fixed, of.aligned
    f, g = of.single, of.single_tensor
    to_jax = jax.dlpack.from_dlpack
    yield Case("torch to NumPy", lambda: convert(t, "numpy"), "np.from_dlpack", lambda: np.from_dlpack(t), 0.5)
    yield Case("NumPy to torch", lambda: convert(x, "torch"), "torch.from_dlpack", lambda: torch.from_dlpack(x), 0.6)
    yield Case("torch to TVM-FFI", lambda: convert(t, "tvm_ffi"), "tvm_ffi.from_dlpack", lambda: tvm_ffi.from_dlpack(t))
    yield Case("NumPy to TVM-FFI", lambda: convert(x, "tvm_ffi"), "tvm_ffi.from_dlpack", lambda: tvm_ffi.from_dlpack(x))
    yield Case("JAX to NumPy", lambda: convert(j, "numpy"), "np.from_dlpack", lambda: np.from_dlpack(j), **JAX)
    yield Case("JAX to torch (copied: immutable)", lambda: convert(j, "torch"), "torch.from_dlpack (a writable view)", lambda: torch.from_dlpack(j), **JAX)
    yield Case("NumPy to JAX (copied: writable)", lambda: convert(f, "jax"), "jax.dlpack.from_dlpack", lambda: to_jax(f), **COPY_TO_JAX)
    yield Case("NumPy to JAX (read-only and aligned)", lambda: convert(fixed, "jax"), "jax.dlpack.from_dlpack (of writable memory)", lambda: to_jax(aligned), **JAX)
    yield Case("torch to JAX (copied: writable)", lambda: convert(g, "jax"), "jax.dlpack.from_dlpack (a view)", lambda: to_jax(g), **COPY_TO_JAX)
    yield Case("from_dlpack(torch)", lambda: wrap(t), "tvm_ffi.from_dlpack", lambda: tvm_ffi.from_dlpack(t), 2.5)
    yield Case("from_dlpack(NumPy)", lambda: wrap(x), "tvm_ffi.from_dlpack", lambda: tvm_ffi.from_dlpack(x), 2.5)


def views(of: Operands) -> Iterator[Case]:
    """With a keyword, or from an Array."""
    convert, t, x, j, matrix = ab.convert, of.tensor, of.array, of.jax, of.matrix.T
    over_torch, over_numpy, fixed = ab.from_dlpack(t), ab.from_dlpack(x), of.read_only

    def case(what: str, ours: Callable[[], object], like: torch.Tensor = t) -> Case:
        return Case(what, ours, "np.from_dlpack(tensor)", lambda: np.from_dlpack(like), **VIEW)

    yield case("torch to NumPy, copy=False", lambda: convert(t, "numpy", copy=False))
    yield case("torch to NumPy, device='cpu'", lambda: convert(t, "numpy", device="cpu"))
    yield case("torch to NumPy, alias_readonly=True", lambda: convert(t, "numpy", alias_readonly=True))
    yield case("torch to NumPy, transposed, device='cpu'", lambda: convert(matrix, "numpy", device="cpu"), matrix)
    yield case("NumPy to torch, copy=False", lambda: convert(x, "torch", copy=False))
    yield case("NumPy to torch, device='cpu'", lambda: convert(x, "torch", device="cpu"))
    yield case("NumPy to torch, alias_readonly=True", lambda: convert(x, "torch", alias_readonly=True))
    yield case("read-only NumPy to torch, alias_readonly=True", lambda: convert(fixed, "torch", alias_readonly=True))
    yield case("torch to TVM-FFI, device='cpu'", lambda: convert(t, "tvm_ffi", device="cpu"))
    yield case("JAX to NumPy, device='cpu'", lambda: convert(j, "numpy", device="cpu"))
    yield case("Array over torch to NumPy", lambda: convert(over_torch, "numpy"))
    yield case("Array over NumPy to torch", lambda: convert(over_numpy, "torch"))


def unseen(of: Operands) -> Iterator[Case]:
    """A new shape in every call, which no cached plan fits."""
    convert = ab.convert
    tensors = [torch.zeros(NEW_SHAPES)[:size] for size in range(1, NEW_SHAPES + 1)]
    arrays = [tensor.numpy() for tensor in tensors]

    def case(
        what: str, of: list, ours: Callable, peer_name: str, peer: Callable, goal: dict
    ) -> Case:
        mine, theirs = cycle(of).__next__, cycle(tensors).__next__
        return Case(what, lambda: ours(mine()), peer_name, lambda: peer(theirs()), **goal)

    exporter, clone = "np.from_dlpack(tensor)", "tensor.clone()"
    yield case("torch to NumPy, device='cpu', a new shape in every call", tensors, lambda x: convert(x, "numpy", device="cpu"), exporter, np.from_dlpack, VIEW)
    yield case("NumPy to torch, device='cpu', a new shape in every call", arrays, lambda x: convert(x, "torch", device="cpu"), exporter, np.from_dlpack, VIEW)
    yield case("torch to torch, copy=True, a new shape in every call", tensors, lambda x: convert(x, "torch", copy=True), clone, torch.clone, COPY)


def copies(of: Operands) -> Iterator[Case]:
    """Small copies, for each reason to copy."""
    convert, torch_of = ab.convert, torch.from_numpy
    x, t, j, fixed, swapped = of.array, of.tensor, of.jax, of.read_only, of.swapped
    conj, neg, matrix = of.conjugate, of.negative, of.matrix
    two = x[:4].reshape(2, 2).T
    yield Case("NumPy to torch, negative strides", lambda: convert(x[::-1], "torch"), "torch.from_numpy(x[::-1].copy())", lambda: torch_of(x[::-1].copy()), **COPY)
    yield Case("NumPy to torch, read-only", lambda: convert(fixed, "torch"), "torch.from_numpy(x.copy())", lambda: torch_of(fixed.copy()), **COPY)
    yield Case("NumPy to torch, foreign byte order", lambda: convert(swapped, "torch"), "torch.from_numpy(x.astype(float))", lambda: torch_of(swapped.astype(float)), **COPY)
    yield Case("NumPy to torch, copy=True", lambda: convert(x, "torch", copy=True), "torch.from_numpy(x.copy())", lambda: torch_of(x.copy()), **COPY)
    yield Case("NumPy to NumPy, copy=True", lambda: convert(x, "numpy", copy=True), "x.copy()", lambda: x.copy(), **COPY)
    yield Case("torch to torch, copy=True", lambda: convert(t, "torch", copy=True), "tensor.clone()", lambda: t.clone(), 1.8, 3000)
    yield Case("torch to torch, transposed, copy=True", lambda: convert(matrix.T, "torch", copy=True), "tensor.T.contiguous()", lambda: matrix.T.contiguous(), **COPY)
    yield Case("torch to NumPy, copy=True", lambda: convert(t, "numpy", copy=True), "tensor.clone().numpy()", lambda: t.clone().numpy(), **COPY)
    yield Case("torch to NumPy, conjugate bit", lambda: convert(conj, "numpy"), "tensor.resolve_conj().numpy()", lambda: conj.resolve_conj().numpy(), 1.6, 3000)
    yield Case("torch to NumPy, negative bit", lambda: convert(neg, "numpy"), "tensor.resolve_neg().numpy()", lambda: neg.resolve_neg().numpy(), **COPY)
    yield Case("JAX to torch", lambda: convert(j, "torch"), "torch.from_numpy(np.array(x))", lambda: torch_of(np.array(j)), **COPY)
    yield Case("JAX to NumPy, copy=True", lambda: convert(j, "numpy", copy=True), "np.array(x)", lambda: np.array(j), **COPY)
    yield Case("contiguous, a transposed 2 x 2 array", lambda: ab.contiguous(two), "np.ascontiguousarray", lambda: np.ascontiguousarray(two), 1.5)


def by_hand(of: Operands) -> Iterator[Case]:
    """What people write without arraybridge."""
    convert, contiguous, t, x = ab.convert, ab.contiguous, of.tensor, of.array
    dense, exported = of.matrix, tvm_ffi.from_dlpack(t)
    square = np.ones((45, 45)).T
    rows = np.ones((256, 258), np.float32)[:, 1:-1]
    picture = np.ones((224, 224, 3), np.uint8).transpose(2, 0, 1)
    fresh: list[torch.Tensor] = []  # one per call: the first view of a tensor pins its storage

    def new(count: int = 4000) -> None:
        fresh[:] = [torch.ones(COUNT) for _ in range(count)]

    yield Case("NumPy to torch, by hand", lambda: convert(x, "torch"), "torch.from_numpy", lambda: torch.from_numpy(x), 1.3)
    yield Case("torch to NumPy, by hand", lambda: convert(t, "numpy"), "tensor.numpy()", lambda: t.numpy(), 1.9)
    yield Case("a fresh tensor to NumPy, by hand", lambda: convert(fresh.pop(), "numpy"), "tensor.numpy()", lambda: fresh.pop().numpy(), 2.0, setup=new)
    yield Case("TVM-FFI to NumPy, by hand", lambda: convert(exported, "numpy"), "np.from_dlpack", lambda: np.from_dlpack(exported), 2.0)
    yield Case("explain, a tensor to NumPy", lambda: ab.explain(t, "numpy"), "np.from_dlpack", lambda: np.from_dlpack(t), 1.5)
    yield Case("contiguous, a contiguous tensor", lambda: contiguous(dense), "tensor.contiguous()", lambda: dense.contiguous(), 6)
    yield Case("contiguous, 45 x 45 float64 transposed (16 KB)", lambda: contiguous(square), "np.ascontiguousarray", lambda: np.ascontiguousarray(square), 1.1)
    yield Case("contiguous, a slice of rows (256 KB)", lambda: contiguous(rows), "np.ascontiguousarray", lambda: np.ascontiguousarray(rows), 1.1)
    yield Case("contiguous, a list of 32 pictures (147 KB each)", partial(pictures, contiguous, picture), "np.ascontiguousarray", partial(pictures, np.ascontiguousarray, picture), 0.15)


def pictures(copy: Callable, picture: np.ndarray) -> list[np.ndarray]:
    return [copy(picture) for _ in range(32)]


def exports(of: Operands) -> Iterator[Case]:
    """An Array passed to a library."""
    natives = {
        "torch": ("tensor", of.tensor),
        "NumPy": ("array", of.array),
        "JAX": ("JAX array", of.jax),
    }
    t, call = of.tensor, compiled()
    for over, (name, native) in natives.items():
        a = ab.from_dlpack(native)
        yield Case(f"np.asarray(Array over {over})", lambda a=a: np.asarray(a), "np.asarray(tensor)", lambda: np.asarray(t), **ASARRAY)
        yield Case(f"np.from_dlpack(Array over {over})", lambda a=a: np.from_dlpack(a), f"np.from_dlpack({name})", lambda n=native: np.from_dlpack(n), **EXPORT)
        yield Case(f"torch.from_dlpack(Array over {over})", lambda a=a: torch.from_dlpack(a), f"torch.from_dlpack({name})", lambda n=native: torch.from_dlpack(n), **EXPORT)
        yield Case(f"compiled function by TVM-FFI, Array over {over}", lambda a=a: call(a), "the same, with a tensor", lambda: call(t), **TVM_FFI)


def compiled() -> Callable[[object], None]:
    """A C++ function of one TensorView that does nothing, from TVM-FFI's own tests."""
    import tvm_ffi.testing  # registers it

    return tvm_ffi.get_global_func("testing.schema_tensor_view_input")


def finding(of: Operands) -> Iterator[Case]:
    """Namespaces, and one library for all arguments."""
    t, x, f = of.tensor, of.array, of.single
    namespace, compat = ab.namespace, array_api_compat.array_namespace
    a = ab.from_dlpack(t)
    identity = ab.adapt("numpy")(lambda x: x)
    first = ab.adapt("numpy")(lambda x, y: x)
    hand, by_hand = (lambda: torch.from_numpy(t.numpy())), "torch.from_numpy(tensor.numpy())"
    for one, many, native in (("a tensor", "tensors", t), ("an array", "arrays", x)):
        yield Case(f"namespace of {one}", lambda n=native: namespace(n), "array_namespace", lambda n=native: compat(n), 0.2)
        yield Case(f"namespace of two {many}", lambda n=native: namespace(n, n), "array_namespace", lambda n=native: compat(n, n), **NAMESPACES)
        yield Case(f"namespace of three {many}", lambda n=native: namespace(n, n, n), "array_namespace", lambda n=native: compat(n, n, n), **NAMESPACES)
    yield Case("namespace of two Arrays", lambda: namespace(a, a), "array_namespace of tensors", lambda: compat(t, t), **NAMESPACES)
    yield Case("namespace of a tensor and a number", lambda: namespace(t, 1.0), "array_namespace", lambda: compat(t, 1.0), **NAMESPACES)
    yield Case("adapt('numpy') of a function of one tensor", lambda: identity(t), by_hand, hand, 2.0, 3500)
    yield Case("adapt('numpy') of a function of two tensors", lambda: first(t, t), by_hand, hand)
    yield Case("unify(tensor, array)", lambda: ab.unify(t, x), "torch.from_numpy(array)", lambda: torch.from_numpy(x), 1.2, 3500)
    yield Case("unify(array, tensor)", lambda: ab.unify(f, t), "tensor.numpy()", lambda: t.numpy(), **CALL)
    yield Case("unify(tensor, tensor)", lambda: ab.unify(t, t), "array_namespace", lambda: compat(t, t), **CALL)


def trees(of: Operands) -> Iterator[Case]:
    """A thousand leaves of 24 elements: compared with one call of `convert` for each, and with the same by hand."""
    convert, torch_of = ab.tree.convert, torch.from_numpy
    arrays = {f"layer{i}.weight": of.single.copy() for i in range(1000)}
    tensors, nested = convert(arrays, "torch", copy=True), {f"layer{i}": {name: of.single.copy() for name in "abcd"} for i in range(250)}

    def each(tree: dict, to: str, **options: object) -> dict:
        return {name: each(x, to, **options) if type(x) is dict else ab.convert(x, to, **options) for name, x in tree.items()}

    yield Case("tree.convert, NumPy to torch", lambda: convert(arrays, "torch"), "convert of each", lambda: each(arrays, "torch"), **LEAF)
    yield Case("tree.convert, NumPy to torch, by hand", lambda: convert(arrays, "torch"), "{k: torch.from_numpy(x)}", lambda: {k: torch_of(x) for k, x in arrays.items()}, ns=2e6)
    yield Case("tree.convert, NumPy to torch, 250 dicts of four", lambda: convert(nested, "torch"), "convert of each", lambda: each(nested, "torch"), **LEAF)
    yield Case("tree.convert, NumPy to torch, copy=True", lambda: convert(arrays, "torch", copy=True), "convert of each", lambda: each(arrays, "torch", copy=True), **LEAF)
    yield Case("tree.convert, torch to NumPy", lambda: convert(tensors, "numpy"), "convert of each", lambda: each(tensors, "numpy"), **LEAF)
    yield Case("tree.convert, NumPy to JAX (copied: writable)", lambda: convert(arrays, "jax"), "jax.tree.map(jnp.asarray)", lambda: jax.tree.map(jax.numpy.asarray, arrays), 1.3)


# fmt: on

#: (heading, text, cases)
SECTIONS: list[tuple[str, str, Callable[[Operands], Iterator[Case]]]] = [
    (
        "Fast paths",
        "No keywords; a view if that is safe. Pairs with JAX are compared with JAX's own function.",
        plain,
    ),
    ("Planned views", "With a keyword, or from an Array.", views),
    (
        "New shapes",
        f"The same with {NEW_SHAPES:,} shapes in turn, so that no cached plan applies.",
        unseen,
    ),
    ("Small copies", "Compared with the same copy by hand.", copies),
    ("By hand", "Compared with the shortest code without arraybridge.", by_hand),
    (
        "Arrays passed to libraries",
        "The compiled TVM-FFI function takes one TensorView and does nothing.",
        exports,
    ),
    (
        "Namespaces, adapt and unify",
        "The calls that `adapt` and `unify` are compared with check nothing.",
        finding,
    ),
    ("Trees", "A thousand leaves in one call.", trees),
]


def found(*, only: str = "", quick: bool = False) -> dict[str, list[Found]]:
    """The measurements by section."""
    operands = Operands()
    rows = {
        title: measure((c for c in cases(operands) if only in c.what), quick=quick)
        for title, _, cases in SECTIONS
    }
    return {title: of for title, of in rows.items() if of}


def pace(rows: dict[str, list[Found]]) -> str:
    """The time of the reference call here; the goals in ns were set on another machine."""
    took = [row.pair.peer for row in rows.get("Planned views", ())]
    if not took:
        return ""
    return f" Here it took {median(took):,.0f} ns."


def report(rows: dict[str, list[Found]]) -> str:
    texts = {title: text for title, text, _ in SECTIONS}
    lines = [
        "Goal: as in the tables; 2.5 µs for a view, 2.5 times the copy by hand for a small copy. "
        + summary(row for of in rows.values() for row in of),
        "",
        f"Measured: one call on {COUNT} contiguous elements, float64 or, with JAX, float32, in turn with the library's own call or with what you would write",
        "by hand. `ours`, `its` and the ratio are medians over the rounds; `least` is our fastest round. Goals in ns hold for the least, because they were",
        f"set on another machine, where `np.from_dlpack(tensor)` took {REFERENCE:,} ns.{pace(rows)}",
        "",
        head("numpy torch jax apache-tvm-ffi array-api-compat"),
    ]
    for title, of in rows.items():
        lines += ["", f"### {title}", "", texts[title], "", *table(of, "call")]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    parser.add_argument("--quick", action="store_true", help="few rounds, to try it")
    parser.add_argument("--only", default="", metavar="WORD", help="rows with WORD in the name")
    parser.add_argument("--against", metavar="TREE", help="compare with another tree's calls")
    arguments = parser.parse_args()
    if arguments.against:
        passed = ["--only", arguments.only, *["--quick"] * arguments.quick]
        least = {"": lambda row: number(row["least"])}
        text = against(arguments.against, "calls", least, *passed)
    else:
        text = report(found(only=arguments.only, quick=arguments.quick))
    print(text)
    if arguments.write:
        write(text, heading("calls", " --against TREE" if arguments.against else ""))


if __name__ == "__main__":
    main()
