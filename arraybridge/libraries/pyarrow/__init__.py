"""Apache Arrow."""
