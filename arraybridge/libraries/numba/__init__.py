"""Numba's CUDA device arrays."""
