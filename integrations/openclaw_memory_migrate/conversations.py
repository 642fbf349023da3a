"""What the formats of conversations share: a tree of messages becomes the entries of a transcript (pure)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openclaw_memory_migrate.types import Conversation, Format, LeftOut, MigrationPlan


@dataclass(frozen=True, slots=True)
class Node:
    """A message of a conversation: its id, that of the one before it, and the entries that it becomes.

    `entries` are without ids; several follow each other. None says that there is nothing in it.
    """

    id: str
    parent: str | None
    entries: Sequence[Mapping[str, Any]] = ()


@dataclass(slots=True)
class Reading:
    """What is noted while a conversation is read: what is left out, and how many images and files it only names."""

    left_out: list[LeftOut] = field(default_factory=list)
    named_only: int = 0

    def text(self, what: str, name: object) -> dict[str, str]:
        """Return a block that names what is not in the export, such as `[image: file-1]`."""
        self.named_only += 1
        return text_block(f"[{what}: {name}]")

    @property
    def notices(self) -> tuple[str, ...]:
        """What a person should know of it."""
        if not self.named_only:
            return ()
        return (f"{self.named_only:,} images, files or sounds are named in the transcripts, and not copied",)


def plan_of(name: Format, data: Any, read: Callable[[str, Any, Reading], Conversation | None]) -> MigrationPlan:
    """Plan for an export of conversations.

    Args:
        name: The format.
        data: A list of conversations, or one.
        read: From the place of a conversation in the export, what is there, and where to note what is left out, to the
            conversation; None where it is left out.
    """
    reading = Reading()
    listed = data if isinstance(data, list) else [data]
    found = [read(f"[{at}]", one, reading) for at, one in enumerate(listed)]
    conversations = tuple(one for one in found if one is not None)
    return MigrationPlan(name, conversations=conversations, left_out=tuple(reading.left_out), notices=reading.notices)


def text_block(text: str) -> dict[str, str]:
    """Return a text as a block of a message."""
    return {"type": "text", "text": text}


def message(role: str, content: Sequence[Mapping[str, Any]], **extra: Any) -> dict[str, Any]:
    """Return the fields of an entry that holds a message."""
    return {"type": "message", "message": {"role": role, "content": [*content], **extra}}


def when(given: object, zone: datetime.tzinfo | None) -> str | None:
    """Return a time, in seconds since 1970 or in ISO form, as a transcript has it; None if it is none."""
    try:
        if isinstance(given, int | float) and not isinstance(given, bool):
            moment = datetime.datetime.fromtimestamp(given, datetime.UTC)
        elif isinstance(given, str):
            moment = datetime.datetime.fromisoformat(given)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        else:
            return None
        return moment.astimezone(zone).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def entries_of(
    nodes: Mapping[str, Node], leaf: str | None, title: str, title_id: str, created: str | None
) -> tuple[dict[str, Any], ...]:
    """Return the entries of a conversation: its title, then all branches, that of `leaf` last.

    Args:
        nodes: The messages by id.
        leaf: The end of the branch that was shown last; by default the last message.
        title: The title; "" for none.
        title_id: The id of the entry that holds the title.
        created: The time of what has none.
    """
    stamp = {"timestamp": created} if created else {}
    entries: list[dict[str, Any]] = []
    if title:
        entries.append({"type": "session_info", "id": title_id, "parentId": None, **stamp, "name": title})
    ends: dict[str, str | None] = {}  # the entry that what follows a message follows
    for node in _ordered(nodes, leaf):
        before = ends.get(node.parent) if node.parent is not None else None
        before = before or (title_id if title else None)
        for at, one in enumerate(node.entries):
            entry_id = node.id if not at else f"{node.id}#{at}"
            entries.append({**stamp, **one, "id": entry_id, "parentId": before})
            before = entry_id
        ends[node.id] = before
    return tuple(entries)


def _ordered(nodes: Mapping[str, Node], leaf: str | None) -> Iterator[Node]:
    """Yield parents before children, and the branch that ends in `leaf` after all others.

    A message whose parent is missing begins a branch, and so does one of those that are their own ancestors.
    """
    leaf = leaf if leaf in nodes else next(reversed([*nodes]), None)
    shown: dict[str, None] = {}
    at: str | None = leaf
    while at is not None and at in nodes and at not in shown:
        shown[at] = None
        at = nodes[at].parent
    children: dict[str | None, list[str]] = {}
    for node in nodes.values():
        parent = node.parent if node.parent in nodes else None
        children.setdefault(parent, []).append(node.id)
    done: set[str] = set()
    roots = sorted(children.get(None, []), key=lambda one: one in shown)
    for root in (*_in_circles(nodes), *roots):
        waiting = [root]
        while waiting:
            at = waiting.pop()
            if at in done:
                continue
            done.add(at)
            yield nodes[at]
            # The last one that is pushed comes first: what was shown is pushed first.
            below = children.get(at, [])
            waiting += [one for one in below if one in shown] + [one for one in below[::-1] if one not in shown]


def _in_circles(nodes: Mapping[str, Node]) -> Iterator[str]:
    """Yield a message of each circle of parents."""
    known: set[str] = set()
    for start in nodes:
        path: dict[str, None] = {}
        at: str | None = start
        while at is not None and at in nodes and at not in known and at not in path:
            path[at] = None
            at = nodes[at].parent
        if at in path:
            yield str(at)
        known |= path.keys()
