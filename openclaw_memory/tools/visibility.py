"""Decide what is shown, and to whom: who reads an answer, what is private, and how many characters there are."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from openclaw_memory.config.sections import Citations
from openclaw_memory.errors import (
    ConfigError,
    InvalidInputError,
    OpenClawMemoryError,
    PathNotAllowedError,
    WorkspaceError,
)
from openclaw_memory.flush.state import chat_type, names_one, names_several
from openclaw_memory.text.redaction import redact
from openclaw_memory.types import SOURCES, SearchResult, Source
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.files import LEFT_OUT
from openclaw_memory.types.records import timestamp
from openclaw_memory.workspace.paths import (
    LOWER_CASE_NOTE,
    NOTES_FOLDER,
    ROOT_NOTES,
    is_record,
    is_transcript,
    transcripts_place,
)
from openclaw_memory.workspace.transcript_records import LABELS, said

if TYPE_CHECKING:
    from openclaw_memory.conversation.messages import Message
    from openclaw_memory.memory import Memory
    from openclaw_memory.search import SearchResults
    from openclaw_memory.search.request import SearchFilter, SearchOptions
    from openclaw_memory.text.policies import Policies
    from openclaw_memory.workspace import Workspace

_PRIVATE_NAMES = frozenset(name.casefold() for name in (*ROOT_NOTES, LOWER_CASE_NOTE))

# So many more answers are asked for where some of the first must not be shown: a long-term memory of 2,000 words, as
# OpenClaw advises, may take that many places before it is left out, and so may a conversation that is in view.
_MORE_ANSWERS = 60
_SPEAKERS = tuple(f"{label}: " for label in LABELS.values())


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
        raise ConfigError(f"source {source!r} is unknown; use {', '.join(map(repr, SOURCES))}, or leave it out for all")


def audience_of(memory: Memory, session_key: str | None, source: Source | None = None) -> Audience:
    """Return the audience of a session, by its key and its entry in `sessions.json`; without a key a direct chat's.

    That file is read again once it has changed.

    Raises:
        ConfigError: `source` is unknown.
        InvalidInputError: `session_key` is no text.
    """
    check_source(source)
    if session_key is not None and not isinstance(session_key, str):
        raise InvalidInputError(f"session_key must be a text such as 'agent:main:main', not {session_key!r}")
    rules = memory.config.recall
    is_ones, unknown = names_one(session_key), ""
    try:
        kinds = _kinds(memory, session_key) if session_key else set()
    except OpenClawMemoryError as error:
        kinds = {"direct" if is_ones else "unknown"}
        unknown = "" if is_ones else f"it is unknown who reads along: {error}"
    is_several = not kinds <= {"direct"}
    if not (is_several or rules.assume_direct or kinds or is_ones):
        is_several, unknown = True, "nothing says that the user alone reads, as recall.assume_direct = false wants it"
    citations = shows_citations(rules.citations, session_key) and (rules.citations == "on" or not is_several)
    return Audience(not (is_several or names_several(session_key)), citations, source, unknown)


def _kinds(memory: Memory, session_key: str) -> set[str]:
    """Return what `sessions.json` says of the chat of a session, which it may list under another key too."""
    workspace = memory.workspace
    states = memory.sessions.flushes.read(transcripts_place(workspace.root, workspace.sessions))
    own = [(key, state.chat_type) for key, state in states.items() if session_key in {key, state.session_id}]
    by_key = {"group" if names_several(key) else "direct" for key, _ in own if names_several(key) or names_one(key)}
    return by_key | {kind.strip().lower() for _, kind in own if kind}


def shows_citations(mode: Citations, session_key: str | None) -> bool:
    """Return whether answers name file and lines.

    Args:
        mode: Always (`on`), never (`off`), or in direct chats alone (`auto`).
        session_key: The session; without a key it is a direct chat.
    """
    return mode == "on" or (mode == "auto" and chat_type(session_key) == "direct")


def is_private(path: str) -> bool:
    """Whether a memory file is for direct chats alone: what stays true of the user, records, and what was said.

    Case is ignored, as on disks that ignore it.
    """
    if is_transcript(path) or is_record(path):
        return True
    return (
        not path.startswith(f"{NOTES_FOLDER}/")
        and posixpath.basename(get_plain_name(path.casefold())) in _PRIVATE_NAMES
    )


def is_shown(memory: Memory, session_key: str | None) -> Callable[[str], bool] | None:
    """Return whether the readers of a session may be shown a file, as a function of its path; None for every file.

    Args:
        memory: The memory.
        session_key: The session; see `memory_tools`.
    """
    return None if audience_of(memory, session_key).private else lambda path: not is_private(path)


def cites(memory: Memory, session_key: str | None) -> bool:
    """Return whether the readers of a session are shown files and lines, as `config.recall.citations` wants it.

    Args:
        memory: The memory.
        session_key: The session; see `memory_tools`.
    """
    return audience_of(memory, session_key).citations


def search_for(
    memory: Memory,
    query: str,
    *,
    session_key: str | None,
    max_results: int | None = None,
    max_chars: int | None = None,
    min_score: float | None = None,
    filter: SearchFilter | Mapping[str, Any] | None = None,  # noqa: A002 - as `Memory.search` has it
    options: SearchOptions | Mapping[str, Any] | None = None,
) -> SearchResults:
    """Return what `Memory.search` finds, without what the readers of a session may not be shown.

    Args:
        memory: The memory.
        query: What to search for.
        session_key: The session; see `memory_tools`.
        max_results: As for `Memory.search`.
        max_chars: As for `Memory.search`.
        min_score: As for `Memory.search`.
        filter: As for `Memory.search`.
        options: As for `Memory.search`.

    Raises:
        QueryError: As `Memory.search`.
    """
    audience = audience_of(memory, session_key)
    return found(memory, query, audience, max_results, min_score, max_chars, filter=filter, options=options)


def record_fields(memory: Memory, hit: SearchResult) -> dict[str, Any]:
    """Return `{"record": ...}` for lines of a record: its fields as `Record.to_dict` has them, and `expires_at`.

    The confidence is in hundredths. Other lines, those of a damaged record, and those that an engine without records
    has found, have none: {}.

    Args:
        memory: The memory.
        hit: A result of its search.
    """
    if not is_record(hit.path):
        return {}
    record = None
    with suppress(WorkspaceError, ConfigError):
        record = memory.records.read(hit.path)
    if record is None:
        return {}
    expires = None if record.expires_at is None else timestamp(record.expires_at)
    return {"record": {**record.to_dict(), "confidence": round(record.confidence, 2), "expires_at": expires}}


def check_path(workspace: Workspace, path: str, audience: Audience) -> None:
    """Raise PathNotAllowedError if `path` may not be shown to this audience, or is not a memory file.

    Raises:
        NotFoundError: As `Workspace.locate`.
    """
    place = workspace.locate(path)
    if audience.source is not None and is_transcript(place.path) != (audience.source == "sessions"):
        raise PathNotAllowedError(f"{place.path} cannot be seen here: these tools are for source={audience.source!r}")
    if is_private(place.path):
        check_private(place.path, audience)


def check_private(path: str, audience: Audience) -> None:
    """Raise PathNotAllowedError if this audience may not be shown what is private, such as `path`."""
    if not audience.private:
        raise PathNotAllowedError(
            f"{path} is private, and {audience.unknown or 'others read along here'}: it is shown in direct chats "
            "alone. Use the notes in memory/"
        )


def found(
    memory: Memory,
    query: str,
    audience: Audience,
    max_results: int | None,
    min_score: float | None,
    max_chars: int | None,
    in_view: Iterable[Message] = (),
    filter: SearchFilter | Mapping[str, Any] | None = None,  # noqa: A002 - as `Memory.search` has it
    options: SearchOptions | Mapping[str, Any] | None = None,
) -> SearchResults:
    """Return the results that this audience may see, without those from transcripts that are in the messages `in_view`.

    Secrets are masked.

    Raises:
        QueryError: As `Memory.search`.
    """
    from openclaw_memory.search.budget import within
    from openclaw_memory.search.request import SearchFilter, SearchOptions, SearchRequest, apply_request

    policies = memory.workspace.policies
    in_words = cache(lambda: _as_transcript(in_view, policies))

    def may_be_shown(hit: SearchResult) -> bool:
        if not audience.private and is_private(hit.path):
            return False
        return hit.source != "sessions" or not all(
            _is_in(in_words(), line) for line in hit.snippet.splitlines() if line != LEFT_OUT.strip()
        )

    def show(hits: Iterable[SearchResult]) -> list[SearchResult]:
        return [replace(hit, snippet=redact(hit.snippet)) for hit in hits if may_be_shown(hit)]

    filter, options = SearchFilter.read(filter), SearchOptions.read(options)  # noqa: A001
    source = audience.source or filter.source or (None if audience.private else "memory")
    filter = replace(filter, source=source)  # noqa: A001
    rules = apply_request(
        SearchRequest(query, max_results, max_chars, min_score, options=options), memory.config.search
    )
    for more in (0, _MORE_ANSWERS):
        results = memory.search(
            query,
            max_results=rules.max_results + more,
            max_chars=None if max_chars is None else max_chars + more * rules.snippet_chars,
            min_score=min_score,
            filter=filter,
            options=options,
        )
        visible = show(results)
        if len(visible) == len(results):
            break
    # Counts of a search would tell of what is private too.
    filtered, omitted = (results.filtered, results.omitted) if audience.private else (0, 0)
    wanted = visible[: rules.max_results]
    shown, cut = (tuple(wanted), 0) if max_chars is None else within(wanted, max_chars)
    omitted = min(cut + omitted, rules.max_results - len(shown))
    return replace(results, results=shown, rejected=tuple(show(results.rejected)), filtered=filtered, omitted=omitted)


def _as_transcript(messages: Iterable[Message], policies: Policies) -> str:
    """Return the messages as transcripts are searched and shown, each line between two newlines."""
    lines = (said({"type": "message", "message": message}, muted=False, policies=policies)[0] for message in messages)
    return "\n".join(("", *lines, ""))


def _is_in(transcript: str, line: str) -> bool:
    # A long line is found in pieces, of which only the first one says who spoke.
    line = line.strip()
    return (f"\n{line}" if line.startswith(_SPEAKERS) else line) in transcript
