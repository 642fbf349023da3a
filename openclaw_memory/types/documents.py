"""What a framework puts into a memory: a document with an id and metadata, kept as a Markdown file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its metadata, which are JSON. `path` is the file it stands in, "" before it was written.

    What a search finds in a person's own notes is a document too: its id is its citation, and its metadata are `path`,
    `start_line`, `end_line`, `source` and `citation`.
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
