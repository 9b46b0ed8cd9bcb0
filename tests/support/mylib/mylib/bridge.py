"""What arraybridge imports when a Grid arrives, or when somebody converts to "mylib"."""

import arraybridge as ab

from . import Grid


class GridLibrary(ab.Library):
    """Grids, whose memory is shared."""

    name = "mylib"
    accepts = ab.Accepts(
        library="mylib", tested="1.2", dtypes=frozenset({"float64"}), readonly=True
    )

    def owns(self, array_type):
        return array_type is Grid

    def export(self, x, stream=None):
        return ab.dlpack.acquire(x.values)

    def wrap(self, tensor):
        return Grid(ab.convert(tensor, "numpy"))


LIBRARY = GridLibrary()
