"""Copy kernels from strided memory to strided memory: one folder per kind of device.

A kernel gets addresses, extents, strides in **bytes** and item sizes; it knows no arrays, libraries
or dtypes. Every folder has the same interface, one function for any layout::

    copy(dst, src, shape, dst_strides, src_strides, itemsize, stream=None)

which first finds the canonical form of ``arraybridge.layout``. Importing a folder compiles nothing
and loads no compiler. The CPU's kernels are built with the package.
"""
