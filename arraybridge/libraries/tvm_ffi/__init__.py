"""Apache TVM FFI."""
