"""Decide which files, citations and results the readers of a session are shown."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from openclaw_memory.config.sections import Citations
from openclaw_memory.errors import ConfigError, OpenClawMemoryError, PathNotAllowedError
from openclaw_memory.flush.session import Session, get_chat_type, is_direct_key, is_group_key
from openclaw_memory.flush.state import read_states
from openclaw_memory.text.redaction import redact
from openclaw_memory.types import SearchResult, Source
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.files import LEFT_OUT, SOURCES
from openclaw_memory.workspace import paths
from openclaw_memory.workspace.transcript_records import LABELS, render_record

if TYPE_CHECKING:
    from openclaw_memory.conversation.messages import Message
    from openclaw_memory.memory import Memory
    from openclaw_memory.search.filters import SearchFilter
    from openclaw_memory.search.request import SearchOptions
    from openclaw_memory.search.results import SearchResults
    from openclaw_memory.text.policies import Policies
    from openclaw_memory.workspace import Workspace

_PRIVATE_NAMES = frozenset(name.casefold() for name in (*paths.ROOT_NOTES, paths.LOWER_CASE_NOTE))

# How many more results a search asks for if some must not be shown. A long-term memory of 2,000 words, the size that
# OpenClaw advises, may take that many places, and so may a conversation that is in view.
_MORE_RESULTS = 60
MOST_TALK = 2  # results of transcripts among those of notes
_SPEAKERS = tuple(f"{label}: " for label in LABELS.values())


class Audience(msgspec.Struct, frozen=True):
    """The readers of an answer.

    Attributes:
        is_user_alone: Whether nobody else reads it.
        citations: Whether files and lines are shown.
        source: Confines it to notes ("memory") or transcripts ("sessions"); None for both.
        reason: Why the readers are unknown, and count as several people; "" if they are known.
    """

    is_user_alone: bool = True
    citations: bool = True
    source: Source | None = None
    reason: str = ""

    def may_see(self, path: str) -> bool:
        """Return whether these readers may be shown a memory file."""
        return self.is_user_alone or not is_private(path)


def check_memory(memory: object) -> Memory:
    """Return `memory`, or refuse any other object.

    Raises:
        TypeError: It is something else, such as the path of a folder.
    """
    from openclaw_memory.memory import Memory

    if not isinstance(memory, Memory):
        raise TypeError(f"memory must be a Memory, not {memory!r:.80}: open one with Memory.open(folder)")
    return memory


def check_source(source: object) -> None:
    """Raise ConfigError for an unknown source."""
    if source is not None and source not in SOURCES:
        raise ConfigError(f"source {source!r} is unknown; use {', '.join(map(repr, SOURCES))}, or leave it out for all")


def find_audience(memory: Memory, session: Session | str | None, source: Source | None = None) -> Audience:
    """Find who reads the answers of a session, by its key and its entry in `sessions.json`.

    Args:
        memory: The memory.
        session: The session, or its key; see `memory_tools`. Without one it is that of the `run_values`
            around the call, or else a direct chat.
        source: As for `memory_tools`.

    Raises:
        ConfigError: `source` is unknown.
        InvalidInputError: `session_key` is not a text.
    """
    check_source(source)
    session = Session.find(session) or Session("")
    rules = memory.config.recall
    is_direct, reason = is_direct_key(session.key), ""
    try:
        kinds = _read_chat_types(memory, {session.key, session.id}) if session.key else set()
    except OpenClawMemoryError as error:
        kinds = {"direct" if is_direct else "unknown"}
        reason = "" if is_direct else f"it is unknown who reads along: {error}"
    kinds |= {session.kind} if session.kind else set()
    is_several = not kinds <= {"direct"}
    if not (is_several or rules.assume_direct or kinds or is_direct):
        is_several, reason = True, "the session is not known to be a direct chat (recall.assume_direct is false)"
    citations = has_citations(rules.citations, session.key) and (rules.citations == "on" or not is_several)
    return Audience(not (is_several or is_group_key(session.key)), citations, source, reason)


def _read_chat_types(memory: Memory, names: set[str | None]) -> set[str]:
    """Read the kinds of chat of a session from `sessions.json`, which may list it under another key too."""
    workspace = memory.workspace
    states = read_states(paths.locate_transcripts(workspace.root, workspace.sessions))
    own = [(key, state.chat_type) for key, state in states.items() if names & {key, state.session_id or key}]
    by_key = {"group" if is_group_key(key) else "direct" for key, _ in own if is_group_key(key) or is_direct_key(key)}
    return by_key | {kind.strip().lower() for _, kind in own if kind}


def has_citations(mode: Citations, session_key: str | None) -> bool:
    """Return whether a session is shown files and lines.

    Args:
        mode: Always (`on`), never (`off`), or in direct chats alone (`auto`).
        session_key: The session; without a key it is a direct chat.
    """
    return mode == "on" or (mode == "auto" and get_chat_type(session_key) in {None, "direct"})


def is_private(path: str) -> bool:
    """Return whether a memory file is for direct chats alone: long-term notes, records and transcripts.

    Case is ignored, as on disks that ignore it.
    """
    if paths.is_transcript(path) or paths.is_record(path):
        return True
    return (
        not path.startswith(f"{paths.NOTES_FOLDER}/")
        and posixpath.basename(get_plain_name(path.casefold())) in _PRIVATE_NAMES
    )


def check_path(workspace: Workspace, path: str, audience: Audience) -> None:
    """Raise PathNotAllowedError if `path` may not be shown to this audience, or is not a memory file.

    Raises:
        NotFoundError: As `Workspace.locate`.
    """
    path = workspace.resolve(path)
    if audience.source is not None and paths.is_transcript(path) != (audience.source == "sessions"):
        raise PathNotAllowedError(f"{path} cannot be seen here: these tools are for source={audience.source!r}")
    if is_private(path):
        check_private(path, audience)


def check_private(path: str, audience: Audience) -> None:
    """Raise PathNotAllowedError if this audience may not be shown private files, such as `path`."""
    if not audience.is_user_alone:
        raise PathNotAllowedError(
            f"{path} is private, and {audience.reason or 'others read along here'}: it is shown in direct chats "
            "alone. Use the notes in memory/"
        )


def search_for(
    memory: Memory,
    query: str,
    *,
    session_key: Session | str | None = None,
    audience: Audience | None = None,
    in_view: Iterable[Message] = (),
    max_results: int | None = None,
    max_chars: int | None = None,
    min_score: float | None = None,
    filter: SearchFilter | Mapping[str, Any] | None = None,  # noqa: A002 - as `Memory.search` has it
    options: SearchOptions | Mapping[str, Any] | None = None,
) -> SearchResults:
    """Search, and drop results that the readers of a session must not see, or already see. Secrets are masked.

    Of transcripts there are two at most, unless they alone are asked for.

    Args:
        memory: The memory.
        query: The query.
        session_key: The session; see `memory_tools`.
        audience: The readers, if they are known already.
        in_view: Messages that the model is shown anyway; transcripts that repeat them are left out.
        max_results: As for `Memory.search`.
        max_chars: As for `Memory.search`.
        min_score: As for `Memory.search`.
        filter: As for `Memory.search`.
        options: As for `Memory.search`.

    Raises:
        QueryError: As `Memory.search`.
    """
    from openclaw_memory.search.filters import SearchFilter
    from openclaw_memory.search.request import SearchOptions, SearchRequest, apply_request
    from openclaw_memory.search.results import cut_to_budget

    audience = audience or find_audience(memory, session_key)
    policies = memory.workspace.policies
    transcript = cache(lambda: _write_transcript(in_view, policies))

    def is_visible(hit: SearchResult) -> bool:
        if not audience.may_see(hit.path):
            return False
        # A long line comes in pieces, of which only the first names the speaker.
        return hit.source != "sessions" or not all(
            (f"\n{line}" if line.startswith(_SPEAKERS) else line) in transcript()
            for line in map(str.strip, hit.snippet.splitlines())
            if line != LEFT_OUT.strip()
        )

    def show(hits: Iterable[SearchResult]) -> list[SearchResult]:
        return [structs.replace(hit, snippet=redact(hit.snippet)) for hit in hits if is_visible(hit)]

    filter, options = SearchFilter.read(filter), SearchOptions.read(options)  # noqa: A001
    source = audience.source or filter.source or (None if audience.is_user_alone else "memory")
    filter = replace(filter, source=source)  # noqa: A001
    request = SearchRequest(query, max_results, max_chars, min_score, options=options)
    rules = apply_request(request, memory.config.search)
    for more in (0, _MORE_RESULTS):
        results = memory.search(
            query,
            max_results=rules.max_results + more,
            max_chars=None if max_chars is None else max_chars + more * rules.snippet_chars,
            min_score=min_score,
            filter=filter,
            options=options,
        )
        visible = show(results)
        talk = [hit for hit in visible if hit.source == "sessions"] if source is None else []
        if len(visible) == len(results):
            break
    best = [hit for hit in visible if hit not in talk[MOST_TALK:]][: rules.max_results]
    fitting, cut = (tuple(best), 0) if max_chars is None else cut_to_budget(best, max_chars)
    # The counts of a search would tell of private results too.
    filtered, omitted = (results.filtered, results.omitted) if audience.is_user_alone else (0, 0)
    omitted = min(cut + omitted, rules.max_results - len(fitting))
    return replace(results, results=fitting, rejected=tuple(show(results.rejected)), filtered=filtered, omitted=omitted)


def _write_transcript(messages: Iterable[Message], policies: Policies) -> str:
    """Write messages as transcripts are searched and shown, each line between two newlines."""
    lines = (
        render_record({"type": "message", "message": message}, muted=False, policies=policies)[0]
        for message in messages
    )
    return "\n".join(("", *lines, ""))
