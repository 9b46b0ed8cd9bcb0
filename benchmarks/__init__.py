"""Benchmarks: one file per question; each compares a call with a peer in the same run."""

import os

# PyTorch's OpenMP threads keep spinning after their turn, on the core that the next contender
# needs. PyTorch reads this variable when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
