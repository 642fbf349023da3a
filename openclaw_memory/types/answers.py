"""What a memory answers: results of a search, the report of a sync, its progress, and the status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from openclaw_memory.types.files import Skipped, Source, citation

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A contiguous run of lines that answers, with its place.

    `score` lies in [0, 1]; `parts` says how it came about: `confidence` that the notes answer at all times the `share`
    of this answer, or `vector_score` and `text_score` where whole chunks answer; in both `vector_share`, 0..1, is what
    meaning has in it, and `decay` what age has left of it. `SearchResults.explain()` shows them.
    """

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one sync did. Paths are listed, except for the unchanged files, which are counted.

    Files in `waiting` are found by keywords, but lack vectors, for the reason given, until a sync gets them.
    `embedded` counts texts, `tokens` estimates from above what they came to.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    failed: tuple[Skipped, ...] = ()
    waiting: tuple[Skipped, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    embedded: int = 0
    tokens: int = 0
    seconds: float = 0.0
    rebuilt: str | None = None

    @property
    def ok(self) -> bool:
        return not self.failed and not self.waiting

    def _repr_html_(self) -> str:
        from openclaw_memory.tables import table
        from openclaw_memory.telling import first_of

        files = [(what, path) for what in ("added", "changed", "removed") for path in first_of(getattr(self, what))]
        told = [
            (what, f"{file.path}: {file.reason}")
            for what in ("failed", "waiting", "skipped")
            for file in getattr(self, what)
        ]
        rebuilt = [("built again", self.rebuilt)] if self.rebuilt else []
        caption = (
            f"{len(self.added)} added, {len(self.changed)} changed, {len(self.removed)} removed, "
            f"{self.unchanged} unchanged; embedded: {self.embedded}"
        )
        return table(caption, ("sync", ""), [*files, *told, *rebuilt])


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a long piece of work: `completed` of `total` units, and what they are.

    `embedded` texts of at most `tokens` tokens were embedded meanwhile, in `seconds`.
    """

    completed: int
    total: int
    label: str
    embedded: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Texts embedded in a second; 0 where none were."""
        return self.embedded / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the pace so far; None before the first unit."""
        return self.seconds / self.completed * (self.total - self.completed) if self.completed else None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a memory: what is indexed, with what, and whatever works less well than it could.

    `dirty` says of each file that a sync would read, or forget, why; those in `waiting` lack only vectors. `skipped`
    are files that were found and left out. `passed_over` says why other providers were not taken, `fallback`, of one
    that stands in for the requested one, `from` where and for what `reason`. `problems` is what a deep look finds wrong
    with the index itself (syncing with force mends it).

    `last_sync` tells of the latest sync of any process that came to its end, `last_error` of what has ended one since;
    both have a time `at`, in ISO 8601. `bytes` counts those of the `index`, its `log`, the `notes` and the `sessions`.
    `watcher` is a line about the one at work in this process, None where there is none. `flush` says of each session
    whose latest flush failed, by its key, what went wrong.
    """

    workspace: str
    index_path: str
    provider: str
    model: str
    requested_provider: str
    passed_over: Mapping[str, str]
    mode: Literal["hybrid", "keyword"]
    files: int
    chunks: int
    sources: Mapping[str, tuple[int, int]]
    dirty: Mapping[str, str]
    skipped: tuple[Skipped, ...]
    vector: Mapping[str, Any]
    fts: Mapping[str, Any]
    cache: Mapping[str, Any]
    index_bytes: int
    notices: tuple[str, ...]
    engine: Mapping[str, str]
    problems: tuple[str, ...] = ()
    waiting: tuple[Skipped, ...] = ()
    backend: str = "sqlite"
    extra_paths: tuple[str, ...] = ()
    fallback: Mapping[str, str] | None = None
    batch: Mapping[str, Any] = field(default_factory=dict)
    last_sync: Mapping[str, Any] | None = None
    last_error: Mapping[str, Any] | None = None
    watcher: str | None = None
    bytes: Mapping[str, int] = field(default_factory=dict)
    flush: Mapping[str, str] = field(default_factory=dict)

    def to_pandas(self) -> pandas.DataFrame:
        """One row a field: its name, and its value.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from openclaw_memory.tables import frame

        return frame(
            "to_pandas()", ("field", "value"), ((item.name, getattr(self, item.name)) for item in fields(self))
        )

    def _repr_html_(self) -> str:
        from openclaw_memory.tables import table
        from openclaw_memory.telling import overview, shortcomings

        return table("memory", ("", ""), [*overview(self, near=True), *shortcomings(self)])
