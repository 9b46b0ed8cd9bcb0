"""Conversions by the libraries themselves that go wrong: the cases of cases.md, and what runs them."""
