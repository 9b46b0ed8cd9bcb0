"""The array API standard 2025.12 as typed and documented templates: one module per chapter.

Every function is a signature and a docstring. The namespaces in :mod:`arraybridge.xp` are built
from the signatures and annotations, and type checkers and ``help()`` read the same definitions. An
annotation that begins with ``Array`` marks an argument to unwrap; ``Sequence[Array]`` and
``*arrays: Array`` mark several. Names, kinds and defaults are the standard's. Functions of a module
in :data:`EXTENSIONS` belong to the sub-namespace of that name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

# The chapters whose ``__all__`` together make the main namespace, with the library's data types.
CHAPTERS = (
    "creation_functions",
    "data_types",
    "elementwise_functions",
    "linear_algebra_functions",
    "manipulation_functions",
    "searching_and_sorting",
    "statistical_functions",
)

EXTENSIONS = ("linalg", "fft")


def functions_of(namespace: Any) -> Iterator[tuple[Any, str, str, Any]]:
    """Yield (its module in a namespace, "linalg.qr", "qr", its template) for each function."""
    for chapter in (*CHAPTERS, *EXTENSIONS):
        templates: Any = import_module(f"{__name__}.{chapter}")
        extension = chapter in EXTENSIONS
        module = getattr(namespace, chapter) if extension else namespace
        for name in templates.__all__:
            template = getattr(templates, name)
            if inspect.isfunction(template) and template.__module__ == templates.__name__:
                yield module, f"{chapter}.{name}" if extension else name, name, template
