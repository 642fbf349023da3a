"""Filter chunks by path and metadata: the test, the ranges of files that it looks at, and names of metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

Scalar: TypeAlias = str | int | float | bool
Metadata: TypeAlias = Mapping[str, Scalar | None]  # None for a value that a store does not keep
# Says by the path of its file and its metadata whether a chunk counts. It is hashable, and what it says never changes:
# a store may remember it for equal ones. It may have `files`, a tuple of `FileRange` outside of which no file passes: a
# store then reads the chunks of these files alone.
Where: TypeAlias = Callable[[str, Metadata], bool]

# Names of metadata that are the library's own: a document's metadata of such a name are not filtered by in the index.
OWN = ":"
DAY, TAGS, NAMES = ":day", ":tags", ":names"
TYPE, KEY, USER, CONFIDENCE, SURE_AT = ":type", ":key", ":user", ":confidence", ":sure_at"  # of records
DOCUMENT, PART_OF = ":document", ":part_of"  # of documents: their key, and the id of what they are a part of
LARGEST = 2**63  # whole numbers beyond it are not the same in every store


class FileRange(NamedTuple):
    """The indexed files with `text` in a column or, with `is_prefix`, at its beginning; it is not empty."""

    column: Literal["path", "doc_id", "part_of"]
    text: str
    is_prefix: bool = False


def get_ranges(test: Where) -> tuple[FileRange, ...]:
    """Return the ranges that hold all files that pass a test, or () if they are unknown."""
    ranges: tuple[FileRange, ...] = getattr(test, "files", ())
    return ranges


def classify(value: object) -> str | None:
    """Return "text", "number" or "bool", or None for a value that a store cannot filter by."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "text" if _is_unicode(value) else None
    if isinstance(value, int):
        return "number" if -LARGEST <= value < LARGEST else None
    return "number" if isinstance(value, float) and math.isfinite(value) else None


def _is_unicode(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= sign <= "\udfff" for sign in text)
