"""Who is at work: the doors that a call has come through, for the entry that it leaves in the access log."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import NamedTuple

LIBRARY = "library"  # a program that calls the memory itself
MOST = 200  # characters of a door, and of a session: a client chooses its own name
# What joins doors and sessions, and what no line should hold.
_JOINING = re.compile(r"[/@\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class _Way(NamedTuple):
    """A block, and the way to it: put into words only where an entry is written, since most programs write none."""

    block: acting_as
    around: _Way | None


_way: ContextVar[_Way | None] = ContextVar("openclaw_memory.acting", default=None)


def actor() -> str:
    """Return who is at work now: `library`, or doors, the outermost first, and a session: `web`, `cli:search@main`."""
    doors, session, way = list[str](), None, _way.get()
    while way is not None:
        door = _JOINING.sub("_", way.block.door[:MOST])
        if not doors or doors[-1] != door:  # parts of one door that use each other are one door
            doors.append(door)
        session = way.block.session if session is None else session
        way = way.around
    words = "/".join(reversed(doors)) or LIBRARY
    return f"{words}@{_UNSAFE.sub('_', session[:MOST])}" if session else words


class acting_as:  # noqa: N801 - used as a `with` block
    """Name who is at work in a `with` block, for the access log: `with acting_as("my-bot", session="anna"):`.

    Blocks inside each other add up. They reach the tasks and the calls of `in_thread` that begin in the block. One
    object may be used for several blocks, also at once in several threads and tasks.
    """

    __slots__ = ("door", "session")

    def __init__(self, door: str, *, session: str | None = None) -> None:
        """Name the door.

        Args:
            door: What the memory is used through, such as `web`, or `tool:memory_get`; of a longer one the first 200
                characters count, and `/`, `@` and controls become `_`.
            session: The session; that of the block around this one where None.
        """
        self.door, self.session = door, session

    def __enter__(self) -> None:
        """Begin the block."""
        _way.set(_Way(self, _way.get()))

    def __exit__(self, *_: object) -> None:
        """End the block. A lease may end in another task than it began in, where there is nothing to end."""
        way = _way.get()
        if way is not None and way.block is self:
            _way.set(way.around)
