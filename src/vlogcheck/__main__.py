"""`python -m vlogcheck`."""

from vlogcheck._process import process

process()
