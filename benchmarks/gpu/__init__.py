"""Everything that only a GPU can tell, in one call of at most eight minutes (docs/gpu.md).

``python -m benchmarks.gpu`` writes a Markdown file and a chart. Each part runs in a process of its own
(`parts`), writes what it finds at once (`record`), and is begun again behind what crashed or hung.
"""
