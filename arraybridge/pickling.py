"""Arrays in other processes: pickling without copies, shared memory, PyTorch's ``DataLoader``.

An ``Array`` is pickled with its memory out of band if the pickler supports it (protocol 5 with a
``buffer_callback``), as in Ray and Dask's ``distributed``. This module adds native tensors.
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

#: Libraries whose own pickles copy the memory into the stream.
LIBRARIES = ("torch", "jax")

#: Other picklers to register with by default, by module, if that is imported.
PICKLERS = {"ray.cloudpickle": "CloudPickler", "cloudpickle": "Pickler"}


class Pickler(_Pickler):
    """A ``pickle.Pickler`` that pickles native tensors out of band after :func:`register`.

    The pickler of the standard library is not changed, because files that ``torch.save`` writes
    with it must not depend on arraybridge.

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
    """The result of :func:`register`; a context manager that undoes it on exit.

    Examples
    --------
    >>> from arraybridge import pickling
    >>> registration = pickling.register("torch")
    >>> registration.unregister()
    """

    def __init__(self, undo: list[Callable[[], object]]) -> None:
        self._undo = undo

    def unregister(self) -> None:
        """Restore the libraries' own pickling; further calls have no effect."""
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
    """Pickle native PyTorch tensors and JAX arrays with their memory out of band.

    This applies to the current process. A worker that sends arrays back must call it, too: for Ray,
    pass ``runtime_env={"worker_process_setup_hook": hook}`` with a function that calls
    ``register("torch")``. A process that only receives needs arraybridge installed, but no call. A
    further call replaces the options.

    Parameters
    ----------
    *libraries : str or module
        ``"torch"``, ``"jax"``, which are imported. By default, those that are already imported.
    readonly : bool
        Whether arrays that arrive in read-only memory, such as Ray's object store, are read-only
        views. A PyTorch tensor then refuses writes. With False, PyTorch tensors are copied to
        writable memory.
    picklers : iterable of type, optional
        Pickler classes with a ``dispatch_table``. By default, :class:`Pickler` and those of Ray and
        cloudpickle, if they are imported.

    Returns
    -------
    Registration
        Its method ``unregister`` undoes the call.

    Raises
    ------
    RuntimeError
        If no library is named and none is imported.
    ValueError
        If a library is not supported.

    Notes
    -----
    The libraries' own pickling remains in use for tensors with gradients, extra attributes,
    conjugate bits or on devices other than the CPU, for subclasses, and for JAX arrays on several
    devices. Only the elements of a view are sent, and views of one tensor arrive as separate
    tensors. JAX arrays arrive on the CPU.

    ``torch.save``, ``copy.copy`` and native tensors in ``multiprocessing``, which PyTorch sends
    through shared memory, are not changed. With ``"torch"``, Arrays over PyTorch are also sent
    through shared memory, as copies; the sender must live until they are received.
    ``default_collate`` then accepts Arrays, and ``distributed``, if it is imported, accepts
    bfloat16 and float8 tensors.

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
            raise ValueError(f"register() supports {' and '.join(LIBRARIES)}, got {home.name}")
    if not homes:
        raise RuntimeError(
            "neither torch nor jax is imported: import one first, or pass its name, "
            "register('torch')"
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
    """Undo all calls of :func:`register` in this process.

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
        self.table = getattr(table, "maps", [table])[0]  # the other maps are copyreg's
        self.before: Any = self.table.get(kind)
        if isinstance(self.before, _Reducer):
            self.before = self.before.before

    def __call__(self, x: Any) -> Any:
        found = reduced_native(x, self.readonly)
        if found is not None:
            return found
        return x.__reduce_ex__(4) if self.before is None else self.before(x)

    def put(self) -> Callable[[], None]:
        """Enter it in the table; return a function that removes it."""
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
    """Make a batch, as ``DataLoader(..., collate_fn=arraybridge.pickling.collate)``.

    Arrays of one shape and dtype, of any library and layout (also flipped or read-only), become one
    tensor. Each is copied once; in a worker process, this copy goes to the shared memory in which
    the tensor is sent. PyTorch's ``default_collate`` handles other batches, and batches that
    contain only tensors.

    Parameters
    ----------
    batch : sequence
        The items of a data set: Arrays, native arrays, numbers, or containers of them.

    Returns
    -------
    tensor or container
        As ``default_collate`` returns it.

    Raises
    ------
    ConversionError
        If an array cannot be converted, for example because a mask would be lost.
    TypeError, ValueError
        If arrays differ in shape or dtype, or other objects are among them; and as in
        ``default_collate``.

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
        The block. It cannot be closed while the Array or a view of it is alive: ``close()`` raises
        BufferError. You call ``unlink()`` yourself.
    shape : tuple of int, or int
        The extent of each axis.
    dtype : DataType, str or a library's dtype
        The data type of the elements.
    offset : int
        The number of bytes from the start of the block to the first element.
    readonly : bool
        Whether views must not write.

    Returns
    -------
    Array
        It shares the memory of the block.

    Raises
    ------
    TypeError, ValueError
        As in :func:`arraybridge.from_pointer`, and if elements are outside the block.

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
        raise TypeError(
            f"block must be a SharedMemory, got {block!r}: open it with SharedMemory(name=...)"
        )
    return from_pointer(
        numpy.frombuffer(block.buf or b"", numpy.uint8).ctypes.data,
        shape,
        dtype,
        device="cpu",
        byte_offset=offset,
        owner=block,
        readonly=readonly,
    )
