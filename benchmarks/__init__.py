"""Benchmarks: one file a question, each a ratio to a peer measured in the same run."""

import os

# PyTorch's OpenMP threads spin on for a while after their turn, and would hold the core that the
# next contender needs. Read when PyTorch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
