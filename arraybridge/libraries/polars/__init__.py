"""polars: columns and frames that NumPy can view."""
