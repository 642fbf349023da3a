"""Records: facts with a type, a key and a value, each a Markdown file, that are settled, confirmed and forgotten."""

from typing import TYPE_CHECKING

from openclaw_memory._lazy import late_names

__all__ = ["Record", "RecordSource", "Records", "Remembered"]

if TYPE_CHECKING:
    from openclaw_memory.records.records import Records
    from openclaw_memory.types.records import Record, RecordSource, Remembered

# A search asks whether a record has expired, and loads no more than that.
__getattr__, __dir__ = late_names(__name__, {"records": ("Record", "RecordSource", "Records", "Remembered")}, __all__)
