"""Sharded arrays: one process with eight devices of JAX; two and four of JAX and PyTorch."""

from __future__ import annotations

import pytest

from tests.support.optional import needs
from tests.support.sharded import start


@needs("torch")
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_shards(processes, tmp_path):
    start(processes, tmp_path)
