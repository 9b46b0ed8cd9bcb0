"""The matrix as its maintainers see it: every case, beside what the libraries' own doors do.

``python -m tests.matrix`` (``make matrix``) writes docs/matrix.md. What ships is smaller:
``python -m arraybridge matrix`` checks by arraybridge's own functions, this by each library's own.
"""
