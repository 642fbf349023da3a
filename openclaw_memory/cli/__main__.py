"""Run the command as `python -m openclaw_memory.cli`, for where scripts are not on the path."""

from openclaw_memory.cli import main

main()
