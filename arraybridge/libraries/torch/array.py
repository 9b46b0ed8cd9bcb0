"""The array API standard over Arrays of PyTorch.

Autograd sees Arrays as tensors: for ``y = xp.sum(x * x)`` call ``y.native.backward()``. An Array
passes through ``torch.func.vmap``, ``jvp``, ``vjp``, ``jacrev`` and ``jacfwd`` as a pytree of one
leaf. If torch requires a tensor (the loss of ``grad`` and ``grad_and_value``), pass ``x.native``::

    torch.func.grad(lambda x: xp.sum(x**2).native)(x)  # the gradient is an Array

``torch.compile`` traces both namespaces in one graph, and all operators of Arrays except ``@``,
which it only accepts for tensors: write ``xp.matmul(x, y)`` there.

uint16, uint32, uint64 and other dtypes without a PyTorch kernel run in NumPy (on CUDA in CuPy) on
the same memory. A tensor that tracks gradients, or that a transformation traces, cannot: this
raises NotImplementedError.
"""

import operator
from typing import Any

import torch
from torch.utils import _pytree

from ...array.library_array import LibraryArray
from ...core.records import ConversionError
from ...core.registry import own_library
from ...xp.build import operators_of
from . import indexing
from .exchange import PLAIN
from .namespace import native
from .state import in_storage, modes, transformed
from .tables import DLPACK_DTYPES

_STRIDED = torch.strided


class TorchArray(LibraryArray):
    """The standard's array object over arrays of PyTorch; see :class:`arraybridge.Array`."""

    __slots__ = ()

    _home = own_library("torch")
    _native_namespace = native
    _native_type = torch.Tensor
    _operators = operators_of(native)
    _get = staticmethod(indexing.get)
    _set = staticmethod(indexing.set)

    @staticmethod
    def _supports(native: torch.Tensor) -> bool:
        return native.layout is _STRIDED and not native.is_meta and not native.is_nested

    @classmethod
    def _check(cls, native: torch.Tensor, *, read: bool = False) -> None:
        # Functions compute the shapes of meta tensors.
        refused = not (cls._supports(native) or native.is_meta) or native.dtype not in DLPACK_DTYPES
        read = read and not torch.compiler.is_compiling()  # its tensors have no storage
        if read and type(native) in PLAIN and native.is_cpu and not (modes() or transformed()):
            refused = refused or not (native._is_zerotensor() or in_storage(native))
        if refused:
            raise ConversionError(str(cls._home.describe(native).refused))

    def _printed(self) -> str:
        x = self._native
        try:
            readable = x.is_meta or x._is_zerotensor() or in_storage(x)
        except Exception:  # a transformation, which prints what it wraps
            readable = True
        # torch's own repr aborts if the storage was resized to 0.
        return repr(x) if readable else "<its storage was resized>"

    def __dlpack_device__(self) -> tuple[int, int]:
        native = self._native
        if native.__class__ is torch.Tensor and native.is_cpu:
            return 1, 0
        return super().__dlpack_device__()

    # ``item`` supports uint64, which int(), bool() and index() of a tensor do not.

    def __bool__(self) -> bool:
        return bool(self._native.item())

    def __int__(self) -> int:
        return int(self._native.item())

    def __index__(self) -> int:
        return operator.index(self._native.item())


def _unflatten(leaves: Any, _: None) -> Any:
    (leaf,) = leaves
    # jacrev nests trees, and some transformations' placeholders are not tensors.
    return leaf if isinstance(leaf, TorchArray) else TorchArray._of(leaf)


# A pytree of one leaf, the tensor: for torch.func and torch.export.
_pytree.register_pytree_node(
    TorchArray,
    lambda array: ([array._native], None),
    _unflatten,
    serialized_type_name="arraybridge.xp.torch.TorchArray",
)


class _Namespace:
    """The namespace, made when it is first used; torch.compile understands the import."""

    def __get__(self, array: Any, cls: Any) -> Any:
        import arraybridge.xp.torch

        return arraybridge.xp.torch


TorchArray._namespace = _Namespace()
