"""Tensors over read-only memory: PyTorch has no flag for it, but a subclass can refuse writes.

PyTorch's dispatched operations raise here if they would write to such a tensor, and its views are
such tensors too. Operations that compute from one return plain tensors, at plain speed: dispatching
through a subclass costs about 8 µs per operation on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

_aliases = torch._C._is_alias_of
_without_dispatch = torch._C._DisableTorchDispatch


class ReadOnlyTensor(torch.Tensor):  # type: ignore[misc]
    """A tensor whose memory others use as well, such as Ray's object store.

    Every PyTorch operation that would write to it, or to a view of it, raises ValueError.
    ``clone()`` returns a plain tensor. Code that uses the address or the storage (``data_ptr()``,
    ``untyped_storage()``, ``other.data = x``, a kernel) must not write, and ``torch.from_dlpack``
    ignores DLPack's flag.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl
    # A consumer would write through it: it has no read-only flag where consumers look.
    __dlpack_c_exchange_api__ = None

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if len(types) > 1:
            return NotImplemented  # a tensor without memory, or on several devices
        for place, name in () if func is _BATCH_NORM and not args[5] else _WRITTEN[func]:
            value = args[place] if place < len(args) else kwargs and kwargs.get(name)
            if any(x.__class__ is ReadOnlyTensor for x in _flat(value)):
                raise _refusal(func._schema.name)
        sources: list[torch.Tensor] = []
        args = _unmarked(args, sources)
        kwargs = {name: _unmarked(value, sources) for name, value in (kwargs or {}).items()}
        return _marked(func(*args, **kwargs), sources)

    def apply_(self, function: Any) -> Any:
        """Raise: PyTorch's own writes without being dispatched."""
        raise _refusal("apply_")

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """Return a NumPy array on the same memory, read-only too."""
        array: np.ndarray[Any, Any] = plain(self).numpy(force=force)
        array.flags.writeable = False
        return array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        from ...array import from_dlpack

        return from_dlpack(self).__dlpack__(**options)

    def tolist(self) -> Any:
        """Return the elements as Python numbers, in nested lists."""
        return plain(self).tolist()

    def __repr__(self, **options: Any) -> str:
        return repr(plain(self)).replace("tensor(", f"{type(self).__name__}(", 1)

    def __copy__(self) -> torch.Tensor:
        return self.detach()

    def __deepcopy__(self, memo: dict[int, Any]) -> torch.Tensor:
        result = self.detach().clone()
        if isinstance(self, torch.nn.Parameter):
            result = torch.nn.Parameter(result, self.requires_grad)
        return memo.setdefault(id(self), result.requires_grad_(self.requires_grad))

    def __reduce_ex__(self, protocol: Any) -> Any:
        if int(protocol) < 5:  # for torch.save: others load a plain tensor
            return plain(self).__reduce_ex__(protocol)
        from ...array.pickling import reduced_native

        return reduced_native(self) or plain(self).__reduce_ex__(protocol)


def read_only(x: torch.Tensor) -> ReadOnlyTensor:
    """Return a tensor over the memory of ``x`` that refuses writes."""
    made: Any = torch.Tensor._make_subclass
    tensor: ReadOnlyTensor = made(ReadOnlyTensor, x)
    return tensor


def plain(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor on the same memory that PyTorch would write to."""
    with _without_dispatch():
        return torch.Tensor.detach(x)


def _refusal(name: str) -> ValueError:
    return ValueError(
        f"{name} would write to a read-only tensor, whose memory others use: pass x.clone()"
    )


_BATCH_NORM = torch.ops.aten.native_batch_norm.default
#: Arguments that are written, or become part of a writable tensor, although the schema omits it.
#: Statistics are only written while training, the sixth argument.
_OMITTED = {"aten::native_batch_norm": ("running_mean", "running_var"), "aten::set_": ("source",)}


class _Written(dict[Any, tuple[tuple[int, str], ...]]):
    """The arguments that each operator writes to, by place and name; torch.compile follows it."""

    def __missing__(self, func: Any) -> tuple[tuple[int, str], ...]:
        extra = _OMITTED.get(func._schema.name, ())
        found = self[func] = tuple(
            (place, argument.name)
            for place, argument in enumerate(func._schema.arguments)
            if argument.name in extra
            or (argument.alias_info is not None and argument.alias_info.is_write)
        )
        return found


_WRITTEN = _Written()


def _flat(value: Any) -> Iterator[Any]:
    """Iterate over an argument; tensors may only be nested in lists."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from _flat(each)
    else:
        yield value


def _unmarked(value: Any, sources: list[torch.Tensor]) -> Any:
    """Replace read-only tensors in arguments by plain ones, and list these."""
    kind = value.__class__
    if kind is ReadOnlyTensor:
        value = plain(value)
        sources.append(value)
    elif kind is tuple or kind is list:
        return kind([_unmarked(x, sources) for x in value])
    return value


def _marked(result: Any, sources: list[torch.Tensor]) -> Any:
    """Make a result read-only if it is memory of a read-only tensor."""
    kind = result.__class__
    if kind is torch.Tensor:
        for source in sources:
            if _aliases(result, source):
                return read_only(result)
    elif kind is tuple or kind is list:
        return kind([_marked(x, sources) for x in result])
    return result
