"""Define `MemoryEntry`, a text with an importance and a category, and the filter of a search."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard, get_args

from openclaw_memory.errors import InvalidInputError, QueryError, suggest
from openclaw_memory.types import Document

if TYPE_CHECKING:
    from openclaw_memory.types import Vector

Category: TypeAlias = Literal["preference", "fact", "decision", "entity", "other"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
Since: TypeAlias = datetime | date | int

# What an entry counts as whose document says nothing else, or nothing that can be read.
USUAL_IMPORTANCE = 0.5
USUAL_CATEGORY: Category = "other"


def _get_time() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """Something to remember.

    Attributes:
        text: The text to remember. Returned texts have secrets masked, as in every search of the memory.
        importance: How much it matters, 0..1.
        category: "preference", "fact", "decision", "entity" or "other".
        id: Its id; by default a new one.
        created_at: When it was made, in milliseconds since 1970 (UTC); by default now.
        vector: Its vector, shape (dims,), where an entry was found by it or asked for by its id; else None.

    Raises:
        InvalidInputError: The text or the id is blank, or another value is not one of these.
    """

    text: str
    importance: float = USUAL_IMPORTANCE
    category: Category = USUAL_CATEGORY
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created_at: int = field(default_factory=_get_time)
    vector: Vector | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("text", "id"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise InvalidInputError(f"the {name} of an entry must be a text that says something, not {value!r:.80}")
        if not _is_share(self.importance):
            raise InvalidInputError(f"importance={self.importance!r:.80} is not a number from 0 to 1")
        if self.category not in CATEGORIES:
            raise InvalidInputError(_describe_unknown(self.category))
        if not _is_moment(self.created_at):
            raise InvalidInputError(f"created_at={self.created_at!r:.80} is not a number of milliseconds since 1970")


def make_document(entry: MemoryEntry) -> Document:
    """Return the document that keeps an entry."""
    about = {"importance": entry.importance, "category": entry.category, "created_at": entry.created_at}
    return Document(entry.id, entry.text, about)


def make_entry(document: Document, vector: Vector | None = None) -> MemoryEntry:
    """Return the entry of a document with a text; a value above it that cannot be one counts as the usual one."""
    importance, category, created = (document.metadata.get(name) for name in ("importance", "category", "created_at"))
    return MemoryEntry(
        document.text,
        float(importance) if _is_share(importance) else USUAL_IMPORTANCE,
        category if category in CATEGORIES else USUAL_CATEGORY,
        document.id,
        created if _is_moment(created) else 0,
        vector,
    )


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """A filter of entries by category, importance and time. All values are checked."""

    categories: tuple[Category, ...]
    min_importance: float
    since: int

    def __call__(self, entry: MemoryEntry) -> bool:
        return (
            entry.category in self.categories
            and entry.importance >= self.min_importance
            and entry.created_at >= self.since
        )


def make_filter(category: object, min_importance: float, since: Since | None) -> EntryFilter:
    """Return a checked filter.

    Raises:
        QueryError: An argument is not one for `LanceEntries.search`.
    """
    several = category if isinstance(category, Collection) and not isinstance(category, str) else (category,)
    for name in several if category is not None else ():
        if name not in CATEGORIES:
            raise QueryError(_describe_unknown(name))
    if not _is_share(min_importance):
        raise QueryError(f"min_importance={min_importance!r:.80} is not a number from 0 to 1")
    categories: list[Category] = [name for name in CATEGORIES if category is None or name in several]
    return EntryFilter(tuple(categories), float(min_importance), 0 if since is None else _to_milliseconds(since))


def _to_milliseconds(since: Since) -> int:
    if isinstance(since, datetime):
        moment = since if since.tzinfo else since.replace(tzinfo=UTC)
    elif isinstance(since, date):
        moment = datetime(since.year, since.month, since.day, tzinfo=UTC)
    elif _is_moment(since):
        return since
    else:
        raise QueryError(f"since={since!r:.80} is no time: pass a datetime, a date, or milliseconds since 1970")
    return max(0, int(moment.timestamp() * 1000))


def _is_share(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_moment(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _describe_unknown(name: object) -> str:
    return f"{name!r:.80} is not a category: {suggest(name, CATEGORIES)}choose one of {', '.join(CATEGORIES)}"
