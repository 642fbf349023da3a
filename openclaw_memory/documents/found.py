"""What files hold as documents, what a search finds of them, and the first of those, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from openclaw_memory.chunking.matter import EMBEDDING, MODEL
from openclaw_memory.types import Document, Hit, Store, StoredChunk
from openclaw_memory.workspace.documents import name_of
from openclaw_memory.workspace.known import Seen, copied
from openclaw_memory.workspace.paths import DOCUMENTS_FOLDER

Where: TypeAlias = Callable[[Document], bool]

# Whoever filters, or has long documents, needs more than are wanted: so many times more with each look.
WIDER = 16
# What stands above the text for this library itself.
OURS = frozenset({"id", "metadata", EMBEDDING})


def document_in(path: str, seen: Seen, name: str = "") -> Document | None:
    """The document that was seen in a file, None where there is none; `name` is its id where none can be read in it.

    It is for reading alone, as what was seen is; `owned` makes one to give away.
    """
    doc_id, content = seen.doc_id, seen.content
    if content is None or (doc_id is None and not path.startswith(f"{DOCUMENTS_FOLDER}/")):
        return None
    metadata, embedding = content.fields.get("metadata"), content.fields.get(EMBEDDING)
    return Document(
        doc_id or name or name_of(path),
        content.text,
        metadata if isinstance(metadata, dict) else {},
        path,
        {field: value for field, value in content.fields.items() if field not in OURS},
        str(embedding.get(MODEL, "")) if isinstance(embedding, dict) else "",
        seen.line,
    )


def owned(document: Document) -> Document:
    """A document with metadata and fields of its own: what is kept for the next look must not change."""
    return replace(document, metadata=copied(document.metadata), fields=copied(document.fields))


def distinct(
    pairs: Iterable[tuple[Document | None, float]], k: int, where: Where | None
) -> list[tuple[Document, float]]:
    """The first k of those that fit, each id once."""
    found: dict[str, tuple[Document, float]] = {}
    for document, score in pairs:
        if document is not None and document.id not in found and (where is None or where(document)):
            found[document.id] = (owned(document), score)
            if len(found) == k:
                break
    return list(found.values())


def overlaps(one: Document, found: Iterable[tuple[Document, float]]) -> bool:
    """Whether a document is lines of a person's file that others which were found show in part already."""
    about = one.metadata
    return about.get("citation") == one.id and any(
        other.path == one.path
        and other.metadata.get("citation") == other.id
        and other.metadata["start_line"] <= about["end_line"]
        and about["start_line"] <= other.metadata["end_line"]
        for other, _ in found
    )


def stored_hits(
    store: Store, search: Callable[[int], list[Hit]], wanted: int, least: float = -1.0
) -> Iterator[tuple[StoredChunk, float]]:
    """The chunks that a search finds, best first, down to a score of `least`.

    `wanted` of them are looked at, then ever more, each once.
    """
    looked_at: set[int] = set()
    while True:
        hits = search(wanted)
        fresh = [hit for hit in hits if hit.chunk_id not in looked_at and hit.score >= least]
        chunks = {stored.id: stored for stored in store.chunks(hit.chunk_id for hit in fresh)}
        yield from ((chunks[hit.chunk_id], hit.score) for hit in fresh if hit.chunk_id in chunks)
        if len(hits) < wanted or hits[-1].score < least:
            return
        looked_at.update(hit.chunk_id for hit in fresh)
        wanted *= WIDER
