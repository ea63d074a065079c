"""`python -m gpucost`."""

from gpucost.entry import main

main()
