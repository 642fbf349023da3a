"""Know the transcripts of other programs by their first record, and read their records as messages (pure).

A format is two functions in the table at the end: whether a record is of it, and the message in a record, in OpenClaw's
shape. To add a format is to add a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from openclaw_memory.text.fence import strip_between

Record = Mapping[str, Any]

_SPEAKERS = frozenset({"user", "assistant"})

# What Claude Code puts into messages of the user: what a command was and printed, and what the host reports.
_COMMANDS = (
    "<command-name>",
    "<command-message>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "[Request interrupted by user",
)
_REMARKS = ("system-reminder", "ide_opened_file", "ide_selection")
# Marks of records that neither side has said: the host's remarks, a summary, errors of the service, a subagent's talk.
_UNSAID = (
    "isMeta",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "repeatsCompactSummary",
    "isApiErrorMessage",
    "isSidechain",
)


class Format(NamedTuple):
    """How transcripts of a program are known, and read."""

    program: str
    recognise: Callable[[Record], bool]
    message: Callable[[Record], dict[str, Any]]  # {} where neither side said anything


def find_program(record: Record) -> str | None:
    """Return the program that wrote a record; None for one that is unknown here.

    Args:
        record: A record, best the first of a file.
    """
    return next((one.program for one in FORMATS if one.recognise(record)), None)


def get_foreign_message(record: Record) -> dict[str, Any]:
    """Return the message in another program's record, in OpenClaw's shape; {} for none.

    Args:
        record: Any record.
    """
    return next((one.message(record) for one in FORMATS if one.recognise(record)), {})


# --- Claude Code: ~/.claude/projects/<folder>/<session>.jsonl -------------------------------------------------


def _is_claude_code(record: Record) -> bool:
    kind = record.get("type")
    if not isinstance(kind, str):
        return False
    # Summaries of earlier sessions and file histories come first in some files, without the session's id.
    return (
        isinstance(record.get("sessionId"), str)
        or (kind in _SPEAKERS and isinstance(record.get("uuid"), str))
        or (kind == "summary" and "leafUuid" in record)
        or kind == "file-history-snapshot"
    )


def _claude_code(record: Record) -> dict[str, Any]:
    inner = record.get("message")
    if record.get("type") not in _SPEAKERS or not isinstance(inner, dict) or any(map(record.get, _UNSAID)):
        return {}
    if inner.get("model") == "<synthetic>":  # said by the program in the model's place
        return {}
    content = inner.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    known = {"id": record.get("uuid"), "role": inner.get("role"), "timestamp": record.get("timestamp")}
    return {**known, "content": list(_spoken(blocks))}


def _spoken(blocks: object) -> Iterator[dict[str, Any]]:
    for block in _objects(blocks):
        if block.get("type") != "text" or not isinstance(text := block.get("text"), str):
            continue
        for name in _REMARKS:
            text = strip_between(text, f"<{name}>", f"</{name}>")
        if not text.lstrip().startswith(_COMMANDS):
            yield {"type": "text", "text": text}


# --- OpenCode: the messages of `opencode export`, one a line --------------------------------------------------


def _is_opencode(record: Record) -> bool:
    info = record.get("info")
    return isinstance(info, dict) and isinstance(info.get("sessionID"), str) and isinstance(record.get("parts"), list)


def _opencode(record: Record) -> dict[str, Any]:
    info = record["info"]
    if info.get("role") not in _SPEAKERS or info.get("summary") is True:
        return {}
    when = info.get("time")
    parts = [one for one in _objects(record["parts"]) if not one.get("synthetic") and not one.get("ignored")]
    return {
        "id": info.get("id"),
        "role": info["role"],
        "content": [{"type": "text", "text": one.get("text")} for one in parts if one.get("type") == "text"],
        "timestamp": when.get("created") if isinstance(when, dict) else None,
    }


# --- ChatGPT: the messages of an export's `conversations.json`, one a line ------------------------------------


def _is_chatgpt(record: Record) -> bool:
    inner = record.get("message", record)
    return isinstance(inner, dict) and isinstance(inner.get("author"), dict) and isinstance(inner.get("content"), dict)


def _chatgpt(record: Record) -> dict[str, Any]:
    inner = record.get("message", record)
    role, content, about = inner["author"].get("role"), inner["content"], inner.get("metadata")
    is_hidden = isinstance(about, dict) and about.get("is_visually_hidden_from_conversation")
    # What goes to a tool, such as code to run, is not said to the user.
    if role not in _SPEAKERS or is_hidden or inner.get("recipient") not in {None, "all"}:
        return {}
    if content.get("content_type") not in {"text", "multimodal_text"} or not isinstance(content.get("parts"), list):
        return {}
    texts = [{"type": "text", "text": part} for part in content["parts"] if isinstance(part, str)]
    return {"id": inner.get("id"), "role": role, "content": texts, "timestamp": inner.get("create_time")}


def _objects(values: object) -> Iterator[Mapping[str, Any]]:
    return (one for one in values if isinstance(one, dict)) if isinstance(values, list) else iter(())


FORMATS = (
    Format("Claude Code", _is_claude_code, _claude_code),
    Format("OpenCode", _is_opencode, _opencode),
    Format("ChatGPT", _is_chatgpt, _chatgpt),
)
