"""One part, in this process: python -m benchmarks.gpu.part NAME FILE SECONDS."""

from __future__ import annotations

import faulthandler
import importlib
import sys
from pathlib import Path

from .record import Record


def main() -> int:
    name, path, seconds = sys.argv[1:]
    faulthandler.enable()
    record = Record(Path(path), name, float(seconds))
    importlib.import_module(f"benchmarks.gpu.{name}").run(record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
