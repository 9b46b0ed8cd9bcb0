"""Dask: arrays of blocks that are computed later, never by arraybridge."""
