"""Fakes for tests of programs that use a memory: an embedder that records its texts, and a workspace."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from openclaw_memory.embeddings.hashing import HashingEmbedder
from openclaw_memory.errors import WorkspaceError
from openclaw_memory.types import Matrix, Vector


class RecordingEmbedder:
    """An embedder that needs no model and no network: the same text always has the same vector.

    Texts that share words have similar vectors. `documents` and `queries` are the texts that it embedded, in order.
    While `failure` is an error, such as `EmbedderError("the service is down")`, every call raises it.

    >>> embedder = RecordingEmbedder()
    >>> embedder.embed_query("ferry").shape
    (64,)
    >>> embedder.queries
    ['ferry']
    """

    leaves_machine = False

    def __init__(self, dims: int = 64, *, name: str = "recording") -> None:
        """Make an embedder of `dims` dimensions; two of different names have vectors of different identities."""
        self._vectors = HashingEmbedder(dims)
        self.provider, self.model, self.identity = name, f"{name}-{dims}", f"{name}:{dims}"
        self.documents: list[str] = []
        self.queries: list[str] = []
        self.failure: Exception | None = None
        self.closed = False

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question, and record it."""
        self._check()
        self.queries.append(text)
        return self._vectors.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, and record them."""
        self._check()
        self.documents += texts
        return self._vectors.embed_documents(texts)

    def close(self) -> None:
        """Note in `closed` that it was closed."""
        self.closed = True

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure


def sample_workspace(folder: str | os.PathLike[str]) -> Path:
    """Write a small workspace of notes, that of `openclaw-memory demo`, and return its path.

    Args:
        folder: A folder that is empty, or does not exist yet.

    Raises:
        WorkspaceError: There is something in the folder.
    """
    path = Path(folder)
    if path.exists() and any(path.iterdir()):
        raise WorkspaceError(f"{path} is not empty: name a folder that does not exist yet")
    with as_file(files("openclaw_memory") / "data" / "demo") as notes:
        shutil.copytree(notes, path, dirs_exist_ok=True)
    return path
