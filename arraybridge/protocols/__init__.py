"""Arrays of unknown libraries: objects that support a protocol, and capsules."""
