"""Errors of the core: BufferErrors, as the standard requires for data that cannot be exchanged."""


class DLPackError(BufferError):
    """Base class of the errors of :mod:`arraybridge.dlpack`.

    Examples
    --------
    >>> import arraybridge as ab
    >>> from arraybridge import dlpack
    >>> try:
    ...     ab.inspect(8)                           # not an address of a DLTensor
    ... except ab.DLPackError as error:
    ...     print(f"{type(error).__name__}: {error}")
    MalformedTensorError: the DLTensor pointer is 8; expected an address: a multiple of 8,
        from 4096 to 2**64 - 1
    >>> issubclass(dlpack.ConsumedCapsuleError, ab.DLPackError)
    True
    """


class MalformedTensorError(DLPackError):
    """A struct whose fields contradict ``dlpack.h``; its memory was released without being read.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> float32 = dlpack.DataType("float32")
    >>> dlpack.ManagedTensor.adopt(0, (3,), float32, owner=None)
    Traceback (most recent call last):
        ...
    arraybridge.dlpack.MalformedTensorError: data is NULL although the tensor has elements;
        expected an address on cpu
    """


class UnsupportedVersionError(DLPackError):
    """A struct of another major version of DLPack; it was released without being read.

    Examples
    --------
    >>> import ctypes
    >>> from arraybridge import dlpack
    >>> tensor = dlpack.ManagedTensor.allocate((3,), dlpack.DataType("float32"))
    >>> address = tensor.to_struct()
    >>> dlpack.DLManagedTensorVersioned.from_address(address).version.major = 2
    >>> dlpack.ManagedTensor.from_struct(address, versioned=True)
    Traceback (most recent call last):
        ...
    arraybridge.dlpack.UnsupportedVersionError: the tensor has DLPack version 2.3;
        arraybridge reads version 1.x: pass max_version=(1, 3) to __dlpack__
    """


class ConsumedCapsuleError(DLPackError):
    """A capsule that was already consumed.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import numpy as np
    >>> capsule = np.ones(3).__dlpack__()
    >>> tensor = dlpack.from_capsule(capsule)
    >>> dlpack.from_capsule(capsule)
    Traceback (most recent call last):
        ...
    arraybridge.dlpack.ConsumedCapsuleError: the capsule has the name 'used_dltensor': it
        was consumed already, and a capsule can be consumed once; call __dlpack__ again for
        another
    """


for _error in (DLPackError, MalformedTensorError, UnsupportedVersionError, ConsumedCapsuleError):
    _error.__module__ = "arraybridge.dlpack"  # as tracebacks print it, and as users import it
