"""What the key of a session says, in OpenClaw's form `agent:<id>:...` (pure)."""

from __future__ import annotations

from typing import Literal, TypeAlias

ChatType: TypeAlias = Literal["direct", "group", "room", "channel"]


def chat_type(session_key: str | None) -> ChatType:
    """What kind of chat a session is: `agent:<id>:...`, with a part `group` or `channel`.

    A key of another form is a direct chat's.
    """
    parts = parts_of(session_key)
    if len(parts) < 3 or parts[0] != "agent":
        return "direct"
    return "channel" if "channel" in parts[2:] else "group" if "group" in parts[2:] else "direct"


def parts_of(session_key: str | None) -> list[str]:
    """The parts of a key between its colons, in lower case."""
    return [part for part in (session_key or "").strip().lower().split(":") if part]
