"""Entries of a memory with vectors of their own in LanceDB; the text of each is a Markdown document of the memory.

Importing this package loads nothing of LanceDB; `LanceEntries` needs the `lancedb` extra.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
