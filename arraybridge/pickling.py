"""Arrays in other processes: pickles without copies, shared memory, PyTorch's ``DataLoader``.

Arrays need none of it: they are pickled with their memory out of band wherever the pickler takes it
there (protocol 5 with a ``buffer_callback``), as Ray and Dask's ``distributed`` do.
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from copyreg import dispatch_table as _copyreg_table
from pickle import Pickler as _Pickler
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy

from .array import Array, from_pointer
from .array.pickling import reduced_native
from .core.registry import library_named

__all__ = ["Pickler", "Registration", "collate", "from_shared_memory", "register", "unregister"]

if TYPE_CHECKING:
    from multiprocessing.shared_memory import SharedMemory

#: Libraries whose own pickles copy, and put the memory in the stream.
LIBRARIES = ("torch", "jax")

#: The picklers that are registered with by default, by module, if that is imported.
PICKLERS = {"ray.cloudpickle": "CloudPickler", "cloudpickle": "Pickler"}


class Pickler(_Pickler):
    """A ``pickle.Pickler`` for objects that contain native tensors, after a call of `register`.

    The pickler of the standard library itself is left as it is: ``torch.save`` uses it, and what it
    writes must not need arraybridge.

    Examples
    --------
    >>> import io, pickle
    >>> from arraybridge import pickling
    >>> import torch
    >>> with pickling.register("torch"):
    ...     file, memory = io.BytesIO(), []
    ...     pickling.Pickler(file, protocol=5, buffer_callback=memory.append).dump(torch.arange(3))
    >>> len(memory), pickle.loads(file.getvalue(), buffers=memory)
    (1, tensor([0, 1, 2]))
    """

    dispatch_table: ClassVar[Any] = ChainMap({}, _copyreg_table)  # type: ignore[misc]


class Registration:
    """What `register` did; a context manager that undoes it at its end.

    Examples
    --------
    >>> from arraybridge import pickling
    >>> registration = pickling.register("torch")
    >>> registration.unregister()
    """

    def __init__(self, undo: list[Callable[[], object]]) -> None:
        self._undo = undo

    def unregister(self) -> None:
        """Have native arrays pickled by their library again; further calls do nothing."""
        while self._undo:
            self._undo.pop()()
        if self in _registrations:
            _registrations.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.unregister()


_registrations: list[Registration] = []


def register(
    *libraries: object, readonly: bool = True, picklers: Iterable[Any] | None = None
) -> Registration:
    """Pickle native tensors of PyTorch and arrays of JAX with their memory out of band.

    In this process: a worker that sends them back registers, too (for Ray
    ``runtime_env={"worker_process_setup_hook": hook}`` with a function that calls
    ``register("torch")``: a worker has imported neither library yet). Whoever loads them needs
    arraybridge installed, and nothing else. The last call counts.

    Parameters
    ----------
    *libraries : str or module
        ``"torch"``, ``"jax"``, which are imported then; by default those that are imported already.
    readonly : bool
        What arrives in memory that is read-only, as in Ray's object store, is read-only: on that
        memory, and of PyTorch a tensor that refuses to be written. With False PyTorch's is a plain
        tensor: a copy.
    picklers : iterable of type, optional
        Classes with a ``dispatch_table``; by default `Pickler`, and those of Ray and cloudpickle
        that are imported.

    Returns
    -------
    Registration
        With a method ``unregister``.

    Raises
    ------
    RuntimeError
        If no library is named and none is imported.
    ValueError
        For another library.

    Notes
    -----
    Tensors with gradients, attributes of their own, conjugate bits or on other devices than the CPU
    are pickled by their library, and so are subclasses and JAX arrays on several devices. Of a view
    its elements alone are sent, and views of one tensor are not views of one tensor on arrival.
    An array of JAX arrives on the CPU.

    ``torch.save`` and ``copy.copy`` are left as they are, and so are native tensors in
    multiprocessing, which PyTorch sends through shared memory. With ``"torch"`` Arrays over PyTorch
    go there as well, as copies, and the sender has to live until they are received, as for tensors.
    ``default_collate`` takes Arrays then, and Dask's ``distributed``, if it is imported, tensors of
    bfloat16 and float8, which it refuses else.

    Examples
    --------
    >>> import io, pickle
    >>> from arraybridge import pickling
    >>> import torch
    >>> x = torch.zeros(1000)
    >>> with pickling.register("torch"):
    ...     file, memory = io.BytesIO(), []
    ...     pickling.Pickler(file, protocol=5, buffer_callback=memory.append).dump(x)
    >>> len(file.getvalue()) < 500, len(memory[0].raw())        # the elements are not in the stream
    (True, 4000)
    """
    homes: list[Any] = [library_named(library) for library in libraries] or [
        library_named(name) for name in LIBRARIES if name in sys.modules
    ]
    for home in homes:
        if home.name not in LIBRARIES:
            raise ValueError(f"register is of {' and '.join(LIBRARIES)}, not of {home.name}")
    if not homes:
        raise RuntimeError(
            "neither torch nor jax is imported: import it first, or name it, register('torch')"
        )
    undo: list[Callable[[], object]] = []
    known = [getattr(sys.modules[m], name) for m, name in PICKLERS.items() if m in sys.modules]
    classes = [Pickler, *known] if picklers is None else picklers
    tables = [cls.dispatch_table for cls in classes]
    for home in homes:
        kind = home.array_class()._native_type
        undo += [_Reducer(kind, table, readonly).put() for table in tables]
        if picklers is None:
            undo += home.serve_processes()
    registration = Registration(undo)
    _registrations.append(registration)
    return registration


def unregister() -> None:
    """Undo every `register` of this process.

    Examples
    --------
    >>> from arraybridge import pickling
    >>> registration = pickling.register("torch")
    >>> pickling.unregister()
    """
    while _registrations:
        _registrations[-1].unregister()


class _Reducer:
    """The entry of a type in a dispatch table."""

    def __init__(self, kind: type, table: Any, readonly: bool) -> None:
        self.kind, self.readonly = kind, readonly
        self.table = getattr(table, "maps", [table])[0]  # of a ChainMap, whose rest is copyreg's
        self.before: Any = self.table.get(kind)
        if isinstance(self.before, _Reducer):
            self.before = self.before.before

    def __call__(self, x: Any) -> Any:
        found = reduced_native(x, self.readonly)
        if found is not None:
            return found
        return x.__reduce_ex__(4) if self.before is None else self.before(x)

    def put(self) -> Callable[[], None]:
        """Enter it, and return what takes it out again."""
        self.table[self.kind] = self
        return self._take_out

    def _take_out(self) -> None:
        if self.table.get(self.kind) is not self:  # replaced meanwhile
            return
        if self.before is None:
            del self.table[self.kind]
        else:
            self.table[self.kind] = self.before


def collate(batch: Sequence[Any]) -> Any:
    """Make a batch for PyTorch's ``DataLoader(..., collate_fn=arraybridge.pickling.collate)``.

    Arrays of one shape and dtype, of any library and layout (flipped and read-only ones, too),
    become one tensor. Each is copied once, in a worker process into the shared memory in which the
    tensor is sent. Everything else is left to PyTorch's ``default_collate``, and so are batches of
    tensors alone.

    Parameters
    ----------
    batch : sequence
        The items of a data set: Arrays, native arrays, numbers, or containers of them.

    Returns
    -------
    tensor or container
        As ``default_collate`` has it.

    Raises
    ------
    ConversionError
        For arrays that cannot be converted: a mask would be lost, say.
    TypeError, ValueError
        For arrays that differ in shape or dtype, and what is none among them; and as
        ``default_collate`` raises.

    Examples
    --------
    >>> from arraybridge import pickling
    >>> import numpy as np
    >>> image = np.arange(3.0)
    >>> pickling.collate([image, image[::-1]])
    tensor([[0., 1., 2.],
            [2., 1., 0.]], dtype=torch.float64)
    """
    home: Any = library_named("torch")
    return home.collate(batch)


def from_shared_memory(
    block: SharedMemory,
    shape: int | Sequence[int],
    dtype: object,
    /,
    *,
    offset: int = 0,
    readonly: bool = False,
) -> Array:
    """Make an :class:`Array` over a block of ``multiprocessing.shared_memory``.

    Parameters
    ----------
    block : SharedMemory
        Stays open as long as the Array or any view of it, whatever becomes of the name; to close it
        earlier is a BufferError. To ``unlink`` it is the caller's.
    shape : tuple of int, or int
    dtype : DataType, str or a library's dtype
    offset : int
        Bytes from the start of the block to the first element.
    readonly : bool
        Whether views may not write.

    Returns
    -------
    Array
        On the memory of the block.

    Raises
    ------
    TypeError, ValueError
        As :func:`arraybridge.from_pointer`, and for elements outside the block.

    Examples
    --------
    >>> from multiprocessing.shared_memory import SharedMemory
    >>> from arraybridge import pickling
    >>> block = SharedMemory(create=True, size=6)
    >>> x = pickling.from_shared_memory(block, (2, 3), "uint8")
    >>> t = x.to("torch")
    >>> t[:] = 7
    >>> list(block.buf[:6])
    [7, 7, 7, 7, 7, 7]
    >>> del t, x                                    # while a view is alive, close() is an error
    >>> block.close()
    >>> block.unlink()
    """
    if not hasattr(block, "buf"):
        raise TypeError(f"block is a SharedMemory, got {block!r}: open it, SharedMemory(name=...)")
    return from_pointer(
        numpy.frombuffer(block.buf or b"", numpy.uint8).ctypes.data,
        shape,
        dtype,
        device="cpu",
        byte_offset=offset,
        owner=block,
        readonly=readonly,
    )
