"""Pictures of memory and of routes: SVG and HTML, for notebooks and for the documentation.

They are drawn only from descriptions; no function here reads an array. Nothing imports this before
a notebook shows a picture.

=================  =================================================================
`cells`            which element is in which item of memory
`canvas`           SVG: its texts and boxes
`memory`           the boxes of a layout
`routes`           the two ends of a route, and the arrow between them
`pages`            HTML for notebooks
=================  =================================================================
"""

from .memory import memory_svg
from .pages import array_html, info_html, route_html, table_html
from .routes import route_svg

__all__ = ["array_html", "info_html", "memory_svg", "route_html", "route_svg", "table_html"]
