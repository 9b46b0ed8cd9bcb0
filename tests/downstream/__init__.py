"""Other projects' own tests, run on arraybridge's namespaces: ``python -m tests.downstream``."""
