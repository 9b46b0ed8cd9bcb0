"""dpnp."""
