"""Keep records: facts with a type, a key and a value, each in a Markdown file."""

from typing import TYPE_CHECKING

import lazy_loader

from openclaw_memory.types.records import Record, RecordSource

__all__ = ["Record", "RecordSource", "Records"]

if TYPE_CHECKING:
    from openclaw_memory.records.records import Records

# A search asks whether a record has expired, and loads no more than that.
__getattr__, __dir__ = lazy_loader.attach(__name__, submod_attrs={"records": ["Records"]})[0], __all__.copy
