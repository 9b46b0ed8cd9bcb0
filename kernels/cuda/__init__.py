"""Copies in the memory of CUDA devices."""
