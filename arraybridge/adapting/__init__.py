"""``adapt``: let functions written for one library take any array and return the caller's kind."""

from .decorator import adapt

__all__ = ["adapt"]
