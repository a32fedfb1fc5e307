"""`python -m vlogcheck`."""

from vlogcheck.cli import process

process()
