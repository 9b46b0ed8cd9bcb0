"""What arraybridge remembers of earlier calls: forgotten, the next call is a first one."""

from arraybridge.core.registry import forget

__all__ = ["forget"]
