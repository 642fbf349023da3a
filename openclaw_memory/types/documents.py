"""Define documents, tools with their answers, and snapshots."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from openclaw_memory._safe import escape_json
from openclaw_memory.types.files import format_citation
from openclaw_memory.types.index import Matrix


class Document(Struct, frozen=True):
    """A text with an id and metadata.

    A result from a person's own notes is a document too: its id is its citation, and its metadata are `path`,
    `start_line`, `end_line`, `source` and `citation`.

    Attributes:
        id: The id.
        text: The text.
        metadata: JSON values by name.
        path: The file that holds it, "" before it is written.
        fields: JSON values by names of `a-z` and `_`, written above the text next to the metadata: what a framework
            needs to restore its own object.
        model: The identity of the model whose vector came with the document, or "".
        line: The line of its file, 1-based, where the text begins; 0 before it is written.
        collection: The collection that it was added to, or "".
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = {}
    path: str = ""
    fields: Mapping[str, Any] = {}
    model: str = ""
    line: int = 0  # the same document may be moved, and gets other fields
    collection: str = ""

    @property
    def part_of(self) -> str | None:
        """The id of its whole, such as the file that a node was cut from, or None; of a person's lines the path."""
        if self.metadata.get("citation") == self.id and self.metadata.get("path") == self.path:
            return self.path
        whole = self.fields.get("part_of")
        return whole if whole and isinstance(whole, str) else None

    @property
    def citation(self) -> str:
        """The lines of its file that hold the text, `path#L3-L9`; "" before it is written."""
        return format_citation(self.path, (self.line, self.line + self.text.count("\n"))) if self.line else ""


class VectorSource(Struct, frozen=True):
    """The model of vectors that documents come with. Vectors of two identities are never compared.

    Attributes:
        identity: As that of an `Embedder`.
        model: The name of the model, for people.
        make: Returns the vectors of n documents, shape (n, dims). It is called for documents that a person has changed
            since, and for all when the index is gone. None if they cannot be made again: they are lost with the index.
    """

    UNNAMED: ClassVar[str] = "given"  # the identity of vectors whose model nobody named
    identity: str
    model: str
    make: Callable[[Sequence[Document]], Matrix] | None = None


class ToolAnswer(Struct, frozen=True):
    """The answer of a tool: `data` for the model, and `artifact`, the Python object, for the calling program.

    `data["status"]` is `ok`, or says what went wrong: what a model can fix is returned, and not raised.
    """

    data: Mapping[str, Any]
    artifact: Any = None

    @property
    def ok(self) -> bool:
        """True if the tool succeeded."""
        return self.data.get("status") == "ok"

    @property
    def text(self) -> str:
        """`data` as compact JSON with escaped controls and direction marks."""
        import json

        return escape_json(json.dumps(self.data, ensure_ascii=False, separators=(",", ":")))


class Tool(Struct, frozen=True):
    """A function that a model may call. `parameters` is the JSON schema of the arguments, an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], ToolAnswer]

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        """Return the answer to a call, as compact JSON."""
        return self.run(arguments).text


class SnapshotMessage(Struct, frozen=True):
    """A message: the `role` it was said in, and at most 500 UTF-16 units of its text, with secrets masked."""

    role: str
    content: str


class Snapshot(Struct, frozen=True):
    """The last messages of a session, in a file of their own.

    Attributes:
        session_id: The session.
        timestamp: When it was made (UTC).
        messages: The last messages, oldest first.
        summary: The subject of the conversation; None where the snapshot was made without one.
        path: The file, relative to the workspace.
    """

    session_id: str
    timestamp: datetime.datetime
    messages: tuple[SnapshotMessage, ...]
    summary: str | None
    path: str

    def to_dict(self) -> Mapping[str, Any]:
        """Return the content of the file as JSON values: `id`, `timestamp`, `messages`, and `summary` if any."""
        at = self.timestamp.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        messages = [{"role": message.role, "content": message.content} for message in self.messages]
        content = {"id": self.session_id, "timestamp": at, "messages": messages}
        return content | ({"summary": self.summary} if self.summary else {})
