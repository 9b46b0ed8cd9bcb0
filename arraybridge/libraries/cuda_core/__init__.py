"""cuda.core."""
