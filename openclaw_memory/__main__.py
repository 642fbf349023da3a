"""`python -m openclaw_memory`: the command, for where scripts are not on the path."""

from openclaw_memory.cli import main

main()
