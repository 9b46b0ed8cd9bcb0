"""The matrix as its maintainers see it: every case, beside the libraries' own conversions.

``python -m tests.matrix`` (``make matrix``) writes docs/matrix.md. What ships is smaller:
``python -m arraybridge matrix`` checks by arraybridge's own functions, this by each library's own.
"""
