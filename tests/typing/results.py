# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
"""What ``convert`` returns, to type checkers that see the libraries; Any where one is missing."""

from __future__ import annotations

from typing import Any, assert_type

import jax
import numpy as np
import openvino
import pyarrow as pa
import torch
from torch._C import memory_format  # whose types mypy sees, as those of torch it does not

import arraybridge as ab


def results(native: np.ndarray) -> None:
    assert_type(ab.convert(native, "torch"), torch.Tensor)
    assert_type(ab.convert(native, "torch", dtype="float16", casting="safe"), torch.Tensor)
    assert_type(ab.convert(native, to="torch", order=torch.channels_last), torch.Tensor)
    assert_type(ab.convert(native, "jax", device="cpu", copy=True), jax.Array)
    assert_type(ab.convert(native, torch), torch.Tensor)
    assert_type(ab.convert(native, jax, copy=True), jax.Array)
    assert_type(ab.convert(native, pa), pa.Tensor)
    assert_type(ab.convert(native, openvino), openvino.Tensor)
    assert_type(ab.asarray([1, 2], like="torch"), torch.Tensor)
    assert_type(ab.asarray([1, 2], like=torch, dtype="float16"), torch.Tensor)
    assert_type(ab.asarray([1, 2], like="jax"), jax.Array)
    x = ab.from_dlpack(native)
    assert_type(x.to("torch", copy=True), torch.Tensor)
    assert_type(x.to(torch), torch.Tensor)
    assert_type(x.to("jax"), jax.Array)


def same(tensor: torch.Tensor, array: jax.Array) -> None:
    assert_type(ab.contiguous(tensor), torch.Tensor)
    assert_type(ab.contiguous(array), jax.Array)
    assert_type(ab.asarray([1, 2], like=tensor), torch.Tensor)
    assert_type(ab.asarray(tensor, like=array, device="cpu"), jax.Array)
    assert_type(ab.contiguous(array, out=tensor), torch.Tensor)


def orders(native: np.ndarray, order: memory_format) -> None:
    assert_type(ab.convert(native, "numpy", order=order), np.ndarray[Any, Any])
    ab.convert(native, torch, order=order)
    ab.explain(native, "torch", order=order)
