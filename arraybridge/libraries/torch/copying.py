"""PyTorch's own copies: small ones, those with gradients or on its devices, and casts."""

from __future__ import annotations

from functools import cache

import torch

from ...core.kernel import SMALL, NoKernel, kernel_for
from ...core.library import Library
from ...dlpack import DataType, DataTypeCode, DeviceType
from .edges import check_storage
from .state import has_storage, transform_level
from .tables import DLPACK_DTYPES, TORCH_DTYPES, place_of

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

    def copy_small(self, x: torch.Tensor) -> torch.Tensor | None:
        if x.numel() > SMALL:
            return None
        x = self.held(x)
        check_storage(x)
        if x.is_contiguous():  # conjugate bits are applied in any case
            return x.clone()
        return x.clone(memory_format=torch.contiguous_format)

    def copy_on_device(self, x: torch.Tensor) -> torch.Tensor | None:
        """Copy by the kernel on PyTorch's stream."""
        x = self.held(x)
        device, data = place_of(x.device), x.data_ptr()
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
        x = self.held(x)
        if x.is_cpu and x.layout is torch.strided and transform_level() is None:
            check_storage(x)
        kind, ndim = TORCH_DTYPES[dtype], len(axes)
        in_order = axes == tuple(range(ndim))
        laid = x if in_order else x.permute(axes)
        if laid.dtype is not kind:
            made = laid.to(kind, memory_format=torch.contiguous_format)
        else:
            made = laid.clone(memory_format=torch.contiguous_format)
        return made if in_order else made.permute([axes.index(axis) for axis in range(ndim)])

    def assign_cast(self, dst: torch.Tensor, src: torch.Tensor) -> bool:
        pair = DLPACK_DTYPES[src.dtype], DLPACK_DTYPES[dst.dtype]
        if not _as_numpy(*pair):
            return False
        dst.copy_(src)
        return True


@cache
def _as_numpy(given: DataType, wanted: DataType) -> bool:
    """Whether PyTorch casts all values as NumPy and ml_dtypes do; a test compares them."""
    if (given.name, wanted.name) == ("float64", "float16"):
        return False  # it rounds twice
    from ...core.cast_rules import allowed

    wide = all(kind.bits >= 16 or kind.code <= DataTypeCode.UINT for kind in (given, wanted))
    return wide and allowed(given, wanted, "same_kind")
