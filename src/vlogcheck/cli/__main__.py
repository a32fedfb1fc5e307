"""`python -m vlogcheck.cli`."""

from vlogcheck.cli import process

process()
