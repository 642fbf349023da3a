"""What a framework puts into a memory: a document with an id and metadata, kept as a Markdown file of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openclaw_memory.types.files import citation
from openclaw_memory.types.index import Matrix


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its metadata, which are JSON. `path` is the file it stands in, "" before it was written.

    What a search finds in a person's own notes is a document too: its id is its citation, and its metadata are `path`,
    `start_line`, `end_line`, `source` and `citation`.

    `fields` are JSON as well, and stand above the text beside the metadata, by names of `a-z` and `_`: what a framework
    needs to make its own object again. `model` is the identity of the model whose vector came with the document, ""
    where none did. `line` is the one of its file, from 1, that the text begins with, 0 before it was written.
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    path: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""
    line: int = field(default=0, compare=False)  # the same document may be moved, and gets other fields

    @property
    def citation(self) -> str:
        """The lines of its file where the text stands, `path#L3-L9`; "" before it was written."""
        return citation(self.path, self.line, self.line + self.text.count("\n")) if self.line else ""


@dataclass(frozen=True, slots=True)
class VectorSource:
    """What makes the vectors that documents come with; vectors of two identities are never compared.

    `identity` is as that of an `Embedder`, `model` its name for people. `make` returns vectors, shape (n, dims), for n
    documents: for those that a person has changed since, and for all when the index is gone. None: nobody can make them
    again, so that they are kept above the text of their documents.
    """

    identity: str
    model: str
    make: Callable[[Sequence[Document]], Matrix] | None = None
