"""What is told of a ``device=`` that is not there, or that nothing drives."""

from __future__ import annotations

from typing import Any

from ..dispatch.library import Library, place_named
from ..dispatch.plan import missing_device
from ..dispatch.records import ConversionError
from ..dlpack import Device
from .recovery import Refused


class Placement:
    """A handler for functions that make arrays on a device: it says why the library has none there.

    Attributes
    ----------
    home : Library
    """

    errors = (RuntimeError, AssertionError, ValueError)  # PyTorch asserts that it knows CUDA
    attempt = ""

    def __init__(self, home: Library) -> None:
        self.home = home

    def serves(self, path: str, template: Any) -> bool:
        """Whether a function takes the device of its result."""
        return "device" in template.__annotations__

    def retry(self, refused: Refused) -> Any:
        """Raise ConversionError if the device is why the call failed."""
        place = self._place(refused.kwargs.get("device"))
        if place is None or place.host:
            return NotImplemented
        why = missing_device(self.home.accepts, place)
        if why is not None:
            raise ConversionError(why)
        self.home.native_device(place)
        return NotImplemented

    def _place(self, device: Any) -> Device | None:
        if device is None:
            return Device(min(self.home.accepts.devices))
        try:
            return self.home.place(device) or place_named(device)
        except (TypeError, ValueError):
            return None
