"""Plan a route from data alone, then execute it; the registries of libraries and kernels."""
