"""Open files that this library makes through no symbolic link."""

from __future__ import annotations

import os

# Flags of `os.open` for a file that is no link. O_NONBLOCK: opening a FIFO must not wait for a writer.
NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
