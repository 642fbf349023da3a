"""A person's own lines as documents, whose ids are their citations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from openclaw_memory.errors import NotFoundError, PathNotAllowedError, QueryError
from openclaw_memory.types import Document, Source, citation

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace
    from openclaw_memory.workspace.known import Known

_CITATION = re.compile(r"(.+?)(?:#L([1-9]\d*)(?:-L([1-9]\d*))?)?", re.DOTALL)


def document_of(path: str, start: int, end: int, text: str, source: Source) -> Document:
    """The document that lines of a person's file are: from `start` to `end`, both counted from 1 and included."""
    cited = citation(path, start, end)
    metadata = {"path": path, "start_line": start, "end_line": end, "source": source, "citation": cited}
    return Document(cited, text, metadata, path, line=start)


def cited_lines(workspace: Workspace, doc_id: str) -> Document | None:
    """The lines that an id cites, with secrets masked; None where it cites none."""
    match = _CITATION.fullmatch(doc_id)
    if match is None or match[2] is None:
        return None
    start = int(match[2])
    try:
        lines = workspace.excerpt(match[1], start, int(match[3] or start) - start + 1)
    except (NotFoundError, PathNotAllowedError, QueryError):
        return None
    source: Source = "sessions" if lines.path.startswith("sessions/") else "memory"
    return document_of(lines.path, lines.start_line, lines.end_line, lines.text, source)


def check_names_no_file(workspace: Workspace, known: Known, doc_id: str) -> None:
    """Check that what is no document's id names no file either, by its path or by a citation.

    Raises:
        PathNotAllowedError: it does: the message says how what is there is removed.
    """
    match = _CITATION.fullmatch(doc_id)
    path = match[1] if match else doc_id
    seen = known.text_at(path)
    if seen is not None and seen.content is not None:
        raise PathNotAllowedError(
            f"{doc_id!r} names the file {path} of a document: delete it by the id that stands above its text, or "
            "`drop` it by its path"
        )
    try:
        workspace.excerpt(path, lines=1)
    except (NotFoundError, PathNotAllowedError):
        return
    raise PathNotAllowedError(
        f"{doc_id!r} cites {path} and is no document's id: a person's own file is changed by hand, or with `edit` and "
        "`delete` of the memory; a document is deleted by the id it was added with"
    )
