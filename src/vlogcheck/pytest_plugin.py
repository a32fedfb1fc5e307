"""pytest plugin: recorded start-up logs as regression tests."""
