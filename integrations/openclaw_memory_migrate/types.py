"""Define the plan of a migration and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from openclaw_memory.types import Document, Snapshot

Format: TypeAlias = Literal["markdown", "mem0", "chatgpt", "claude", "snapshots"]


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
    """A converted snapshot of an earlier plugin, and the name of its file; `is_there` if it exists already."""

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
    """A plan for a file, made without writing anything.

    Attributes:
        format: The format that was read.
        sections: Lines for notes.
        documents: Documents to add.
        conversations: Conversations for transcripts.
        left_out: The items that go nowhere, and why.
        notices: Further notices for the user.
    """

    format: Format
    sections: tuple[Section, ...] = ()
    documents: tuple[PlacedDocument, ...] = ()
    conversations: tuple[Conversation, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """Count the sections, documents, messages or snapshots of a file or folder: added, and there before."""

    path: str
    added: int
    existed: int


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The result of a migration, or of a dry run.

    Attributes:
        format: The format that was read.
        source: The file or folder that was read; it is never changed.
        is_dry_run: Whether nothing was written.
        backups: The copies next to the source. Empty for a dry run.
        files: The counts of each file.
        left_out: The items of the source that are not in the new layout, and why.
        notices: Further notices for the user.
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
        """Count the sections, documents, messages and snapshots that were added."""
        return sum(file.added for file in self.files)

    @property
    def existed(self) -> int:
        """Count the sections, documents, messages and snapshots that were there already."""
        return sum(file.existed for file in self.files)
