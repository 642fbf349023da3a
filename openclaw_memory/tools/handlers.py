"""Run the five tools: what each does when a model calls it, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from openclaw_memory.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OpenClawMemoryError,
    PathNotAllowedError,
    WriteError,
)
from openclaw_memory.text.fence import fenced, without_recalled
from openclaw_memory.text.redaction import redact
from openclaw_memory.tools.schemas import TOOL_DESCRIPTIONS, TOOL_SCHEMAS, checked_arguments
from openclaw_memory.tools.visibility import (
    Audience,
    audience_of,
    check_path,
    check_source,
    checked_memory,
    found,
    within,
)
from openclaw_memory.types import Excerpt, SearchResult, Source, Tool, ToolAnswer
from openclaw_memory.types.files import cited
from openclaw_memory.workspace.paths import is_transcript
from openclaw_memory.workspace.safe_read import DEFAULT_CHARS

if TYPE_CHECKING:
    from openclaw_memory.memory import Memory

# The first that fits names the status; the last one is the root of them all.
STATUSES: tuple[tuple[type[OpenClawMemoryError], str], ...] = (
    (ConflictError, "stale"),
    (PathNotAllowedError, "not_allowed"),
    (NotFoundError, "not_found"),
    (InvalidInputError, "invalid"),
    (WriteError, "failed"),
    (OpenClawMemoryError, "unavailable"),
)

# As many digits of a hash as `Workspace.edit` wants to see: a model copies short words without mistakes.
HASH_DIGITS = 12
_GAP = re.compile(r"\n{3,}")


class Host(NamedTuple):
    """What a call works on: a memory, the audience of the answer, and whether there are tools that change lines."""

    memory: Memory
    audience: Audience
    edit: bool


def memory_tools(
    memory: Memory,
    *,
    session_key: str | None = None,
    edit: bool = False,
    append: bool = True,
    source: Source | None = None,
) -> tuple[Tool, ...]:
    """Return the tools of a memory for one session: memory_search and memory_get, and those that write.

    An answer has a `status`: `ok`; `invalid`, `not_found`, `not_allowed` or `stale`, which a model can correct; or
    `unavailable` and `failed`. Every one but `ok` comes with an `error`.

    Args:
        memory: The memory.
        session_key: OpenClaw's. In a group or channel, as the key or `sessions.json` says, neither MEMORY.md, USER.md
            nor transcripts are shown, and citations only if `config.recall.citations` is `on`.
        edit: Whether to add memory_edit and memory_forget.
        append: Whether to add memory_append.
        source: "memory" searches and reads no transcript, "sessions" no note; None both.

    Raises:
        TypeError: `memory` is not a memory.
        ConfigError: `source` is unknown.
    """
    checked_memory(memory)
    check_source(source)

    def host() -> Host:
        # Asked with each call: that a session is a group's may be written down after its first messages.
        return Host(memory, audience_of(memory, session_key, source), edit)

    names = ["memory_search", "memory_get"]
    names += ["memory_append"] if append else []
    names += ["memory_edit", "memory_forget"] if edit else []
    return tuple(
        Tool(name, TOOL_DESCRIPTIONS[name], TOOL_SCHEMAS[name], partial(_answer, name, host)) for name in names
    )


def _answer(name: str, host: Callable[[], Host], given: Any) -> ToolAnswer:
    try:
        return _CALLS[name](host(), checked_arguments(TOOL_SCHEMAS[name], given))
    except OpenClawMemoryError as error:
        return _refusal(error)


def _refusal(error: OpenClawMemoryError) -> ToolAnswer:
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    if not isinstance(error, ConflictError):
        return ToolAnswer({"status": status, "error": str(error)}, error)
    # Only the first line: below it the message quotes the file, and what is quoted to a model is fenced.
    data = {"status": status, "error": str(error).partition("\n")[0], "path": error.path, "from": error.start_line}
    # More than memory_get shows at once was never seen in one piece: it has to be read again.
    if len(error.current) <= DEFAULT_CHARS:
        now = fenced(error.current, f"{error.path} as it is now")
        data |= {"current": now, "hash": error.hash[:HASH_DIGITS]}
    return ToolAnswer(data, error)


def _search(host: Host, given: Mapping[str, Any]) -> ToolAnswer:
    memory, audience, _ = host
    results = found(memory, given["query"], audience, given.get("maxResults"), given.get("minScore"))
    shown, omitted = within(results, memory.config.recall.max_chars)
    rows = []
    for hit in shown:
        row = {"path": hit.path, "lines": f"{hit.start_line}-{hit.end_line}", "score": round(hit.score, 3)}
        row["snippet"] = fenced(hit.snippet, _origin(hit, audience))
        rows.append(row | _citation(hit, audience))
    data = {"status": "ok", "results": rows}
    data |= {"provider": results.provider, "model": results.model, "mode": results.mode}
    note = results.reason or audience.unknown
    about = {"stale": results.stale, "note": note, "filtered": results.filtered, "omitted": omitted}
    return ToolAnswer(data | _notable(about), replace(results, results=shown))


def _get(host: Host, given: Mapping[str, Any]) -> ToolAnswer:
    path, start, lines = _cited(given)
    check_path(host.memory.workspace, path, host.audience)
    excerpt = host.memory.get(path, start=start, lines=lines)
    shown = excerpt.end_line - excerpt.start_line + 1
    data = {"status": "ok", **_place(excerpt), "text": fenced(excerpt.text, _origin(excerpt, host.audience))}
    about = {"nextFrom": excerpt.next_start, "truncated": excerpt.cut or excerpt.next_start is not None}
    # A line that is shown in part was not seen, and a transcript never changes.
    can_change = host.edit and shown and not excerpt.cut and not is_transcript(excerpt.path)
    return ToolAnswer(
        data
        | (_citation(excerpt, host.audience) if shown else {})
        | _notable(about)
        | ({"hash": excerpt.hash[:HASH_DIGITS]} if can_change else {}),
        excerpt,
    )


def _append(host: Host, given: Mapping[str, Any]) -> ToolAnswer:
    (text, redacted), (title, redacted_title) = _sanitized(given["text"]), _sanitized(given.get("title") or "")
    excerpt = host.memory.append(_checked_text(text), title=title, skip_existing=True)
    host.memory.sync_soon()
    data = {"status": "ok", "path": excerpt.path, "lines": f"{excerpt.start_line}-{excerpt.end_line}"}
    about = {"existed": excerpt.existed, "redacted": redacted or redacted_title}
    return ToolAnswer(data | about | _citation(excerpt, host.audience), excerpt)


def _edit(host: Host, given: Mapping[str, Any]) -> ToolAnswer:
    check_path(host.memory.workspace, given["path"], host.audience)
    text, redacted = _sanitized(given["text"])
    end = given["from"] + given["lines"] - 1
    excerpt = host.memory.edit(given["path"], given["from"], end, _checked_text(text), seen=given["hash"])
    host.memory.sync_soon()
    data = {"status": "ok", **_place(excerpt), "hash": excerpt.hash[:HASH_DIGITS], "redacted": redacted}
    return ToolAnswer(data | _citation(excerpt, host.audience), excerpt)


def _forget(host: Host, given: Mapping[str, Any]) -> ToolAnswer:
    check_path(host.memory.workspace, given["path"], host.audience)
    end = given["from"] + given["lines"] - 1
    host.memory.delete(given["path"], given["from"], end, seen=given["hash"])
    host.memory.sync_soon()
    return ToolAnswer({"status": "ok", "path": given["path"], "removed": given["lines"]})


def _cited(given: Mapping[str, Any]) -> tuple[str, int | None, int | None]:
    """Return path, first line and number of lines, also from a citation."""
    start, lines = given.get("from"), given.get("lines")
    place = cited(given["path"])
    if place is None or start is not None:
        return place[0] if place else given["path"], start, lines
    path, first, last = place
    return path, first, lines or last - first + 1


def _sanitized(text: str) -> tuple[str, bool]:
    """Remove recalled memory from a text and mask its secrets; return it, and whether there were any."""
    kept = without_recalled(text)
    if kept != text:
        kept = _GAP.sub("\n\n", kept).strip("\n")
    safe = redact(kept)
    return safe, safe != kept


def _checked_text(text: str) -> str:
    if not text.strip():
        raise InvalidInputError(
            "text has nothing but blanks and what the memory has shown: write it in words of your own"
        )
    return text


def _place(excerpt: Excerpt) -> dict[str, Any]:
    lines = excerpt.end_line - excerpt.start_line + 1
    return {"path": excerpt.path, "from": excerpt.start_line, "lines": lines}


def _citation(found: SearchResult | Excerpt, audience: Audience) -> dict[str, str]:
    return {"citation": found.citation} if audience.citations else {}


def _origin(found: SearchResult | Excerpt, audience: Audience) -> str:
    return found.citation if audience.citations else found.path


def _notable(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts worth a model's attention: those that are not false, 0 or None."""
    return {name: value for name, value in facts.items() if value}


_CALLS: Mapping[str, Callable[[Host, Mapping[str, Any]], ToolAnswer]] = {
    "memory_search": _search,
    "memory_get": _get,
    "memory_append": _append,
    "memory_edit": _edit,
    "memory_forget": _forget,
}
