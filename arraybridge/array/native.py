"""Where Arrays that were pickled by earlier versions find ``restored``."""

from .pickling import restored

__all__ = ["restored"]
