"""Everything in arraybridge that becomes machine code without Numba, and the one linker.

============  ==================================================================================
`elf`         links object code on x86-64 Linux, where LLVM is not needed for it
`linker`      LLVM IR, object code and stored bytes become functions of this process
`release`     the deleters and capsule destructors of the DLPack core, in LLVM IR
`memory`      memory for machine code
`exports`     the structs that native code makes of Arrays, in LLVM IR
`offered`     the C exchange API of Arrays and their ``__dlpack__``, in LLVM IR, with `exports`
`arrow`       the release callbacks of Arrow's C data interface, in LLVM IR
`launcher`    the builtin function that launches a kernel on a CUDA device, in LLVM IR
`front`       the builtin that serves small arrays of NumPy before any Python, in LLVM IR
`tabled`      what these share: functions that find all they call in a table
`stored`      these, as machine code for Linux; written by ``python -m tests.emit``
`threads`     the thread pool of the CPU kernels and their flat copy, in LLVM IR
============  ==================================================================================

``docs/machine_code.md`` says how to look at it, why each piece is here, and what it gains.
"""
