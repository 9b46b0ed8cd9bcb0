"""What is checked of a release before anybody can install it: ``make release-check``."""
