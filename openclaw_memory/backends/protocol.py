"""What a `Memory` asks of its engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from openclaw_memory.types import Excerpt, Progress, Source, SyncReport

if TYPE_CHECKING:
    import datetime

    from openclaw_memory.search import SearchResults
    from openclaw_memory.types import Status
    from openclaw_memory.types.search_filter import SearchFilter


@runtime_checkable
class Backend(Protocol):
    """Indexes the files of a workspace and answers from them.

    Arguments, results and errors are those of the methods of `Memory` with the same names.
    """

    def search(
        self,
        query: str,
        *,
        max_results: int | None = None,
        max_chars: int | None = None,
        min_score: float | None = None,
        source: Source | None = None,
        explain: bool = False,
        now: datetime.datetime | None = None,
        only: SearchFilter | None = None,
        task: str | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> SearchResults:
        """Return the lines that answer `query`, best first.

        `only` holds the filters of `Memory.search`, `path` to `min_confidence`, checked; None for none.
        `task` and `rules` are left out where none are given.
        """
        ...

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Return lines of a memory file, from disk."""
        ...

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
    ) -> SyncReport:
        """Bring the index up to date with the files."""
        ...

    def status(self, *, deep: bool = False) -> Status:
        """Return what is indexed, with what, and what is degraded."""
        ...

    def close(self) -> None:
        """Release everything. Calling it twice is allowed."""
        ...
