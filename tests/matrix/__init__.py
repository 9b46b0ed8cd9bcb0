"""Every case between every two libraries, beside the libraries' own conversions.

``python -m tests.matrix`` runs all and writes docs/matrix.md (``--write``); the tests run parts.
"""
