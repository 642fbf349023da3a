"""What a flush could not save is kept word for word, secrets masked, in the log of its session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from openclaw_memory.errors import QueryError
from openclaw_memory.redaction import redact_talk
from openclaw_memory.sessions.messages import Message, text_of
from openclaw_memory.workspace.session_log import SessionLog
from openclaw_memory.workspace.turns import message_of

# Instructions of a program are not lost with a conversation.
_UNHEARD = frozenset({"system", "developer"})


def keep(messages: Iterable[Message], log: SessionLog) -> int:
    """Add to the log those messages whose words it does not have from the same role; returns how many were added.

    An entry has the id of its message, unless the log has an entry of that id.

    Raises:
        QueryError: some cannot be written as JSON, or are too long. The others were added.
        PathNotAllowedError, WorkspaceError, WriteError: the log cannot be read or written; what was added before stays.
    """
    ids, said = set(), set()
    for entry in log.entries():
        ids.add(str(entry.get("id")))
        said.add(_words(masked(message_of(entry))))
    added, refusals = 0, []
    for message in messages:
        kept = masked({key: value for key, value in message.items() if key != "id"})
        # A summary, and what a program put into the conversation, are entries of other types.
        if kept.get("role") in _UNHEARD or kept.get("type", "message") != "message" or _words(kept) in said:
            continue
        known = message.get("id")
        own = {"id": known} if isinstance(known, str) and known and known not in ids else {}
        try:
            ids.add(log.append_entry("message", **own, message=kept))
        except QueryError as error:
            refusals.append(error)
        else:
            added += 1
            said.add(_words(kept))
    if refusals:
        raise QueryError(f"{len(refusals)} of the messages could not be kept: {refusals[0]}")
    return added


def masked(value: Any) -> Any:
    """A value as JSON holds it, with the secrets in its texts masked."""
    if isinstance(value, str):
        return redact_talk(value)
    if isinstance(value, Mapping):
        return {key: masked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item) for item in value]
    return value


def _words(message: Message) -> tuple[object, str]:
    return message.get("role"), text_of(message) or json.dumps(message.get("content"), sort_keys=True, default=str)
