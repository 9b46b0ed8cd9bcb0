"""The command line: ``arraybridge``, and the same as ``python -m arraybridge``."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from typing import Any

import numpy as np

import arraybridge as ab

from .. import native
from ..core.registry import all_entries, known_name, library_named
from ..kernels import cuda, disk
from ..kernels.cpu import loader
from ..kernels.cuda import context, driver
from ..ndarrays import numpy_dtype
from . import warmup

REFUSED, MISSING = 1, 3  # exit statuses; 2 is argparse's, for wrong usage
EPILOG = """\
exit status: 0 success, 1 refused or a kernel could not be stored, 2 wrong usage,
3 a library is not installed"""
#: The packages of libraries with another name than arraybridge's.
PACKAGES = {"cuda_core": "cuda.core", "numba": "numba_cuda", "pillow": "PIL"}
#: Layout -> the function that makes an array of it from a contiguous one of the same shape.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x,
    "fortran": lambda x: np.asfortranarray(x),
    "strided": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "negative": lambda x: np.flip(x),
    "broadcast": lambda x: np.lib.stride_tricks.as_strided(x, strides=(0, *x.strides[1:])),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, by default with the process's arguments; return the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        status: int = args.run(args)
        return status
    except (ImportError, driver.CUDAError) as error:
        print(error, file=sys.stderr)
        return MISSING if isinstance(error, ImportError) else REFUSED
    except (MemoryError, TypeError, ValueError) as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="arraybridge", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Show how arrays are converted between the libraries installed here.",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"arraybridge {ab.__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)

    text = "show versions, the machine and the installed libraries"
    info = commands.add_parser("info", help=text, description=text)
    info.set_defaults(run=_info)
    text = "a library to import, and to show what it accepts"
    info.add_argument("libraries", nargs="*", metavar="LIBRARY", help=text)
    info.add_argument("--json", action="store_true", help="print JSON")

    text = "show whether a conversion is a view, a copy or an error"
    explain = commands.add_parser("explain", help=text, description=text)
    explain.set_defaults(run=_explain)
    explain.add_argument("source", metavar="SOURCE", help="the array's library")
    explain.add_argument("target", metavar="TARGET", help="the library to convert to")
    explain.add_argument("--dtype", default="float32", help="of the array (default: float32)")
    text = "of the array (default: 3,4)"
    explain.add_argument("--shape", default=(3, 4), type=integers, metavar="N,N", help=text)
    explain.add_argument("--layout", default="contiguous", choices=LAYOUTS, help="of the array")
    explain.add_argument("--readonly", action="store_true", help="the array is read-only")
    explain.add_argument("--device", help="of the result, such as cpu or cuda:1")
    explain.add_argument("--copy", choices=("true", "false"), help="always or never copy")
    explain.add_argument("--alias-readonly", action="store_true", help="share read-only memory")
    explain.add_argument("--json", action="store_true", help="print JSON")

    text = "compile the copy kernels for the GPUs here, and store them on disk"
    compile = commands.add_parser("warmup", help=text, description=text)
    compile.set_defaults(run=warmup.run)
    sizes, text = (1, 2, 4, 8, 16), "of elements, in bytes (default: 1,2,4,8,16)"
    compile.add_argument("--item-sizes", default=sizes, type=integers, metavar="N,N", help=text)
    compile.add_argument("-v", "--verbose", action="store_true", help="print a line per kernel")
    return parser


def integers(text: str) -> tuple[int, ...]:
    """Split ``3,4``."""
    return tuple(int(part) for part in text.split(",") if part)


def _info(args: argparse.Namespace) -> int:
    names = [known_name(name) for name in args.libraries]
    installs = {name: entry.install for name, entry in all_entries().items()}
    owners = packages_distributions()
    found: dict[str, dict[str, Any]] = {"arraybridge": _machine(), "libraries": {}}
    for name, install in installs.items():
        found["libraries"][name] = _version(name, install, owners)
    for name in names:
        found[name] = library_named(name).accepts._asdict()
    if args.json:
        print(json.dumps(found, indent=1, default=lambda x: sorted(x)))
        return 0
    for title, fields in found.items():
        print(title)
        for key, value in fields.items():
            several = isinstance(value, frozenset)
            shown = ", ".join(map(str, sorted(value))) if several else value
            print(f"  {key:<18} {shown}")
    return 0


def _machine() -> dict[str, str]:
    try:
        kernels = sum(name.endswith(".kernel") for name in os.listdir(disk.folder() or os.devnull))
    except OSError:  # no kernel has been written yet
        kernels = 0
    lacks = loader.unavailable()
    built = f"{loader.LIBRARY}, for {8 * loader.VECTOR} bits"
    gpu = driver.problem() or cuda.unavailable()
    return {
        "version": ab.__version__,
        "folder": os.path.dirname(ab.__file__),
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "cpu": f"{os.cpu_count()} cores, copies by up to {ab.get_num_threads()} threads",
        "C extension": native.C.__file__ if native.C else f"not used: {native.MISSING}",
        "CPU kernels": f"not used: {lacks}" if lacks else built,
        "CUDA kernel cache": disk.problem() or f"{kernels} kernels in {disk.folder()}",
        "cuda": gpu or f"{context.count()} devices",
    }


def _version(name: str, install: str, owners: Any) -> str:
    """Return the version of a library's distribution, or how to install it."""
    package = PACKAGES.get(name, name.partition(".")[0])
    try:
        here = find_spec(package) is not None
    except ModuleNotFoundError:  # the parent package is missing too
        here = False
    if not here and not all_entries()[name].declared:
        return f"not installed: pip install '{install}'"
    found = owners.get(package.partition(".")[0], [install])
    own = package.replace(".", "-")  # one of several in a namespace package
    try:
        return version(own if own in found else found[0])
    except PackageNotFoundError:  # also of any folder of that name on the path
        return "of unknown version"


def _explain(args: argparse.Namespace) -> int:
    source = known_name(args.source)
    if source == "jax":  # for 64-bit data types
        os.environ.setdefault("JAX_ENABLE_X64", "1")
    x = _array(source, args)
    copy = None if args.copy is None else args.copy == "true"
    route = ab.explain(
        x, args.target, device=args.device, copy=copy, alias_readonly=args.alias_readonly
    )
    info = ab.inspect(x)
    if args.json:
        array = info._asdict() | {"dtype": info.dtype_name, "device": str(info.device)}
        fields = route._asdict() | {"device": str(route.device)}
        print(json.dumps({"array": array, "route": fields}, indent=1, default=str))
    else:
        readonly = ", read-only" if info.readonly else ""
        print(f"{source} {info.dtype_name} {info.shape}, {info.layout}{readonly}")
        print(route)
    return REFUSED if route.kind == "refuse" else 0


def _array(library: Any, args: argparse.Namespace) -> Any:
    """Return an array of a library; ValueError if it has no such array."""
    if not args.shape and args.layout != "contiguous":
        raise ValueError(f"an array without axes is not {args.layout}")
    array = LAYOUTS[args.layout](np.zeros(args.shape, numpy_dtype(ab.DataType(args.dtype))))
    if args.readonly:
        array.flags.writeable = False
    home = ab.Device(min(library_named(library).accepts.devices))  # the CPU has the lowest number
    x = ab.convert(array, library, device=home)
    info, wanted = ab.inspect(x), ab.inspect(array)
    if info.layout != wanted.layout or info.readonly < wanted.readonly:
        readonly = "read-only " if args.readonly else ""
        raise ValueError(f"{library} has no {readonly}{args.layout} arrays of this kind")
    return x
