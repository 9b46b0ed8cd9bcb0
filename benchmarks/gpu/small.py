"""Small copies, by the clock: the whole cost of a call, compared with PyTorch and CuPy."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from .clock import Work, burst, events, in_turns, rotating, waited
from .ours import kernels_needed

SIZES = [1 << k for k in range(10, 26, 2)]  # bytes: 1 KB to 16 MB
CALLS = 200  # fewer than the launches that the driver queues before it makes the host wait


def transpose(nbytes: int) -> Any:
    import torch

    side = int((nbytes // 4) ** 0.5)
    return torch.rand(side, nbytes // 4 // side, device="cuda").t()


def slices(nbytes: int) -> Any:
    import torch

    rows = max(nbytes // 256, 1)
    return torch.rand(rows, 96, device="cuda")[:, 16:80]


def channels(nbytes: int) -> Any:
    import torch

    side = max(int((nbytes // 3) ** 0.5), 1)
    picture = torch.randint(
        0, 255, (side, nbytes // 3 // side, 3), dtype=torch.uint8, device="cuda"
    )
    return picture.permute(2, 0, 1)


KINDS = {"transpose, 4-byte items": transpose, "inner slice": slices, "HWC to CHW, bytes": channels}


def measure(kind: str, nbytes: int) -> Iterator[dict[str, Any]]:
    import torch

    import arraybridge as ab

    kernels_needed()
    sources = [KINDS[kind](nbytes) for _ in range(4)]
    able: dict[str, Work] = {
        "arraybridge": rotating(ab.contiguous, sources),
        "torch": rotating(torch.Tensor.contiguous, sources),
    }
    try:
        import cupy

        able["cupy"] = rotating(cupy.ascontiguousarray, [cupy.from_dlpack(x) for x in sources])
    except ImportError:
        pass
    found: dict[str, Any] = {"kind": kind, "bytes": sources[0].numel() * sources[0].itemsize}
    failed: dict[str, str] = {}
    by_events = lambda work, calls: events(work, calls, 4_000_000)  # noqa: E731
    for what, way, calls in (
        ("burst", burst, CALLS),
        ("waited", waited, 40),
        ("device", by_events, 100),
    ):
        times = in_turns(able, way, rounds=9, calls=calls, failed=failed, seconds=0.6)
        found[what] = {who: statistics.median(each) for who, each in times.items()}
    yield found
    assert not failed, failed
    assert torch.equal(ab.contiguous(sources[0]), sources[0].contiguous()), "the copy is wrong"


def run(record: Any) -> None:
    for nbytes in SIZES:
        for kind in KINDS:
            record.attempt(f"{kind}, {nbytes} bytes", measure, kind, nbytes, needs=2)
