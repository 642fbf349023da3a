"""What files hold as documents, and the first of those that were found, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from openclaw_memory.chunking.matter import EMBEDDING, MODEL
from openclaw_memory.types import Document
from openclaw_memory.workspace.documents import name_of
from openclaw_memory.workspace.known import DOCUMENTS_FOLDER, Seen, copied

Where: TypeAlias = Callable[[Document], bool]

# What stands above the text for this library itself.
OURS = frozenset({"id", "metadata", EMBEDDING})


def document_in(path: str, seen: Seen, name: str = "") -> Document | None:
    """The document that was seen in a file, None where there is none; `name` is its id where none can be read in it."""
    doc_id, content = seen.doc_id, seen.content
    if content is None or (doc_id is None and not path.startswith(f"{DOCUMENTS_FOLDER}/")):
        return None
    metadata, embedding = content.fields.get("metadata"), content.fields.get(EMBEDDING)
    # Copies: what is kept for the next look must not change.
    return Document(
        doc_id or name or name_of(path),
        content.text,
        copied(metadata) if isinstance(metadata, dict) else {},
        path,
        {field: copied(value) for field, value in content.fields.items() if field not in OURS},
        str(embedding.get(MODEL, "")) if isinstance(embedding, dict) else "",
    )


def distinct(
    pairs: Iterable[tuple[Document | None, float]], k: int, where: Where | None
) -> list[tuple[Document, float]]:
    """The first k of those that fit, each id once."""
    found: dict[str, tuple[Document, float]] = {}
    for document, score in pairs:
        if document is not None and document.id not in found and (where is None or where(document)):
            found[document.id] = (document, score)
            if len(found) == k:
                break
    return list(found.values())
