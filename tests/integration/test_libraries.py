"""The contract of the libraries that have little else of their own to show."""

from __future__ import annotations

import pytest

from tests.support.optional import needs

from .contract import LibraryContract


class TestNumPy(LibraryContract):
    name = "numpy"


@needs("torch")
class TestTorch(LibraryContract):
    name = "torch"


@needs("jax")
@pytest.mark.usefixtures("x64")
class TestJax(LibraryContract):
    name = "jax"


@needs("array_api_strict")
class TestStrict(LibraryContract):
    name = "array_api_strict"


@needs("PIL")
class TestPillow(LibraryContract):
    name = "pillow"


@needs("onnxruntime")
@pytest.mark.heavy
class TestOnnxRuntime(LibraryContract):
    name = "onnxruntime"
