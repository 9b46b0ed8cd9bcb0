"""Copy kernels: strided memory to strided memory, a folder a kind of device.

A kernel sees addresses, extents, strides in **bytes** and item sizes; it knows no array, no
library and no dtype. Every folder has the same interface, one function::

    copy(dst, src, shape, dst_strides, src_strides, itemsize, stream=None)

for any layout; the folder brings it into the canonical form of ``arraybridge.layout`` by itself.
Importing a folder compiles nothing and loads no compiler; that waits for the first copy that needs
one.
"""
