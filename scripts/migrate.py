"""Migrate `.memory.md` or another program's memory: the command `openclaw-memory migrate`."""

import sys

from openclaw_memory.cli import main

if __name__ == "__main__":
    main(["migrate", *sys.argv[1:]])
