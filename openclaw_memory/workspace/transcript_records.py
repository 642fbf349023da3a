"""Read a record of a transcript: the line of text that it is indexed as, and its time; and make one of a message."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from typing import Any

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.text.fence import strip_between, strip_fenced, strip_open_fence
from openclaw_memory.text.policies import NONE, Policies
from openclaw_memory.text.redaction import mask_value, redact, redact_session, redact_talk
from openclaw_memory.text.silent_reply import is_silent
from openclaw_memory.workspace.transcript_formats import get_message

LABELS: Mapping[str, str] = {"user": "User", "assistant": "Assistant"}

# The tools whose answers OpenClaw puts into a conversation as a turn of the user; the reply to it is an echo.
RECALLING = ("memory_search", "memory_get")  # the ends of names: `memory_tools` puts that of a memory before them
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

MAX_LINE_BYTES = 8 * 1024 * 1024  # of a line that is read
_INSTRUCTIONS = frozenset({"system", "developer"})  # roles of a program, which repeats them
_OTHER_TYPES = frozenset({"compaction", "custom_message"})  # entries of their own
_ENTRY_BYTES = 1_024  # more than an entry holds apart from its message
_MAX_CALLS = 1_000
# Kept of a text that is too long for an entry: it fits even if each character takes twelve bytes.
_HEAD_CHARS, _TAIL_CHARS = 600_000, 90_000
_FIELD_CHARS = 1_000


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)  # made once: json.loads makes one for each line


def parse(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line of a transcript; None if it is not a JSON object. Never raises."""
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
    """
    message = get_message(record)
    role = message.get("role")
    if not isinstance(role, str) or role not in LABELS:
        return "", muted
    origin = message.get("provenance")
    origin = origin if isinstance(origin, dict) else {}
    if role == "user":
        tool = origin.get("sourceTool")
        muted = origin.get("kind") == "internal_system" and (tool == _HEARTBEAT or str(tool).endswith(RECALLING))
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
    """Return the text of a message's content: itself, or its text blocks with newlines between; None without text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return "\n".join(texts) if texts else None


def clean_message(role: str, text: str) -> str | None:
    """Return the words of a person or the model in a message, on one line; None for none."""
    if role == "user" and "(untrusted" in text:
        text = _strip_envelopes(text)
    line = normalise_line(strip_open_fence(strip_fenced(strip_between(text, *_INTERNAL))))
    is_made = _GENERATED.match(line) or _is_heartbeat(line) if role == "user" else line == _HEARTBEAT_REPLY
    return None if is_made or is_silent(line) or _EXEC_DONE.match(line) else line or None


def normalise_line(text: str) -> str:
    """Return the text on one line: runs of blanks become a space, characters that no file can hold U+FFFD."""
    if text.isascii():
        return " ".join(text.split()).replace("\0", "\ufffd")
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _SURROGATE.search(text) else text
    return _BLANKS.sub(" ", whole.replace("\0", "\ufffd")).strip(" ")


def get_time(record: Mapping[str, Any]) -> datetime.datetime | None:
    """Return the time of a message, in the zone of its timestamp, if it has one; None if unknown."""
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


# --- entries made of messages: word for word, secrets masked, and short enough to be read ---------------------------


def fit_entry(entry: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return an entry as a log can hold it, and the reason why it is not whole; "" if it is.

    Of a message or summary that is not JSON, or too long to be read again, the words stay, of very many the first and
    the last, and the tool calls without their arguments.
    """
    try:
        size = len(json.dumps(entry, allow_nan=False, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError, RecursionError) as error:
        reason = f"it cannot be written as JSON: {error}"
    else:
        if size + _ENTRY_BYTES <= MAX_LINE_BYTES:
            return dict(entry), ""
        reason = f"it has {size:,} bytes, of which {MAX_LINE_BYTES:,} are read"
    if isinstance(message := entry.get("message"), Mapping):
        return {**entry, "message": _reduce_to_words(message, reason)}, reason
    return {**entry, "summary": _cut_text(str(entry.get("summary", "")), reason)}, reason


def cut_middle(text: str, head: int, tail: int, name: str) -> str:
    """Cut the middle of a text and put a note there; return the text itself if little would be gained."""
    cut = len(text) - head - tail
    note = (
        f"\n[... {cut:,} of {len(text):,} characters of {name} were cut here: "
        f"the first {head:,} and the last {tail:,} are shown ...]\n"
    )
    # Nothing is cut where the note is longer than the cut: a text that was cut before stays as it is.
    return text if cut < 2 * len(note) else text[:head] + note + text[len(text) - tail :]


def make_entry(message: Mapping[str, Any]) -> dict[str, Any]:
    """Make an entry of a message, with its id."""
    message_id = get_message_id(message)
    return {"type": "message", **({"id": message_id} if message_id else {}), "message": mask_message(message)}


def mask_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without its id, and with secrets masked."""
    try:
        return {key: mask_value(value, redact_talk) for key, value in message.items() if key != "id"}
    except RecursionError:
        return _reduce_to_words({**message, "content": redact_talk(get_text(message))}, "it is nested too deeply")


def _reduce_to_words(message: Mapping[str, Any], reason: str) -> dict[str, Any]:
    names = ("role", "toolCallId", "toolName")
    fields = {name: message[name][:_FIELD_CHARS] for name in names if isinstance(message.get(name), str)}
    blocks = message.get("content")
    calls: list[dict[str, Any]] = [
        {"type": "toolCall", "id": str(block.get("id"))[:_FIELD_CHARS], "name": str(block.get("name"))[:_FIELD_CHARS]}
        | {"arguments": {}}
        for block in (blocks if isinstance(blocks, list) else [])[:_MAX_CALLS]
        if isinstance(block, Mapping) and block.get("type") == "toolCall"
    ]
    return {**fields, "content": [{"type": "text", "text": _cut_text(get_text(message), reason)}, *calls]}


def _cut_text(text: str, reason: str) -> str:
    short = cut_middle(text, _HEAD_CHARS, _TAIL_CHARS, "this message")
    return "\n".join([*([short] if short.strip() else []), f"[not all is kept: {reason}]"])


def is_spoken(message: Mapping[str, Any]) -> bool:
    """Return whether a message was said in the conversation, and is not one of the program."""
    if not isinstance(message, Mapping):
        raise InvalidInputError(f"a message is an object such as {{'role': 'user', 'content': …}}, not {message!r:.80}")
    return message.get("role") not in _INSTRUCTIONS and message.get("type") not in _OTHER_TYPES


def get_message_id(message: Mapping[str, Any]) -> str | None:
    """Return the id of a message; None if it has none."""
    value = message.get("id") if isinstance(message, Mapping) else None
    return value if isinstance(value, str) and value else None


def encode_message(message: Mapping[str, Any]) -> str:
    """Encode a message to recognise an equal one; a text equals a block of the same text."""
    fields = {key: value for key, value in message.items() if key not in {"id", "timestamp"}}
    if isinstance(fields.get("content"), str):
        fields["content"] = [{"type": "text", "text": fields["content"]}]
    return json.dumps(fields, sort_keys=True, default=repr)
