"""`python -m vlogcheck`."""

from vlogcheck.cli import main

main()
