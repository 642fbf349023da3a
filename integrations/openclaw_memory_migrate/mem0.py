"""Plan for an export of mem0: each memory becomes a document with its id (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from openclaw_memory.types import Document
from openclaw_memory_migrate.items import find_text, make_id
from openclaw_memory_migrate.types import LeftOut, MigrationPlan, PlacedDocument

LISTS = ("results", "memories")  # where `get_all` and an export have the memories, by version
TEXTS = ("memory", "text", "data", "content")
_OF_A_SEARCH = frozenset({"score", "metadata"})  # a score is of the search; metadata are taken one by one


def plan(data: Any) -> MigrationPlan:
    """Plan for the JSON of mem0's `Memory.get_all`, or of an export of its platform.

    Args:
        data: A list of memories, or an object that has it as `results` or `memories`.
    """
    placed: dict[str, PlacedDocument] = {}
    left_out: list[LeftOut] = []
    for memory in _iterate(data):
        if isinstance(memory, LeftOut):
            left_out.append(memory)
        elif placed.setdefault(memory.document.id, memory).document.text != memory.document.text:
            left_out.append(LeftOut(memory.place, "an item before it has the same id, and another text"))
    return MigrationPlan("mem0", documents=tuple(placed.values()), left_out=tuple(left_out))


def _iterate(data: Any) -> Iterator[PlacedDocument | LeftOut]:
    if isinstance(data, list):
        yield from (_read_item(f"[{at}]", item) for at, item in enumerate(data))
        return
    for name in LISTS:
        listed = data.get(name)
        for at, item in enumerate(listed if isinstance(listed, list) else ()):
            yield _read_item(f"{name}[{at}]", item)
    related = data.get("relations")
    for at in range(len(related) if isinstance(related, list) else 0):
        yield LeftOut(f"relations[{at}]", "relations of a graph have no place in notes")


def _read_item(place: str, item: Any) -> PlacedDocument | LeftOut:
    if not isinstance(item, Mapping):
        return LeftOut(place, "it is no object")
    text = find_text(item, TEXTS)
    if text is None:
        return LeftOut(place, "it has no text as `memory`")
    own = item.get("metadata")
    metadata = {**own} if isinstance(own, Mapping) else {}
    taken = {"id", *_OF_A_SEARCH, *(name for name in TEXTS if item.get(name) == text)}
    for name, value in item.items():
        if name not in taken and value is not None:
            metadata[f"mem0_{name}" if name in metadata else name] = value
    metadata.setdefault("source", "mem0")
    return PlacedDocument(place, Document(make_id(item.get("id"), "mem0", text, item.get("user_id")), text, metadata))
