"""Plans of made-up arrays: by what a target accepts, whatever the libraries can do."""

from __future__ import annotations

from arraybridge.core import planner
from arraybridge.core.library import Library
from arraybridge.core.records import Accepts, Route, TensorInfo
from arraybridge.core.request import request_of


def plan(info: TensorInfo, accepts: Accepts, **keywords) -> Route:
    """Return the route of an array, from a library that can do all that is asked of it."""
    source = type("Source", (Library,), {"name": info.library, "copies": lambda *_: True})
    target = type(
        "Target",
        (Library,),
        {
            "name": accepts.library,
            "accepts": accepts,
        },
    )
    request = request_of(**{k: v for k, v in keywords.items() if k != "share"})
    request = request._replace(share=keywords.get("share", False))
    planning = planner._Planning(info, source(), target(), request, True, False)
    return planning.to_target(request.copy)
