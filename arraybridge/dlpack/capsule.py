"""PyCapsules, legacy and versioned: consuming and making them.

Source: data-apis array API standard, "DLPack: Python specification".
"""

from ..native import pyapi
from ..native.deleters import take
from ..native.pyapi import DLPACK_NAMES, CapsuleType
from .errors import ConsumedCapsuleError
from .managed import ManagedTensor, read_struct
from .tensor import Tensor
from .validate import struct_address


def is_capsule(x: object) -> bool:
    """Return whether ``x`` is a PyCapsule, of any name.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import numpy as np
    >>> dlpack.is_capsule(np.ones(3).__dlpack__()), dlpack.is_capsule(np.ones(3))
    (True, False)
    """
    return type(x) is pyapi.CapsuleType


def _open(capsule: object) -> tuple[int, bool]:
    """Return (address, versioned) of an unconsumed DLPack capsule."""
    if type(capsule) is not pyapi.CapsuleType:
        raise TypeError(
            f"expected a PyCapsule named 'dltensor' or 'dltensor_versioned', got "
            f"{type(capsule).__name__}"
        )
    name = pyapi.capsule_name(capsule)
    if name in DLPACK_NAMES:
        return pyapi.capsule_pointer(capsule, name), name == DLPACK_NAMES[True]
    shown = "no name" if name is None else f"the name {name.decode(errors='replace')!r}"
    if name in (b"used_dltensor", b"used_dltensor_versioned"):
        raise ConsumedCapsuleError(
            f"the capsule has {shown}: it was consumed already, and a capsule can be consumed "
            "once; call __dlpack__ again for another"
        )
    raise TypeError(
        f"the capsule has {shown}; a DLPack capsule is named 'dltensor' or 'dltensor_versioned'"
    )


def from_capsule(capsule: object) -> ManagedTensor:
    """Consume a capsule: take ownership of its tensor and rename the capsule ``used_...``.

    The tensor of a legacy capsule, which has no read-only flag, is read-only.

    Raises
    ------
    TypeError
        If the argument is not a DLPack capsule.
    ConsumedCapsuleError, UnsupportedVersionError, MalformedTensorError
        These are BufferErrors. For the last two, the tensor's deleter has run.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import numpy as np
    >>> x = np.ones((2, 3))
    >>> tensor = dlpack.from_capsule(x.__dlpack__(max_version=(1, 3)))
    >>> tensor.pointer == x.ctypes.data, tensor.readonly
    (True, False)
    >>> dlpack.from_capsule(x.__dlpack__()).readonly        # it has no read-only flag
    True
    """
    for versioned in (True, False):
        taken = take(capsule, versioned)
        if taken is not None:
            address, owner = taken
            return read_struct(address, owner, versioned)
    _open(capsule)  # raises a better error
    raise ConsumedCapsuleError("the capsule has no pointer")


def peek(capsule: object) -> Tensor:
    """Describe the tensor in a capsule without consuming the capsule.

    The result is valid until the capsule is consumed or deleted. Errors are those of
    :func:`from_capsule`, but the tensor is not released.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> import numpy as np
    >>> capsule = np.ones((2, 3)).__dlpack__(max_version=(1, 3))
    >>> dlpack.peek(capsule)
    <Tensor float64 (2, 3) on cpu>
    >>> dlpack.from_capsule(capsule)                # it was not consumed
    <ManagedTensor float64 (2, 3) on cpu>
    """
    address, versioned = _open(capsule)
    tensor = Tensor.__new__(Tensor)
    tensor._read_managed(struct_address(address, "the DLManagedTensor pointer"), versioned)
    return tensor


def to_capsule(tensor: ManagedTensor, *, versioned: bool = True) -> CapsuleType:
    """Make a capsule that shares the memory of a tensor, and keeps it alive.

    ``versioned`` is False for a legacy ``dltensor``, which has no read-only flag: pass one only if
    the consumer may write.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> tensor = dlpack.ManagedTensor.allocate((2, 3), dlpack.DataType("float32"))
    >>> dlpack.to_capsule(tensor)
    <capsule object "dltensor_versioned" at ...>
    >>> dlpack.to_capsule(tensor, versioned=False)
    <capsule object "dltensor" at ...>
    """
    return tensor._capsule(versioned)
