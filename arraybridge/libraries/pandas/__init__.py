"""pandas: columns and frames as sources."""
