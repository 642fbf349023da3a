"""Agent memory as plain Markdown, found again with cited lines.

A workspace is a folder with `MEMORY.md` and dated notes in `memory/`. Those files are the truth; the index is
derived from them and may be deleted at any time.

>>> import tempfile
>>> from openclaw_memory import Memory
>>> folder = tempfile.TemporaryDirectory()
>>> memory = Memory.open(folder.name)

Write a note, bring the index up to date, and ask. A result names the lines that it shows:

>>> memory.append("Anna moved the launch to Friday, because the venue is free then.", date="2026-11-21").path
'memory/2026-11-21.md'
>>> memory.sync().added
('memory/2026-11-21.md',)
>>> best = memory.search("When is the launch?")[0]
>>> best.path
'memory/2026-11-21.md'
>>> best.end_line
3
>>> best.snippet.splitlines()[-1]
'Anna moved the launch to Friday, because the venue is free then.'

Read around it, straight from the file:

>>> memory.get(best.path, start=1, lines=1).text.strip()
'# 2026-11-21'

The status shows the contents of the index, and ways to improve it:

>>> memory.status().files
1
>>> memory.close()
>>> folder.cleanup()
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
