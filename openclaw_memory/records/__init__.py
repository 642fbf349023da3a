"""Records: facts with a type, a key and a value, each a Markdown file, that are settled, confirmed and forgotten."""

from openclaw_memory.records.records import Records
from openclaw_memory.types.records import (
    Observation,
    Outcome,
    Record,
    RecordSource,
    RecordType,
    RecordVersion,
    Remembered,
    Sensitivity,
    SourceKind,
)

__all__ = [
    "Observation",
    "Outcome",
    "Record",
    "RecordSource",
    "RecordType",
    "RecordVersion",
    "Records",
    "Remembered",
    "Sensitivity",
    "SourceKind",
]
