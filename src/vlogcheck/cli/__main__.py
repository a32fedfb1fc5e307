"""`python -m vlogcheck.cli`."""

from vlogcheck._process import process

process()
