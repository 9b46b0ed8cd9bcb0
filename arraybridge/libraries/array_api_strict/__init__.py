"""array-api-strict."""
