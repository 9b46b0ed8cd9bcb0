"""The array API standard over Arrays of JAX."""

from typing import TYPE_CHECKING

from .namespace import published

if TYPE_CHECKING:
    from .standard.main_namespace import *  # noqa: F403
    from .standard.main_namespace import __array_api_version__ as __array_api_version__
    from .standard.main_namespace import __array_namespace_info__ as __array_namespace_info__

published(__name__)
