"""A route that knows its array: what ``explain`` returns, and what a picture is drawn from."""

from __future__ import annotations

from .copier import DeviceCopy, HostCopy, SmallCopy
from .form import ADDRESS, strides_in
from .recast import Recast
from .records import Route, TensorInfo

__all__ = ["Explained"]


class Explained(Route):
    """A route with the array that it starts from; the array that a copy makes is derived of it."""

    info: TensorInfo | None = None
    in_pieces = False  # `Library.in_pieces` of the source

    @classmethod
    def of(cls, route: Route, info: TensorInfo, in_pieces: bool) -> Explained:
        """Return the route of an array."""
        explained = tuple.__new__(cls, route)
        explained.info = info
        if in_pieces:
            explained.in_pieces = True
        return explained

    @property
    def made(self) -> TensorInfo | None:
        info, copier = self.info, self.copier
        if info is None or self.kind != "kernel" or self.in_pieces:
            return None
        dtype, axes = info.dtype, tuple(range(info.ndim))
        if isinstance(copier, Recast):
            dtype, axes = copier.dtype, copier.axes
        elif not isinstance(copier, HostCopy | SmallCopy | DeviceCopy):
            return None
        return TensorInfo(
            self.target,
            ADDRESS,
            0,
            info.shape,
            strides_in(info.shape, axes),
            dtype,
            self.device,
            padded=info.padded if dtype == info.dtype else dtype.subbyte,
        )
