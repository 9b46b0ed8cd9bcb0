"""Arrays of no library that arraybridge knows: objects that speak a protocol, and capsules."""
