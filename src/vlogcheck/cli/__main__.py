"""`python -m vlogcheck.cli`."""

from vlogcheck.cli import main

main()
