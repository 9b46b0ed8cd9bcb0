"""Everything that only a GPU can show, in two calls of at most six and a half minutes (docs/gpu.md).

``python -m benchmarks.gpu`` writes a file of rows, and of them a Markdown file. Each part runs in a
process of its own (`parts`), writes what it finds at once (`record`), and is begun again behind what crashed or hung.
"""
