"""What a migration is made of: a plan of what goes where, and a report of what was written and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from openclaw_memory.types.exchange import Document
from openclaw_memory.types.snapshots import Snapshot

Format: TypeAlias = Literal["markdown", "mem0", "langgraph", "llama-index", "chatgpt", "claude", "snapshots"]


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of a Markdown file that go to the note at `path`; `first_line` of the old file is their first, 1-based."""

    path: str
    first_line: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlacedDocument:
    """A document to add, and its place in the old file, such as `results[3]`."""

    place: str
    document: Document


@dataclass(frozen=True, slots=True)
class PlacedItem:
    """An item of a LangGraph store, and its place in the old file; `expires_at` is when it ceases to be, if it does."""

    place: str
    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that goes to the transcript of `session_id`, and its place in the old file.

    Each entry is one of OpenClaw's, with `id` and `parentId`: parents come before their children, and the end of the
    branch that was shown last is the last of all.
    """

    place: str
    session_id: str
    entries: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class OldSnapshot:
    """A snapshot of an earlier plugin: the name of its file, and what it becomes; `is_there` if it is there already."""

    name: str
    snapshot: Snapshot
    is_there: bool


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of the old file that is not in the new layout: its place, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What of a file goes where; made without writing anything.

    Attributes:
        format: The format that was read.
        sections: Lines for notes.
        documents: Documents to add.
        items: Items of a LangGraph store.
        conversations: Conversations for transcripts.
        left_out: What goes nowhere, and why.
        notices: What a person should know besides.
    """

    format: Format
    sections: tuple[Section, ...] = ()
    documents: tuple[PlacedDocument, ...] = ()
    items: tuple[PlacedItem, ...] = ()
    conversations: tuple[Conversation, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """What a file or folder got: sections, documents, items, messages or snapshots, added and there before."""

    path: str
    added: int
    existed: int


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration did, or would do.

    Attributes:
        format: The format that was read.
        source: The file or folder that was read; it is never changed.
        is_dry_run: Whether nothing was written.
        backups: The copies next to the source. Empty for a dry run.
        files: What each file got.
        left_out: What of the source is not in the new layout, and why.
        notices: What a person should know besides.
    """

    format: Format
    source: str
    is_dry_run: bool
    backups: tuple[str, ...]
    files: tuple[MigratedFile, ...]
    left_out: tuple[LeftOut, ...]
    notices: tuple[str, ...]

    @property
    def added(self) -> int:
        """How many sections, documents, items, messages and snapshots were added."""
        return sum(one.added for one in self.files)

    @property
    def existed(self) -> int:
        """How many sections, documents, items, messages and snapshots were there already."""
        return sum(one.existed for one in self.files)
