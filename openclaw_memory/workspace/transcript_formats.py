"""Recognise the transcripts of OpenClaw and other programs, and read the message in a record (pure).

A format is two functions in the table at the end: whether a record is of it, and the message in a record, in OpenClaw's
shape. To add a format, write both functions and a line in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from openclaw_memory._system import read_lines
from openclaw_memory.text.fence import strip_between

Record = Mapping[str, Any]

_SPEAKERS = frozenset({"user", "assistant"})


class Format(NamedTuple):
    """A format of transcripts: the program that writes it, and how its records are recognised and read."""

    program: str
    recognise: Callable[[Record], bool]
    read_message: Callable[[Record], Record]  # {} where neither side spoke


def find_format(record: Record) -> Format | None:
    """Return the format of a record, or None if it is unknown."""
    return next((entry for entry in FORMATS if entry.recognise(record)), None)


def get_message(record: Record) -> Record:
    """Return the message of a record, in OpenClaw's shape; {} for none."""
    format_of_record = find_format(record)
    return {} if format_of_record is None else format_of_record.read_message(record)


# --- OpenClaw: sessions/<session>.jsonl -----------------------------------------------------------------------------

_OPENCLAW_TYPES = frozenset(
    "session message compaction branch_summary custom custom_message label model_change session_info "
    "thinking_level_change".split()
)


def _is_openclaw(record: Record) -> bool:
    kind = record.get("type")
    return isinstance(kind, str) and kind in _OPENCLAW_TYPES and not _is_codex(record)


def _read_openclaw(record: Record) -> Record:
    """Return a message in either of OpenClaw's shapes: in `message`, or the record itself."""
    if record.get("type") != "message":
        return {}
    inner = record.get("message", record)
    return inner if isinstance(inner, dict) else {}


_MARKS = [line.split(" ", 1) for line in read_lines(__file__, "transcript_marks.txt")]

# --- Codex: ~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl -----------------------------------

_CODEX_TYPES = frozenset("session_meta response_item event_msg turn_context compacted".split())
_CODEX_TEXTS = ("input_text", "output_text")
# The user's turns that the program wrote: where it runs, and the rules that it was given.
_CODEX_CONTEXT = tuple(mark for kind, mark in _MARKS if kind == "codex")


def _is_codex(record: Record) -> bool:
    kind = record.get("type")
    is_wrapped = isinstance(kind, str) and kind in _CODEX_TYPES and isinstance(record.get("payload"), dict)
    return is_wrapped or (kind == "message" and bool(_list_texts(record.get("content"), _CODEX_TEXTS)))


def _read_codex(record: Record) -> Record:
    inner = record.get("payload", record)
    if inner.get("type") != "message" or record["type"] not in {"response_item", "message"}:
        return {}
    texts = _list_texts(inner.get("content"), _CODEX_TEXTS)
    spoken = [text for text in texts if not text.lstrip().startswith(_CODEX_CONTEXT)]
    return _make_message(inner.get("id"), inner.get("role"), spoken, record.get("timestamp"))


# --- Claude Code: ~/.claude/projects/<folder>/<session>.jsonl, and its `--output-format stream-json` ------------------

# Parts of the user's messages that the program wrote: commands with their output, and reports of the host.
_COMMANDS = tuple(mark for kind, mark in _MARKS if kind == "command")
_REMARKS = ("system-reminder", "ide_opened_file", "ide_selection")
# Marks of records that neither side spoke: the host's remarks, a summary, errors of the service, a subagent's talk.
_UNSPOKEN = tuple(mark for kind, mark in _MARKS if kind == "unspoken")


def _is_claude_code(record: Record) -> bool:
    kind = record.get("type")
    # Summaries of earlier sessions and file histories come first in some files, without the session's id.
    return isinstance(kind, str) and (
        isinstance(record.get("sessionId", record.get("session_id")), str)
        or (kind in _SPEAKERS and isinstance(record.get("message"), dict))
        or (kind == "summary" and "leafUuid" in record)
        or kind == "file-history-snapshot"
    )


def _read_claude_code(record: Record) -> Record:
    inner = record.get("message")
    if record.get("type") not in _SPEAKERS or not isinstance(inner, dict) or any(map(record.get, _UNSPOKEN)):
        return {}
    if inner.get("model") == "<synthetic>":  # the program spoke in the model's place
        return {}
    content = inner.get("content")
    texts = _list_texts(content) if isinstance(content, list) else [content] if isinstance(content, str) else []
    for name in _REMARKS:
        texts = [strip_between(text, f"<{name}>", f"</{name}>") for text in texts]
    spoken = [text for text in texts if not text.lstrip().startswith(_COMMANDS)]
    return _make_message(record.get("uuid"), inner.get("role"), spoken, record.get("timestamp"))


# --- OpenCode: the messages of `opencode export`, one a line --------------------------------------------------------


def _is_opencode(record: Record) -> bool:
    info = record.get("info")
    return isinstance(info, dict) and isinstance(info.get("sessionID"), str) and isinstance(record.get("parts"), list)


def _read_opencode(record: Record) -> Record:
    info = record["info"]
    if info.get("role") not in _SPEAKERS or info.get("summary") is True:
        return {}
    time = info.get("time")
    created = time.get("created") if isinstance(time, dict) else None
    spoken = [part for part in _list_objects(record["parts"]) if not part.get("synthetic") and not part.get("ignored")]
    return _make_message(info.get("id"), info["role"], _list_texts(spoken), created)


# --- ChatGPT: the messages of an export's `conversations.json`, one a line ------------------------------------------


def _is_chatgpt(record: Record) -> bool:
    inner = record.get("message", record)
    return isinstance(inner, dict) and isinstance(inner.get("author"), dict) and isinstance(inner.get("content"), dict)


def _read_chatgpt(record: Record) -> Record:
    inner = record.get("message", record)
    role, content, metadata = inner["author"].get("role"), inner["content"], inner.get("metadata")
    is_hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    # Messages to a tool, such as code to run, are not for the user.
    if role not in _SPEAKERS or is_hidden or inner.get("recipient") not in {None, "all"}:
        return {}
    if content.get("content_type") not in {"text", "multimodal_text"} or not isinstance(content.get("parts"), list):
        return {}
    texts = [part for part in content["parts"] if isinstance(part, str)]
    return _make_message(inner.get("id"), role, texts, inner.get("create_time"))


def _make_message(message_id: object, role: object, texts: list[str], timestamp: object) -> Record:
    blocks = [{"type": "text", "text": text} for text in texts]
    return {"id": message_id, "role": role, "content": blocks, "timestamp": timestamp}


def _list_texts(blocks: object, types: tuple[str, ...] = ("text",)) -> list[str]:
    texts = (block.get("text") for block in _list_objects(blocks) if block.get("type") in types)
    return [text for text in texts if isinstance(text, str)]


def _list_objects(values: object) -> Iterator[Record]:
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else iter(())


FORMATS = (
    Format("OpenClaw", _is_openclaw, _read_openclaw),
    Format("Codex", _is_codex, _read_codex),
    Format("Claude Code", _is_claude_code, _read_claude_code),
    Format("OpenCode", _is_opencode, _read_opencode),
    Format("ChatGPT", _is_chatgpt, _read_chatgpt),
)
