"""Turn a tree of messages into the entries of a transcript; shared by the formats of conversations (pure)."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

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
    """The zone of the days, the items left out, and the number of images and files that are only named."""

    zone: datetime.tzinfo | None
    left_out: list[LeftOut] = field(default_factory=list)
    named_only: int = 0

    def name_file(self, what: str, name: object) -> dict[str, str]:
        """Return a block that names something the export does not contain, such as `[image: file-1]`."""
        self.named_only += 1
        return to_block(f"[{what}: {name}]")

    @property
    def notices(self) -> tuple[str, ...]:
        """Return notices for the user."""
        if not self.named_only:
            return ()
        return (f"{self.named_only:,} images, files or sounds are named in the transcripts, and not copied",)


# Takes the place of a conversation in the export, its value, and what is known so far; None leaves it out.
ReadConversation: TypeAlias = Callable[[str, Any, Reading], Conversation | None]


def plan_all(name: Format, data: Any, zone: datetime.tzinfo | None, read: ReadConversation) -> MigrationPlan:
    """Plan for an export of conversations.

    Args:
        name: The format.
        data: A list of conversations, or one.
        zone: The zone of the days; None is that of this machine.
        read: Reads a conversation.
    """
    reading = Reading(zone)
    listed = data if isinstance(data, list) else [data]
    results = [read(f"[{at}]", item, reading) for at, item in enumerate(listed)]
    conversations = tuple(item for item in results if item is not None)
    return MigrationPlan(name, conversations=conversations, left_out=tuple(reading.left_out), notices=reading.notices)


def to_block(text: str) -> dict[str, str]:
    """Return a text as a block of a message."""
    return {"type": "text", "text": text}


def to_message(role: str, content: Sequence[Mapping[str, Any]], **extra: Any) -> dict[str, Any]:
    """Return the fields of an entry that holds a message."""
    return {"type": "message", "message": {"role": role, "content": [*content], **extra}}


def to_time(value: object, zone: datetime.tzinfo | None) -> str | None:
    """Convert seconds since 1970, or an ISO time, to a transcript's form; return None for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.datetime.fromtimestamp(value, datetime.UTC)
        elif isinstance(value, str):
            moment = datetime.datetime.fromisoformat(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        else:
            return None
        return moment.astimezone(zone).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None


def join_messages(
    place: str, session_id: str, nodes: Mapping[str, Node], leaf: object, title: str, created: object, reading: Reading
) -> Conversation | None:
    """Join the messages of a conversation after its title, the branch of `leaf` last; None if all are empty.

    Args:
        place: Its place in the export.
        session_id: The session of its transcript.
        nodes: The messages by id.
        leaf: The end of the branch that was shown last; by default the last message.
        title: The title; "" for none.
        created: The time of entries without one.
        reading: Gets what is left out.
    """
    time, title_id = to_time(created, reading.zone), f"{session_id.partition('-')[2]}-title"
    stamp = {"timestamp": time} if time else {}
    entries: list[dict[str, Any]] = []
    if title:
        entries.append({"type": "session_info", "id": title_id, "parentId": None, **stamp, "name": title})
    ends: dict[str, str | None] = {}  # the entry that what follows a message follows
    for node in _order_nodes(nodes, leaf if isinstance(leaf, str) else None):
        before = ends.get(node.parent) if node.parent is not None else None
        before = before or (title_id if title else None)
        for at, entry in enumerate(node.entries):
            entry_id = node.id if not at else f"{node.id}#{at}"
            entries.append({**stamp, **entry, "id": entry_id, "parentId": before})
            before = entry_id
        ends[node.id] = before
    if not any(entry["type"] == "message" for entry in entries):
        reading.left_out.append(LeftOut(place, "no message of it says anything"))
        return None
    return Conversation(place, session_id, tuple(entries))


def _order_nodes(nodes: Mapping[str, Node], leaf: str | None) -> Iterator[Node]:
    """Yield parents before children, and the branch that ends in `leaf` after all others.

    A message whose parent is missing begins a branch, and so does one of those that are their own ancestors.
    """
    leaf = leaf if leaf in nodes else next(reversed([*nodes]), None)
    visible: dict[str, None] = {}
    at: str | None = leaf
    while at is not None and at in nodes and at not in visible:
        visible[at] = None
        at = nodes[at].parent
    children: dict[str | None, list[str]] = {}
    for node in nodes.values():
        parent = node.parent if node.parent in nodes else None
        children.setdefault(parent, []).append(node.id)
    visited: set[str] = set()
    roots = sorted(children.get(None, []), key=lambda node_id: node_id in visible)
    for root in (*_find_circles(nodes), *roots):
        waiting = [root]
        while waiting:
            at = waiting.pop()
            if at in visited:
                continue
            visited.add(at)
            yield nodes[at]
            # The last one that is pushed comes first: what was shown is pushed first.
            below = children.get(at, [])
            waiting += [child for child in below if child in visible]
            waiting += [child for child in below[::-1] if child not in visible]


def _find_circles(nodes: Mapping[str, Node]) -> Iterator[str]:
    """Yield a message of each circle of parents."""
    visited: set[str] = set()
    for start in nodes:
        path: dict[str, None] = {}
        at: str | None = start
        while at is not None and at in nodes and at not in visited and at not in path:
            path[at] = None
            at = nodes[at].parent
        if at in path:
            yield str(at)
        visited |= path.keys()
