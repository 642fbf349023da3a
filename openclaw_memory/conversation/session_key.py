"""Read the key of a session, in OpenClaw's form `agent:<id>:...` (pure)."""

from __future__ import annotations

from typing import Literal, TypeAlias

ChatType: TypeAlias = Literal["direct", "group", "room", "channel"]

# The parts of a key that say that several people read along, and what kind of chat each is; the first one counts. A
# thread does not count: it may be one of a direct chat, and that of a group has the group's part before it.
_SEVERAL: tuple[tuple[str, ChatType], ...] = (
    ("channel", "channel"),
    ("guild", "channel"),
    ("group", "group"),
    ("supergroup", "group"),
    ("room", "room"),
)


def chat_type(session_key: str | None) -> ChatType:
    """Return the kind of chat that a session key names by a part such as `group`, `channel` or `room`.

    Args:
        session_key: `agent:<id>:...`; a key of another form, or None, is a direct chat's.
    """
    parts = _parts(session_key)
    is_agents = len(parts) >= 3 and parts[0] == "agent"
    for name, kind in _SEVERAL:
        if is_agents and name in parts[2:]:
            return kind
    return "direct"


def names_several(session_key: str | None) -> bool:
    """Whether any part of a key, of whatever form, says that several people read: what is private needs more care."""
    parts = _parts(session_key)
    return any(name in parts for name, _ in _SEVERAL)


def names_one(session_key: str | None) -> bool:
    """Whether a key itself says that the user alone reads: the main session of an agent, or a direct message."""
    parts = _parts(session_key)
    return not names_several(session_key) and bool(parts) and (parts[-1] == "main" or bool({"dm", "direct"} & {*parts}))


def _parts(session_key: str | None) -> list[str]:
    """Return the parts of a key between its colons, in lower case."""
    return [part for part in (session_key or "").strip().lower().split(":") if part]
