"""Benchmarks: one file a question, each a ratio to a peer measured in the same run."""
