"""Records: facts with a type, a key and a value, each a Markdown file, that are settled, confirmed and forgotten."""

from openclaw_memory.records.records import Records
from openclaw_memory.types.records import Record, RecordSource, Remembered

__all__ = ["Record", "RecordSource", "Records", "Remembered"]
