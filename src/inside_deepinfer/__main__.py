"""``python -m inside_deepinfer``."""

from inside_deepinfer.cli import main

main()
