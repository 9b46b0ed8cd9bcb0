"""Plans of made-up arrays: by what a target accepts, whatever the libraries can do."""

from __future__ import annotations

from arraybridge.core import planner
from arraybridge.core.library import Devices, Library
from arraybridge.core.records import Accepts, Route, TensorInfo
from arraybridge.core.request import request_of


def plan(info: TensorInfo, accepts: Accepts, **keywords) -> Route:
    """Return the route of an array, from a library that can do all that is asked of it."""
    able = {"accepts": accepts, "copy": None}
    able["devices"] = type("Places", (Devices,), {"to_device": None})()
    source = type("Source", (Library,), {"name": info.library, **able})
    target = type("Target", (Library,), {"name": accepts.library, **able})
    request = request_of(**keywords)
    planning = planner._Planning(info, source(), target(), request, True, False)
    return planning.to_target(request.copy)
