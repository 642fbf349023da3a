"""Define the items of a memory, and the plan and receipt of a forgetting."""

from __future__ import annotations

import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from openclaw_memory.types.files import Skipped, Span, format_citation
from openclaw_memory.types.records import SourceKind

# A note of a day, another note, a fact, what a program added, a conversation, the end of one.
Kind: TypeAlias = Literal["day", "note", "record", "document", "transcript", "snapshot"]
# A file goes as a whole, lines of a note go, or messages are replaced by what says nothing.
Action: TypeAlias = Literal["remove", "lines", "messages"]


class Item(Struct, frozen=True):
    """One thing that is remembered: a file.

    Attributes:
        path: The path by which it is searched and read.
        kind: Its kind.
        date: The day that it is of: the first of the lines of a note or of the messages of a transcript, when a record,
            document or snapshot was made. None where it is of no day.
        last_date: The latest day that it is of: that of the last message or line, `date` of all others.
        changed: When the file was last written (UTC).
        type: The type of a record, None for all others.
        key: The key of a record, the id of a document, the session of a snapshot.
        source: Who says so: of a record as it says; a person's file, a program's document, a conversation.
        sensitivity: That of a record, None for all others.
        size: In bytes.
        lines: How many lines the file has.
        problem: Why a record is shown nowhere: no signature vouches for its file. None for all others.
    """

    path: str
    kind: Kind
    date: datetime.date | None
    last_date: datetime.date | None
    changed: datetime.datetime
    type: str | None
    key: str | None
    source: SourceKind | str
    sensitivity: str | None
    size: int
    lines: int
    problem: str | None = None


class Step(Struct, frozen=True):
    """One change of a plan: to a file, or to its lines `spans`, with the reason.

    `hash` is the SHA-256 of the first `size` bytes of the file: all of it when it was planned.
    """

    path: str
    kind: Kind
    action: Action
    spans: tuple[Span, ...]
    reason: str
    hash: str
    size: int

    @property
    def citation(self) -> str:
        """The file, or its lines that go."""
        return format_citation(self.path, *self.spans) if self.spans else self.path


class Review(Struct, frozen=True):
    """A place that may hold more and is not touched: `where` is a path or a citation, as `paths` takes it."""

    where: str
    reason: str


class ForgetPlan(Struct, frozen=True):
    """A plan of a forgetting: nothing was changed yet.

    Attributes:
        steps: The changes, by path.
        review: Items that a person has to look at.
        sessions: The keys of `sessions.json` that go with their transcripts.
        hash: Names this very plan; another one has another hash.
    """

    steps: tuple[Step, ...]
    review: tuple[Review, ...]
    sessions: tuple[str, ...]
    hash: str

    def __bool__(self) -> bool:
        return bool(self.steps or self.sessions)


class ForgetReceipt(Struct, frozen=True):
    """The result of a plan.

    Attributes:
        plan: The plan.
        is_dry_run: Whether nothing was done, but planned.
        forgotten: The paths and citations that are gone from the files.
        remaining: Items that could not go, or keepers of copies that this library does not touch, and why.
        is_erased: Whether the index, its keyword tables, vectors and log hold nothing of it any more.
    """

    plan: ForgetPlan
    is_dry_run: bool = True
    forgotten: tuple[str, ...] = ()
    remaining: tuple[Skipped, ...] = ()
    is_erased: bool = False
