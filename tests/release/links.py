"""Links that lead nowhere from the page of a package index."""

import re

RELATIVE = re.compile(
    r"""\]\((?!https?://|mailto:|#)[^)]*\)|(?:src|srcset|href)=["'](?!https?://|mailto:|#)"""
)
