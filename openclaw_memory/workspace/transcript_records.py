"""Read one record of a transcript: the line of text it is indexed as, if any, and its day (pure)."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import Any

from openclaw_memory.text.fence import strip_between, strip_fenced, strip_open_fence
from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.text.redaction import redact, redact_session
from openclaw_memory.text.silent_reply import is_silent
from openclaw_memory.workspace.transcript_formats import find_program, get_foreign_message

LABELS: Mapping[str, str] = {"user": "User", "assistant": "Assistant"}

# The tools whose answers OpenClaw puts into a conversation as a turn of the user; the reply to it is an echo.
_RECALLING = ("memory_search", "memory_get")
_HEARTBEAT = "heartbeat"
_LATEST_MS = 8.64e15  # JavaScript knows no later time

_TYPES = frozenset(
    "session message compaction branch_summary custom custom_message label model_change session_info "
    "thinking_level_change".split()
)

_BLANKS = re.compile("[\\s\ufeff]+")
_ENVELOPE = re.compile(r"^[^\n]{1,80} \(untrusted[^\n)]{0,40}\):\n```json\n", re.MULTILINE)
_INTERNAL = ("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>")
_GENERATED = re.compile(r"System(?: \(untrusted\))?: \[[^\]]+\]|\[cron:[^\]]*\]")
_HEARTBEAT_PROMPTS = ("Read HEARTBEAT.md", "Run the following periodic tasks", "[OpenClaw heartbeat poll]")
_HEARTBEAT_REPLY = "HEARTBEAT_OK"
_EXEC_DONE = re.compile(r"(?:System(?: \(untrusted\))?: \[[^\]]+\] ?)?exec finished(?::| ?\()", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)  # made once: json.loads makes one for each line


def parse(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line of a transcript; None if it is not a JSON object. Never raises."""
    if not line.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):  # to be told so by the decoder takes ten times as long
        return None
    try:
        record = _DECODER.decode(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):  # ValueError: no JSON, or a number of over 4,300 digits
        return None
    return record if isinstance(record, dict) else None


def render_record(record: Mapping[str, Any], muted: bool, policies: Policies = NONE) -> tuple[str, bool]:
    """Return the line that a record shows, "" for none, and whether the replies that follow it are muted.

    Shown are `User: …` and `Assistant: …`, on one line, without what was not said by either: prompts that a machine
    wrote, silent replies, recalled memory. A turn made by a heartbeat or by recalling memory mutes the replies to it.
    """
    message = get_message(record)
    role = message.get("role")
    if not isinstance(role, str) or role not in LABELS:
        return "", muted
    origin = message.get("provenance")
    origin = origin if isinstance(origin, dict) else {}
    if role == "user":
        tool = origin.get("sourceTool")
        muted = origin.get("kind") == "internal_system" and (tool == _HEARTBEAT or str(tool).endswith(_RECALLING))
    if muted or _is_hidden(record) or _is_hidden(message) or (role == "user" and origin.get("kind") == "inter_session"):
        return "", muted
    # Before lines are joined: of a message of several lines, those that a policy leaves out go alone, and a token that
    # is cut by the end of a line is still known.
    content = redact(policies.mask(join_texts(message.get("content")) or ""))
    text = policies.mask(clean_message(role, content) or "")
    return (f"{LABELS[role]}: {redact_session(text)}" if text else ""), muted


def is_known(record: Mapping[str, Any]) -> bool:
    """Whether a record is one of OpenClaw's, by its type, or of a program in `transcript_formats`."""
    return _is_openclaws(record) or find_program(record) is not None


def get_message(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message of a record, in either of OpenClaw's shapes: in `message`, or the record itself.

    Messages of other programs are brought into that shape.
    """
    if not _is_openclaws(record):
        return get_foreign_message(record)
    if record.get("type") != "message":
        return {}
    inner = record.get("message", record)
    return inner if isinstance(inner, dict) else {}


def join_texts(content: object) -> str | None:
    """Return the text of a message's content: itself, or its text blocks with newlines between; None without text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [block["text"] for block in content if _is_text(block)]
    return "\n".join(texts) if texts else None


def clean_message(role: str, text: str) -> str | None:
    """Return what a person or the model said in a message, on one line; None if nothing was said."""
    if role == "user" and "(untrusted" in text:
        text = _without_envelopes(text)
    line = normalise_line(strip_open_fence(strip_fenced(strip_between(text, *_INTERNAL))))
    if role == "user" and (_GENERATED.match(line) or _is_heartbeat(line)):
        return None
    if role == "assistant" and line == _HEARTBEAT_REPLY:
        return None
    return None if is_silent(line) or _EXEC_DONE.match(line) else line or None


def normalise_line(text: str) -> str:
    """Return the text on one line: runs of blanks become a space, and what no file can hold becomes U+FFFD."""
    if text.isascii():
        return " ".join(text.split()).replace("\0", "\ufffd")
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _SURROGATE.search(text) else text
    return _BLANKS.sub(" ", whole.replace("\0", "\ufffd")).strip(" ")


def get_day(record: Mapping[str, Any]) -> datetime.date | None:
    """Return the day a message was written, in the zone of its timestamp; None if unknown."""
    when = get_time(record)
    return None if when is None else when.date()


def get_time(record: Mapping[str, Any]) -> datetime.datetime | None:
    """Return when a message was written, in the zone of its timestamp, if it has one; None if unknown."""
    for value in (get_message(record).get("timestamp"), record.get("timestamp")):
        try:
            if isinstance(value, str):
                return datetime.datetime.fromisoformat(value.strip())
            if found := _milliseconds(value):
                return datetime.datetime.fromtimestamp(found / 1000, datetime.UTC)
        except (ValueError, OverflowError, OSError):  # no date, or a year beyond 9999
            continue
    return None


def _milliseconds(value: object) -> float:
    """Return a number as a time: below 1e11 it counts seconds. 0 for what is not a time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    found = value * 1000 if 0 < value < 1e11 else value
    return int(found) if 0 < found <= _LATEST_MS else 0


def _is_openclaws(record: Mapping[str, Any]) -> bool:
    kind = record.get("type")
    return isinstance(kind, str) and kind in _TYPES


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)


def _is_hidden(entry: Mapping[str, Any]) -> bool:
    return entry.get("hidden") is True or entry.get("display") is False


def _is_heartbeat(line: str) -> bool:
    return line.startswith(_HEARTBEAT_PROMPTS) and (_HEARTBEAT_REPLY in line or line == _HEARTBEAT_PROMPTS[-1])


def _without_envelopes(text: str) -> str:
    """Return the text without the JSON blocks in which channels say who wrote from where."""
    kept: list[str] = []
    at = 0
    while (head := _ENVELOPE.search(text, at)) and (end := text.find("\n```", head.end() - 1)) >= 0:
        kept.append(text[at : head.start()])
        at = end + 4
    return "".join((*kept, text[at:]))
