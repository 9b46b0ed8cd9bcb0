"""Plan a conversion from metadata, then execute it; the registries of libraries and kernels."""
