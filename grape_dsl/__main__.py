"""`python -m grape_dsl` is `grape`."""

from grape_dsl.cli import main

main()
