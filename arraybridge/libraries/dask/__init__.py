"""Dask: arrays of blocks that are computed later, and never by arraybridge."""
