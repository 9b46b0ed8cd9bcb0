"""``restored``, for Arrays that earlier versions pickled."""

from .pickling import restored

__all__ = ["restored"]
