"""A library that aborts, hangs and lies, by the data type of what it takes: its source."""

__all__ = ["UNRULY"]

UNRULY = """
import ctypes, os, time
import numpy as np
from arraybridge import register_library
from arraybridge.libraries.numpy.exchange import NumPy

kept = {}

class Unruly(NumPy):
    name = "unruly"
    def owns(self, array_type):
        return False
    def wrap(self, tensor, **how):
        result = super().wrap(tensor, **how)
        match result.dtype.name:
            case "int8":
                os.abort()
            case "int16":
                time.sleep(600)
            case "int32":
                return result + 1
            case "int64":
                return result.copy()
            case "uint8":
                raise RuntimeError("not today")
            case "uint16":
                os._exit(0)
            case "uint32":
                return kept.setdefault("first", result)
            case "complex64" if not result.flags.writeable:
                memory = (ctypes.c_char * result.nbytes).from_address(result.ctypes.data)
                return np.ndarray(result.shape, result.dtype, memory)
        return result

register_library(Unruly())
"""
