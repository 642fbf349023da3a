"""Read one record of a transcript: the line of text that it is indexed as, if any, and its time (pure)."""

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
from openclaw_memory.workspace.transcript_formats import get_message

LABELS: Mapping[str, str] = {"user": "User", "assistant": "Assistant"}

# The tools whose answers OpenClaw puts into a conversation as a turn of the user; the reply to it is an echo.
_RECALLING = ("memory_search", "memory_get")
_HEARTBEAT = "heartbeat"
_LATEST_MS = 8.64e15  # JavaScript knows no later time

_BLANKS = re.compile("[\\s\ufeff]+")
_ENVELOPE = re.compile(r"^[^\n]{1,80} \(untrusted[^\n)]{0,40}\):\n```json\n", re.MULTILINE)
_INTERNAL = ("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>")
_GENERATED = re.compile(r"System(?: \(untrusted\))?: \[[^\]]+\]|\[cron:[^\]]*\]")
_HEARTBEAT_PROMPTS = ("Read HEARTBEAT.md", "Run the following periodic tasks", "[OpenClaw heartbeat poll]")
_HEARTBEAT_REPLY = "HEARTBEAT_OK"
_EXEC_DONE = re.compile(r"(?:System(?: \(untrusted\))?: \[[^\]]+\] ?)?exec finished(?::| ?\()", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)  # made once: json.loads makes one for each line


def parse(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line of a transcript; None if it is not a JSON object. Never raises.

    Args:
        line: The line.
    """
    if not line.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):  # to hear so from the decoder takes ten times as long
        return None
    try:
        record = _DECODER.decode(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):  # ValueError: not JSON, or a number of over 4,300 digits
        return None
    return record if isinstance(record, dict) else None


def render_record(record: Mapping[str, Any], muted: bool, policies: Policies = NONE) -> tuple[str, bool]:
    """Return the line that a record is shown as, "" for none, and whether the replies that follow it are muted.

    Shown are `User: …` and `Assistant: …`, on one line, without parts that neither spoke: prompts that a machine
    wrote, silent replies, recalled memory. A turn made by a heartbeat or by recalling memory mutes the replies to it.

    Args:
        record: The record.
        muted: Whether replies are muted before it.
        policies: The policies.
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


def get_text(message: Mapping[str, Any]) -> str:
    """Return the text of a message: its content, or its text blocks with newlines between; "" if it has no text.

    Args:
        message: A message in OpenClaw's shape or in OpenAI's.
    """
    return join_texts(message.get("content")) or ""


def join_texts(content: object) -> str | None:
    """Return the text of a message's content: itself, or its text blocks with newlines between; None without text.

    Args:
        content: The content.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return "\n".join(texts) if texts else None


def clean_message(role: str, text: str) -> str | None:
    """Return the words of a person or the model in a message, on one line; None for none.

    Args:
        role: `user` or `assistant`.
        text: The text of the message.
    """
    if role == "user" and "(untrusted" in text:
        text = _strip_envelopes(text)
    line = normalise_line(strip_open_fence(strip_fenced(strip_between(text, *_INTERNAL))))
    if role == "user" and (_GENERATED.match(line) or _is_heartbeat(line)):
        return None
    if role == "assistant" and line == _HEARTBEAT_REPLY:
        return None
    return None if is_silent(line) or _EXEC_DONE.match(line) else line or None


def normalise_line(text: str) -> str:
    """Return the text on one line: runs of blanks become a space, characters that no file can hold U+FFFD.

    Args:
        text: The text.
    """
    if text.isascii():
        return " ".join(text.split()).replace("\0", "\ufffd")
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _SURROGATE.search(text) else text
    return _BLANKS.sub(" ", whole.replace("\0", "\ufffd")).strip(" ")


def get_time(record: Mapping[str, Any]) -> datetime.datetime | None:
    """Return the time of a message, in the zone of its timestamp, if it has one; None if unknown.

    Args:
        record: The record.
    """
    for value in (get_message(record).get("timestamp"), record.get("timestamp")):
        try:
            if isinstance(value, str):
                return datetime.datetime.fromisoformat(value.strip())
            if milliseconds := _to_milliseconds(value):
                return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)
        except (ValueError, OverflowError, OSError):  # not a date, or a year beyond 9999
            continue
    return None


def _to_milliseconds(value: object) -> float:
    """Return a number as a time: below 1e11 it counts seconds. 0 for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    milliseconds = value * 1000 if 0 < value < 1e11 else value
    return int(milliseconds) if 0 < milliseconds <= _LATEST_MS else 0


def _is_hidden(entry: Mapping[str, Any]) -> bool:
    return entry.get("hidden") is True or entry.get("display") is False


def _is_heartbeat(line: str) -> bool:
    return line.startswith(_HEARTBEAT_PROMPTS) and (_HEARTBEAT_REPLY in line or line == _HEARTBEAT_PROMPTS[-1])


def _strip_envelopes(text: str) -> str:
    """Return the text without the JSON blocks of channels about the sender."""
    parts: list[str] = []
    at = 0
    while (head := _ENVELOPE.search(text, at)) and (end := text.find("\n```", head.end() - 1)) >= 0:
        parts.append(text[at : head.start()])
        at = end + 4
    return "".join((*parts, text[at:]))
