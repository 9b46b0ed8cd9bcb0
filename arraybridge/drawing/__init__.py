"""Pictures of memory and of routes: SVG and HTML, for notebooks and for the documentation.

Drawn from descriptions alone: no function here sees an array, but for the text of its values that
`array_html` is given. Nothing imports this before a notebook asks for a picture.

=================  =================================================================
`cells`            which element lies in which item of memory
`canvas`           the SVG, its words and its boxes
`memory`           the boxes of a layout
`routes`           the two ends of a route, and what lies between
`pages`            HTML for notebooks
=================  =================================================================
"""

from .memory import memory_svg
from .pages import array_html, info_html, route_html, table_html
from .routes import route_svg

__all__ = ["array_html", "info_html", "memory_svg", "route_html", "route_svg", "table_html"]
