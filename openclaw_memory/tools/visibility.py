"""Decide who reads an answer: whether they see citations, and whether what is private may be shown to them."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from openclaw_memory.config.sections import Citations
from openclaw_memory.conversation.session_key import chat_type, names_one, names_several
from openclaw_memory.errors import ConfigError, OpenClawMemoryError, PathNotAllowedError
from openclaw_memory.types import SOURCES, Source
from openclaw_memory.workspace.paths import (
    LOWER_CASE_NOTE,
    NOTES_FOLDER,
    ROOT_NOTES,
    is_transcript,
    locate,
    transcripts_place,
)

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory
    from openclaw_memory.workspace import Workspace

_PRIVATE_NAMES = frozenset(name.casefold() for name in (*ROOT_NOTES, LOWER_CASE_NOTE))


@dataclass(frozen=True, slots=True)
class Audience:
    """Who reads an answer, and what it may draw on.

    `private` says that the user alone reads it, `citations` that file and lines are shown. `source` limits it to notes
    ("memory") or transcripts ("sessions"); None means both. `unknown` is why it is unknown who reads it, which then
    counts as several people; "" if that is known.
    """

    private: bool = True
    citations: bool = True
    source: Source | None = None
    unknown: str = ""


def checked_memory(memory: object) -> Memory:
    """Return `memory` if it is one.

    Args:
        memory: What was passed as the memory.

    Raises:
        TypeError: It is something else, such as the path of its folder.
    """
    from openclaw_memory.memory import Memory

    if not isinstance(memory, Memory):
        raise TypeError(f"memory must be a Memory, not {memory!r:.80}: open one with Memory.open(folder)")
    return memory


def check_source(source: object) -> None:
    """Raise ConfigError for an unknown source."""
    if source is not None and source not in SOURCES:
        raise ConfigError(f"source {source!r} is unknown; use {', '.join(map(repr, SOURCES))}, or None for all")


def audience_of(memory: Memory, session_key: str | None, source: Source | None = None) -> Audience:
    """Return the audience of a session, by its key and its entry in `sessions.json`; without a key a direct chat's.

    That file is read again once it has changed.

    Raises:
        ConfigError: `source` is unknown.
    """
    check_source(source)
    mode = memory.config.recall.citations
    is_several, unknown = False, ""
    if session_key:
        try:
            is_several = _is_several(memory, session_key)
        except OpenClawMemoryError as error:
            is_several = not names_one(session_key)
            unknown = f"it is unknown who reads along: {error}" if is_several else ""
    citations = shows_citations(mode, session_key) and (mode == "on" or not is_several)
    return Audience(not (is_several or names_several(session_key)), citations, source, unknown)


def _is_several(memory: Memory, session_key: str) -> bool:
    """Whether `sessions.json` says that a session, which it may list under another key too, is not a direct chat."""
    workspace = memory.workspace
    states = memory._flushes.read(transcripts_place(workspace.root, workspace.sessions))
    return any(
        names_several(key) or (state.chat_type or "direct").strip().lower() != "direct"
        for key, state in states.items()
        if session_key in {key, state.session_id}
    )


def shows_citations(mode: Citations, session_key: str | None) -> bool:
    """Return whether answers name file and lines.

    Args:
        mode: Always (`on`), never (`off`), or in direct chats alone (`auto`).
        session_key: The session; without a key it is a direct chat.
    """
    return mode == "on" or (mode == "auto" and chat_type(session_key) == "direct")


def is_private(path: str) -> bool:
    """Whether a memory file is for direct chats alone: what stays true of the user, and what was said to the agent.

    Case is ignored, as on disks that ignore it.
    """
    is_note = path.startswith(f"{NOTES_FOLDER}/")
    return is_transcript(path) or (not is_note and posixpath.basename(path).casefold() in _PRIVATE_NAMES)


def check_path(workspace: Workspace, path: str, audience: Audience) -> None:
    """Raise PathNotAllowedError if `path` may not be shown to this audience, or is not a memory file.

    Raises:
        NotFoundError: As `workspace.paths.locate`.
    """
    place = locate(workspace.root, workspace.rules, path, workspace.sessions)
    if audience.source is not None and is_transcript(place.path) != (audience.source == "sessions"):
        raise PathNotAllowedError(f"{place.path} cannot be seen here: these tools are for source={audience.source!r}")
    if not audience.private and is_private(place.path):
        raise PathNotAllowedError(
            f"{place.path} is private, and {audience.unknown or 'others read along here'}: it is shown in direct chats "
            "alone. Use the notes in memory/"
        )
