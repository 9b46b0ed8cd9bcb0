"""What a C extension would do, in Python: nothing here is machine code.

============  ==================================================================================
`pyapi`       CPython's C API by ctypes
`deleters`    DLPack structs and capsules whose deleters are NumPy's own
`blocks`      memory for results, used again once nobody refers to it
============  ==================================================================================
"""
