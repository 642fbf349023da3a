"""Describe a session, and read off its key who takes part."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, structs

from openclaw_memory.errors import InvalidInputError
from openclaw_memory.events import VALUES

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
        key: OpenClaw's key, such as `main` or `agent:main:telegram:group:7`, which may say who reads along.
        id: Names the transcript; None for the id that `sessions.json` has for the key, else the key itself.
        kind: The kind of chat; None to read it from `sessions.json`, else from the key.
        user: Whose it is, and the records that it makes; None if it has no user of its own.
    """

    key: str = "main"
    id: str | None = None
    kind: ChatType | None = None
    user: str | None = None

    @staticmethod
    def find(own: Session | str | None, *keys: Session | str | None, conversation: str | None = None) -> Session | None:
        """Find the session of a call; None if it is unknown.

        The first key that is given is its own: that of the part that is called, that of the run, that of the
        `run_values` around it, the conversation. The conversation names the transcript if the part has no session.

        Args:
            own: The session of the part, or its key.
            *keys: The keys of the run, in the order in which they count.
            conversation: The framework's own name of the conversation, such as the thread.

        Raises:
            InvalidInputError: A key is not a text.
        """
        every = (own, *keys, VALUES.get({}).get("session_key"), conversation)
        key = next((key for key in every if key is not None and key != ""), None)
        session = Session(key) if isinstance(key, str) else key
        if session is not None and not isinstance(session, Session):
            raise InvalidInputError(f"session_key must be a text such as 'agent:main:main', not {session!r}")
        if session is None or own or session.id or not conversation:
            return session
        return structs.replace(session, id=conversation)

    @property
    def conversation(self) -> Session:
        """The session under the name of its conversation, with the kind of chat that its key tells.

        A key may be that of many conversations, as a team's; each of them has a transcript and a state of its own.
        """
        kind = self.kind or get_chat_type(self.key)
        return structs.replace(self, key=self.id, kind=kind) if self.id and self.id != self.key else self


def get_id(session: Session | str) -> str:
    """Return the id of a session, which names its transcript."""
    return session.id or session.key if isinstance(session, Session) else session


def get_chat_type(key: str | None) -> ChatType | None:
    """Read the chat type off a key; None if it does not tell."""
    parts = _split_key(key)
    is_whole = len(parts) >= 3 and parts[0] == "agent"
    kinds: list[ChatType] = [kind for name, kind in _GROUP_PARTS.items() if is_whole and name in parts[2:]]
    return kinds[0] if kinds else "direct" if is_direct_key(key) else None


def is_group_key(key: str | None) -> bool:
    """Return whether any part of a key, whatever its form, means several readers."""
    return any(name in _split_key(key) for name in _GROUP_PARTS)


def is_direct_key(key: str | None) -> bool:
    """Return whether a key names an agent's main session or a direct message, which the user alone reads."""
    parts = _split_key(key)
    return not is_group_key(key) and (parts[-1:] == ["main"] or bool({"dm", "direct"} & {*parts}))


def _split_key(key: str | None) -> list[str]:
    return [part for part in (key or "").strip().lower().split(":") if part]
