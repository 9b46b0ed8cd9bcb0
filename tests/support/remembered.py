"""What arraybridge remembers of earlier calls: forgotten, the next call is a first one."""

from __future__ import annotations

from arraybridge.core.registry import forget

__all__ = ["forget"]
