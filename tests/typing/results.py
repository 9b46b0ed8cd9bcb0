# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
"""What ``convert`` returns, to type checkers that see the libraries; Any where one is missing."""

from __future__ import annotations

from typing import assert_type

import dask.array as da
import jax
import numpy as np
import onnxruntime
import openvino
import PIL.Image
import pyarrow as pa
import torch

import arraybridge as ab


def results(native: np.ndarray) -> None:
    assert_type(ab.convert(native, "torch"), torch.Tensor)
    assert_type(ab.convert(native, "torch", dtype="float16", casting="safe"), torch.Tensor)
    assert_type(ab.convert(native, to="torch", order=torch.channels_last), torch.Tensor)
    assert_type(ab.convert(native, "jax", device="cpu", copy=True), jax.Array)
    assert_type(ab.convert(native, "pillow"), PIL.Image.Image)
    assert_type(ab.convert(native, "dask"), da.Array)
    assert_type(ab.convert(native, "openvino", copy=True), openvino.Tensor)
    assert_type(ab.convert(native, "onnxruntime"), onnxruntime.OrtValue)
    assert_type(ab.convert(native, "pyarrow"), pa.Tensor)
    assert_type(ab.convert(native, "pyarrow.Array"), pa.Array)
