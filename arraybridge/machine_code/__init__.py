"""The thread pool of the CPU kernels in LLVM IR (`threads`), and the linker of kernels (`linker`).

``docs/native_code.md`` says how to look at it, why it is here, and what it gains.
"""
