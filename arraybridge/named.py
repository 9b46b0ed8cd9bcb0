"""``NamedTuple`` as `typing` has it, made in half the time.

`typing.NamedTuple` compiles each annotation that is a string, to see that it is an expression:
a fifth of the first view of a process. Here they stay strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from collections import namedtuple

    class _Made(type):
        """The type of `NamedTuple` alone: what derives from it is an ordinary class of tuples."""

        def __new__(cls, name, bases, space):
            fields = space.pop("__annotations__", {})
            defaults = [space.pop(field) for field in fields if field in space]
            made = namedtuple(name, fields, defaults=defaults, module=space.pop("__module__"))
            made.__annotations__ = made.__new__.__annotations__ = fields
            for key, value in space.items():
                setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_Made, "NamedTuple", (), {})
