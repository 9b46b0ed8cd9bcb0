"""Show what the copy kernels compile to on this machine, and what keeps them from the limit.

python -m benchmarks.instructions        prints both tables of benchmarks/results/instructions.md
"""

from __future__ import annotations

import mmap
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import numpy as np

from arraybridge.kernels.cpu import copying, linker, loader, nest, pool
from arraybridge.kernels.cpu.plan import plan
from arraybridge.kernels.cpu.slices import slices
from arraybridge.layout import c_strides, canonical

from .contest import THREADS, Limit, turns
from .layouts import LAYOUTS
from .timing import machine

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # shared memory gets no huge pages
VECTOR = re.compile(r"[xyz]mm\d")
GROUPS = {
    "vector loads and stores": re.compile(r"v?mov(?:u|a)p[sd]|v?movdq[ua]\w*|ld1|st1|ldp|stp"),
    "streaming stores": re.compile(r"v?movnt\w*|stnp"),
    "shuffles": re.compile(r"v?perm\w*|v?punpck\w*|v?unpck\w*|v?shuf\w*|v?pshuf\w*|v?palign\w*|v?insert\w*|v?extract\w*|v?broadcast\w*|v?pbroadcast\w*|v?p?blend\w*|v?pack\w*|zip[12]|trn[12]|uzp[12]|tbl"),
    "gathers": re.compile(r"v?p?gather\w*"),
}  # fmt: skip


def kernels():
    """One (layout, plan) for each kernel that the layouts of the benchmark use."""
    seen = set()
    for layout in LAYOUTS:
        view = layout.view(np.empty(layout.shape, layout.dtype))
        item = view.itemsize
        made = plan(canonical(view.shape, c_strides(view.shape, item), view.strides, item))
        if made.kernel not in seen:
            seen.add(made.kernel)
            yield layout, made


def opcodes(key) -> tuple[Counter, str]:
    """Opcodes of the instructions on vector registers, and the widest register among them."""
    module = llvm.parse_assembly(nest.compiled(*key).inspect_llvm())
    assembly = linker.this_cpu().emit_assembly(module)
    lines = [line.strip() for line in assembly.splitlines() if VECTOR.search(line)]
    widest = max(
        (match for line in lines for match in re.findall(r"[xyz](?=mm\d)", line)), default=""
    )
    return Counter(line.split()[0] for line in lines), f"{widest}mm" if widest else ""


def instructions() -> list[str]:
    lines = [
        f"| layout | kernel | widest | {' | '.join(GROUPS)} | most used |",
        f"| --- | --- | --- | {' | '.join('---:' for _ in GROUPS)} | --- |",
    ]
    for layout, made in kernels():
        counted, widest = opcodes(made.kernel)
        groups = {
            name: sum(n for code, n in counted.items() if pattern.fullmatch(code))
            for name, pattern in GROUPS.items()
        }
        shuffles = [
            f"`{code}` {n}"
            for code, n in counted.most_common()
            if GROUPS["shuffles"].fullmatch(code)
        ]
        lines.append(
            f"| {layout.name} | {made.name} | {widest} | {' | '.join(map(str, groups.values()))} "
            f"| {', '.join(shuffles[:3])} |"
        )
    return lines


def pages(nbytes: int, advice: int) -> np.ndarray:
    """Memory in its own mapping, with pages of the advised size."""
    block = mmap.mmap(-1, nbytes + (1 << 21), flags=PRIVATE)
    block.madvise(advice)
    start = -np.frombuffer(block, np.uint8).ctypes.data % (1 << 21)
    array = np.frombuffer(block, np.uint8)[start : start + nbytes]
    array[::4096] = 1
    return array


def distance(rounds: int = 15) -> list[str]:
    """One 4-byte transpose of 64 MB, with one thing changed at a time."""
    side = 4096
    nbytes = 4 * side * side
    shape, dst_strides, src_strides = (side, side), (4 * side, 4), (4, 4 * side)
    huge, small = mmap.MADV_HUGEPAGE, mmap.MADV_NOHUGEPAGE
    src, dst = pages(nbytes, huge), pages(nbytes, huge)
    src4, dst4 = pages(nbytes, small), pages(nbytes, small)
    made = plan(canonical(shape, dst_strides, src_strides, 4))
    kernel = loader.load("nest", *made.kernel)

    def copy(to, source):
        copying.copy_planned(to.ctypes.data, source.ctypes.data, made)

    def one_thread():
        with pool.num_threads(1):
            copy(dst, src)

    def cached_stores():
        written = made._replace(stream=False, staged=False)
        for record in slices(written, dst.ctypes.data, src.ctypes.data, 1):
            kernel.call(record.buffer_info()[0])

    def fresh(advice):
        block = mmap.mmap(-1, nbytes + 4096, flags=PRIVATE)
        block.madvise(advice)
        copy(np.frombuffer(block, np.uint8)[:nbytes], src)

    with ThreadPoolExecutor(max(1, THREADS - 1)) as executor:
        contenders = {
            "limit": Limit(dst, src, executor),
            "ours": lambda: copy(dst, src),
            "the limit in pages of 4 KB": Limit(dst4, src4, executor),
            "ours, source in pages of 4 KB": lambda: copy(dst, src4),
            "ours, destination in pages of 4 KB": lambda: copy(dst4, src),
            "ours, one thread": one_thread,
            "ours, one thread, cached stores": cached_stores,
            "ours, fresh destination, huge pages": lambda: fresh(huge),
            "ours, fresh destination, pages of 4 KB": lambda: fresh(small),
        }
        seconds = turns(contenders, rounds)
    lines = ["| | ms | of the limit |", "| --- | ---: | ---: |"]
    for name, took in seconds.items():
        told = {"limit": "the contiguous copy, huge pages", "ours": "ours, huge pages"}.get(
            name, name
        )
        lines.append(f"| {told} | {took * 1e3:.1f} | {seconds['limit'] / took:.2f} |")
    return lines


if __name__ == "__main__":
    print(machine())
    print("\n".join(["", *instructions(), "", *distance()]))
