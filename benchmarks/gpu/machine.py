"""The machine: its devices, its CUDA toolkit, and the missing requirements."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ..timing import machine, versions

DISTRIBUTIONS = (
    "numpy torch cupy-cuda13x cupy-cuda12x jax jaxlib jax-cuda13-plugin numba numba-cuda llvmlite cuda-bindings "
    "cuda-pathfinder nvidia-nvvm nvidia-cuda-nvcc nvidia-nvjitlink array-api-compat hypothesis pytest"
).split()
FEATURES = "name,driver_version,memory.total,clocks.max.mem,clocks.max.sm,clocks.sm,temperature.gpu,power.draw"

# What tests/conftest.py, tests/support and tests/gpu/test_gpu.py import, and the package itself.
NEEDED = "numpy numba llvmlite array_api_compat torch".split()
WANTED = {
    "cupy": "its copies and transfers are not compared, its tests skip",
    "jax": "its copies are not compared, its tests skip",
    "numba_cuda": "arraybridge's kernels cannot be compiled: pip install numba-cuda",
    "pytest": "the tests cannot run",
    "hypothesis": "no test of a GPU needs it",
}


def toolkit() -> Path | None:
    """The folder of the CUDA toolkit: CUDA_HOME or CUDA_PATH, nvcc's, or /usr/local/cuda."""
    told = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    nvcc = shutil.which("nvcc")
    if nvcc is not None:
        told.append(str(Path(nvcc).resolve().parents[1]))
    folders = [Path(folder) for folder in told if folder and Path(folder).is_dir()]
    whole = [folder for folder in folders if (folder / "nvvm").is_dir()]  # what Numba needs of it
    return next(
        iter(whole or [folder for folder in folders if (folder / "bin" / "ptxas").exists()]), None
    )


def tool(name: str) -> str | None:
    """A program of the toolkit, such as compute-sanitizer."""
    found = shutil.which(name)
    root = toolkit()
    places = [] if root is None else [root / "bin" / name, root / "compute-sanitizer" / name]
    places += (
        sorted(Path("/opt/nvidia").glob(f"*/*/{name}")) if Path("/opt/nvidia").exists() else []
    )
    return found or next((str(place) for place in places if os.access(place, os.X_OK)), None)


def environment(scratch: Path) -> dict[str, str]:
    """The environment of the parts: the toolkit is found, JAX leaves memory to the others.

    numba-cuda finds NVVM by cuda-pathfinder: in the packages nvidia-nvvm or nvidia-cuda-nvcc, by the
    loader, then in nvvm/lib64 of CUDA_PATH. Where a toolkit has it elsewhere, the loader is shown the
    way, by a folder that holds nothing else. CUDA_PATH and CUDA_HOME are set to a toolkit with headers
    alone: other libraries compile with those that they find there.
    """
    env = dict(os.environ)
    env["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    env["TF_CPP_MIN_LOG_LEVEL"] = "3"
    env["PYTHONUNBUFFERED"] = "1"
    root = toolkit()
    if root is None:
        return env
    if (root / "include" / "cuda_runtime.h").is_file():
        env["CUDA_HOME"] = env["CUDA_PATH"] = str(root)
    env["PATH"] = os.pathsep.join([env.get("PATH", ""), str(root / "bin")])
    if not (root / "nvvm" / "lib64").is_dir():
        places = [root / "lib64", root / "lib", root / "nvvm" / "lib"]
        for library in (file for place in places for file in place.glob("libnvvm.so*")):
            only = scratch / "nvvm"
            only.mkdir(exist_ok=True)
            for name in ("libnvvm.so.4", "libnvvm.so"):
                link = only / name
                if not link.exists():
                    link.symlink_to(library.resolve())
            env["LD_LIBRARY_PATH"] = os.pathsep.join(
                filter(None, [env.get("LD_LIBRARY_PATH"), str(only)])
            )
            break
    return env


COMPILER = """
from arraybridge.kernels import cuda
from arraybridge.layout import canonical
(plan,) = cuda.plans((512, 512), (2048, 4), (4, 2048), 4)
from arraybridge.kernels.cuda import build
text = build.ptx(plan)
print(f"a kernel of {len(text):,} characters of PTX was compiled")
try:
    from cuda.pathfinder import load_nvidia_dynamic_lib
    print("NVVM:", load_nvidia_dynamic_lib("nvvm").abs_path)
except Exception as error:
    print("NVVM's place is not known:", error)
"""


def compiler(env: dict[str, str]) -> tuple[bool, str]:
    """Whether kernels can be compiled here, which needs no device, and the compiler's message."""
    try:
        run = subprocess.run(
            [sys.executable, "-c", COMPILER], env=env, capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        return False, "compiling a kernel took more than 120 s"
    said = (
        run.stdout.strip() if run.returncode == 0 else (run.stderr.strip() or "it died in silence")
    )
    said = "; ".join(said.splitlines()[-2:])
    if run.returncode and ("nvvm" in said.lower() or "libdevice" in said.lower()):
        root = toolkit()
        said += (
            f" (NVVM compiles Numba's kernels: the package nvidia-nvvm has it, or a toolkit in nvvm/lib64. "
            f"Looked in the packages, on the loader's path, and in {root or 'no toolkit, as none was found'})"
        )
    return run.returncode == 0, said


def missing() -> Iterator[str]:
    """The missing requirements without which nothing can be measured; a device comes last."""
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            yield f"{name} cannot be imported: {error}"
    try:
        import arraybridge
    except ImportError as error:
        yield f"arraybridge cannot be imported: {error}"
    else:
        for name in ("numpy", "torch", "cupy", "jax", "numba"):
            yield from _unimportable(arraybridge.__name__, name)
    torch = sys.modules.get("torch")
    if torch is not None and not torch.cuda.is_available():
        why = "it is built without CUDA" if torch.version.cuda is None else "PyTorch finds none"
        yield f"a CUDA device: {why}"


def _unimportable(package: str, library: str) -> Iterator[str]:
    """The bridge to a library must load wherever that library does."""
    try:
        importlib.import_module({"numba": "numba_cuda"}.get(library, library))
    except ImportError:
        return
    try:
        importlib.import_module(f"{package}.core.registry").library_named(library)
    except Exception as error:
        yield f"{package}.libraries.{library} cannot be imported: {type(error).__name__}: {error}"


def unwanted() -> list[str]:
    """The missing optional parts, and what is lost without them."""
    from importlib.util import find_spec

    return [f"no {name}: {loss}" for name, loss in WANTED.items() if find_spec(name) is None]


def described(env: dict[str, str]) -> list[str]:
    """Lines on the machine."""
    lines = [f"- {machine()}", f"- {versions(*DISTRIBUTIONS)}"]
    lines += [
        f"- `nvidia-smi`: {line}"
        for line in _output("nvidia-smi", f"--query-gpu={FEATURES}", "--format=csv,noheader")
    ]
    nvcc = _output("nvcc", "--version")
    root = toolkit()
    lines.append(f"- toolkit: {root or 'none found'}{'; ' + nvcc[-1] if nvcc else ''}")
    able, said = compiler(env)
    lines.append(f"- kernels {'can' if able else 'CANNOT'} be compiled: {said}")
    lines += [f"- {line}" for line in unwanted()]
    return lines


def _output(*command: str) -> list[str]:
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"not available: {error}"] if command[0] == "nvidia-smi" else []
    return run.stdout.strip().splitlines()
