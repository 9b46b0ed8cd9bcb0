"""PyTorch's own copies: small ones, those with gradients or on its devices, and casts."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache

import torch
from torch.autograd import forward_ad

from ...dispatch.kernel import SMALL, NoKernel, kernel_for
from ...dispatch.library import Library
from ...dispatch.records import TensorInfo
from ...dlpack import DataType, DataTypeCode, DeviceType
from ..numpy.exchange import RUN, RUNS
from .state import has_storage, modes, transformed
from .tables import DLPACK_DTYPES, ITEMS, MOST_AXES, TORCH_DTYPES, place_of

# A handle in 0.1 µs, where ``torch.cuda.current_stream`` makes an object; builds for CUDA have it.
raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


class Copies(Library):
    """What of `Library` a copy by PyTorch is."""

    def resolve(self, x: torch.Tensor) -> torch.Tensor:
        return x.contiguous().resolve_conj().resolve_neg()

    def copy(self, x: torch.Tensor) -> torch.Tensor | None:
        info = self.describe(x)
        if info.tracked or (info.refused is None and x.device.type != "cpu"):
            return x.clone(memory_format=torch.contiguous_format)
        return None

    def compact(self, x: torch.Tensor, _small: int = SMALL) -> torch.Tensor | None:
        if type(x) is not torch.Tensor or x.layout is not torch.strided or x.is_nested:
            return None
        on_host, lazy = x.is_cpu, x.is_conj() or x.is_neg()
        if not (on_host or x.is_cuda):
            return None
        if x.is_contiguous():
            return None if lazy else x
        if not on_host:
            return None if lazy else self._compact_on_cuda(x)
        if x.numel() > _small and (lazy or not _in_runs(x)):
            return None
        try:  # a copy has conjugate and negative bits applied, and gradients tracked
            return x.contiguous() if has_storage(x) else None
        except RuntimeError:  # inside vmap; a negative bit that it does not apply
            return None

    def fresh(self, x: torch.Tensor) -> torch.Tensor | None:
        if (
            type(x) is not torch.Tensor
            or not x.is_cpu
            or x.requires_grad
            or x.is_nested
            or x.ndim > MOST_AXES
            or not x.data_ptr()  # empty, or without memory; inside vmap it raises
            or modes()
            or transformed() is not None  # a copy would be a tensor without memory
            or forward_ad._current_level >= 0
        ):
            return None
        itemsize, conjugates = ITEMS.get(x.dtype, (0, False))
        if not itemsize:
            return None
        x = x.data  # its memory of now, as `held` has it
        size = x.numel()
        # A clone has conjugate and negative bits applied; other layouts with them it keeps.
        if x.is_contiguous() and size <= SMALL:
            end = (x.storage_offset() + size) * itemsize
            return x.clone() if end <= x.untyped_storage().nbytes() else None
        if not has_storage(x):
            return None
        if (conjugates and x.is_conj()) or x.is_neg():
            return x.clone(memory_format=torch.contiguous_format)
        return x.contiguous() if size <= SMALL else None

    def copies_small(self, x: torch.Tensor, info: TensorInfo) -> bool:
        return (
            type(x) is torch.Tensor
            and info.data != 0
            and info.size <= SMALL
            and not modes()
            and transformed() is None
            and forward_ad._current_level < 0
        )

    def pattern(self, x: torch.Tensor) -> Hashable | None:
        if type(x) is torch.Tensor and (x.is_conj() or x.is_neg()) and not x.requires_grad:
            return x.dtype  # whatever its layout, it is copied
        return None

    def _compact_on_cuda(self, x: torch.Tensor) -> torch.Tensor | None:
        """Copy by the kernel on PyTorch's stream; None where gradients or modes may matter."""
        if x.requires_grad or forward_ad._current_level >= 0 or modes():
            return None
        try:
            device, data = place_of(x.device), x.data_ptr()
        except RuntimeError:  # inside vmap
            return None
        assert device is not None
        kernel = kernel_for(device)
        if kernel is None or raw_stream is None or not data or not has_storage(x):
            return None
        block = torch.empty_like(x, memory_format=torch.contiguous_format)
        stream = raw_stream(device.id) or (1 if device.type == DeviceType.CUDA else 0)
        try:
            kernel.compact(block.data_ptr(), data, x.shape, x.stride(), x.itemsize, stream, device)
        except NoKernel:  # there is no compiler: the planned way knows by now
            return None
        return block

    def overwrite(self, dst: torch.Tensor, src: torch.Tensor) -> bool:
        dst.copy_(src)
        return True

    def recast(self, x: torch.Tensor, dtype: DataType, axes: tuple[int, ...]) -> torch.Tensor:
        kind, ndim = TORCH_DTYPES[dtype], len(axes)
        in_order = axes == tuple(range(ndim))
        laid = x if in_order else x.permute(axes)
        if laid.dtype is not kind:
            made = laid.to(kind, memory_format=torch.contiguous_format)
        else:
            made = self.compact(laid)  # type: ignore[assignment]
            if made is None or made is laid:
                made = laid.clone(memory_format=torch.contiguous_format)
        return made if in_order else made.permute([axes.index(axis) for axis in range(ndim)])

    def assign_cast(self, dst: torch.Tensor, src: torch.Tensor) -> bool:
        pair = DLPACK_DTYPES[src.dtype], DLPACK_DTYPES[dst.dtype]
        if not _as_numpy(*pair):
            return False
        dst.copy_(src)
        return True


def _in_runs(x: torch.Tensor) -> bool:
    """Whether PyTorch moves the elements by memcpy, see NumPy's."""
    return x.stride(-1) == 1 and x.nbytes <= RUNS and x.shape[-1] * x.itemsize >= RUN


@cache
def _as_numpy(given: DataType, wanted: DataType) -> bool:
    """Whether PyTorch casts all values as NumPy and ml_dtypes do; a test compares them."""
    if (given.name, wanted.name) == ("float64", "float16"):
        return False  # it rounds twice
    from ...dispatch.casting import allowed

    wide = all(kind.bits >= 16 or kind.code <= DataTypeCode.UINT for kind in (given, wanted))
    return wide and allowed(given, wanted, "same_kind")
