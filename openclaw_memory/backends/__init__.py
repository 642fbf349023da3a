"""Define the engine behind a `Memory` that answers searches; `builtin` is that of this library."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from openclaw_memory.types import Excerpt, Progress, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.search.results import SearchResults
    from openclaw_memory.types import Status

__all__ = ["Backend"]


@runtime_checkable
class Backend(Protocol):
    """Indexes the files of a workspace and answers from them.

    Arguments, results and errors are those of the methods of `Memory` with the same names; a search comes as one value.
    """

    def search(self, request: SearchRequest) -> SearchResults:
        """Return the lines that answer the query of a request, best first."""
        ...

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Return lines of a memory file, from disk."""
        ...

    def sync(
        self, *, force: bool = False, progress: Callable[[Progress], None] | None = None, wait: float | None = None
    ) -> SyncReport:
        """Bring the index up to date with the files."""
        ...

    def status(self, *, deep: bool = False) -> Status:
        """Return the state of the index, of the embedder and of the search."""
        ...

    def close(self) -> None:
        """Release everything. Calling it twice is allowed."""
        ...
