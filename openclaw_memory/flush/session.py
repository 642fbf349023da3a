"""Describe a session, and read off its key who takes part."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

ChatType: TypeAlias = Literal["direct", "group", "room", "channel"]
# Parts of a key that mean several readers. A thread may be one of a direct chat; that of a group names the group first.
_GROUP_PARTS: dict[str, ChatType] = {
    "channel": "channel",
    "guild": "channel",
    "group": "group",
    "supergroup": "group",
    "room": "room",
}


class Session(Struct, frozen=True):
    """A conversation: which one it is, and with whom. Each part of a memory takes one, or its key alone.

    Attributes:
        key: OpenClaw's key, such as `main` or `agent:main:telegram:group:7`.
        id: Names the transcript; None for the id that `sessions.json` has for the key, else the key itself.
        kind: The kind of chat; None to read it from `sessions.json`, else from the key.
        user: Whose it is; None if it has no user of its own.
    """

    key: str = "main"
    id: str | None = None
    kind: ChatType | None = None
    user: str | None = None


def get_id(session: Session | str) -> str:
    """Return the id of a session, which names its transcript.

    Args:
        session: The session, or its id.
    """
    return session.id or session.key if isinstance(session, Session) else session


def get_chat_type(key: str | None) -> ChatType | None:
    """Read the chat type off a key; None if it does not tell.

    Args:
        key: The key of a session.
    """
    parts = _split_key(key)
    is_whole = len(parts) >= 3 and parts[0] == "agent"
    kinds: list[ChatType] = [kind for name, kind in _GROUP_PARTS.items() if is_whole and name in parts[2:]]
    return kinds[0] if kinds else "direct" if is_direct_key(key) else None


def is_group_key(key: str | None) -> bool:
    """Return whether any part of a key, whatever its form, means several readers.

    Args:
        key: The key of a session.
    """
    return any(name in _split_key(key) for name in _GROUP_PARTS)


def is_direct_key(key: str | None) -> bool:
    """Return whether a key names an agent's main session or a direct message, which the user alone reads.

    Args:
        key: The key of a session.
    """
    parts = _split_key(key)
    return not is_group_key(key) and (parts[-1:] == ["main"] or bool({"dm", "direct"} & {*parts}))


def _split_key(key: str | None) -> list[str]:
    return [part for part in (key or "").strip().lower().split(":") if part]
