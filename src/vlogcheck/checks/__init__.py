"""Checks: each is a module `vlNNN.py` with its page `vlNNN.md`. Adding a check is adding these two files."""
