"""Programs that nobody here wrote, run unchanged on Arrays: one table, its runner and its page."""
