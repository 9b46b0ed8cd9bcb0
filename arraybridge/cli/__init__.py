"""The command line, ``python -m arraybridge``."""
