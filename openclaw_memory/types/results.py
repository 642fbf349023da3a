"""Define results of a search, reports of a sync and a heartbeat, and the items, plan and receipt of a forgetting."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from openclaw_memory.types.files import Skipped, Source, Span, format_citation
from openclaw_memory.types.records import SourceKind

Confidence: TypeAlias = Literal["strong", "weak"]
IN_OTHER_WORDS = "in other words"  # as people and models read of a weak result


class SearchResult(Struct, frozen=True):
    """The lines of one place in a file that answer a query.

    They are all lines from `start_line` to `end_line`, or the `spans` (first and last line of each run) of them that
    answer best: `snippet` then has a line with `…` in place of those left out. `score` is in [0, 1]. `parts` says how
    it came about: the `confidence` that the notes answer the query at all times the `share` of this result, or
    the cosine `vector_score` and `text_score`, 0..1, if results are whole chunks. In both, `vector_share`, 0..1, is the
    part of the score that comes from vectors, `task` what a task has added, and `decay` what age has left.
    `SearchResults.explain()` shows them. A result whose `confidence` is "weak" has little in common with the query: it
    says the same in other words, or something else.
    """

    path: str
    start_line: int
    end_line: int
    score: float
    snippet: str
    source: Source
    parts: Mapping[str, float] = {}
    spans: tuple[Span, ...] = ()
    confidence: Confidence = "strong"

    def __post_init__(self) -> None:
        """Fill in `spans`, the lines from the first to the last, where there are none."""
        if not self.spans:
            structs.force_setattr(self, "spans", ((self.start_line, self.end_line),))

    @property
    def citation(self) -> str:
        """The file and its lines that are shown: `path#L3-L9`."""
        return format_citation(self.path, *self.spans)

    def _repr_html_(self) -> str:
        from openclaw_memory.display import render_code, render_table

        return render_table(render_code(self.citation), RESULT_COLUMNS, [make_row(self)])


RESULT_COLUMNS = ("score", "place", "text")


def make_row(result: SearchResult) -> tuple[object, str, str]:
    """Return the cells of a result in a table with `RESULT_COLUMNS`."""
    from openclaw_memory.display import KEYWORD_COLOUR, render_code, render_lines

    score = result.score, (result.score, KEYWORD_COLOUR)
    return score, render_code(result.citation + mark_weak(result)), render_lines(result.snippet)


def mark_weak(result: SearchResult) -> str:
    """Return the mark behind the citation of a result that has little in common with the query."""
    return f" {IN_OTHER_WORDS}" if result.confidence == "weak" else ""


class SyncReport(Struct, frozen=True):
    """The result of one sync. Paths are listed, except for the unchanged files, which are counted.

    Attributes:
        added: New files.
        changed: Files whose text changed.
        removed: Files that are gone.
        unchanged: How many other files there are.
        failed: Files that could not be indexed, with the reason.
        waiting: Files that keyword search finds, but that lack vectors until a later sync, with the reason.
        skipped: Files that were left out, with the reason.
        embedded: How many texts were embedded.
        tokens: An upper estimate of their tokens.
        seconds: How long the sync took.
        rebuilt: Why the index was built again, or None.
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
        """True if every file was read, and has its vectors."""
        return not self.failed and not self.waiting

    def _repr_html_(self) -> str:
        from openclaw_memory.display import render_table

        files = [(what, path) for what in ("added", "changed", "removed") for path in limit_names(getattr(self, what))]
        reasons = [
            (what, f"{file.path}: {file.reason}")
            for what in ("failed", "waiting", "skipped")
            for file in getattr(self, what)
        ]
        rebuilt = [("built again", self.rebuilt)] if self.rebuilt else []
        caption = (
            f"{len(self.added)} added, {len(self.changed)} changed, {len(self.removed)} removed, "
            f"{self.unchanged} unchanged; embedded: {self.embedded}"
        )
        return render_table(caption, ("sync", ""), [*files, *reasons, *rebuilt])


class Progress(Struct, frozen=True):
    """One step of a long task: `completed` of `total` units, and their name.

    `embedded` texts of at most `tokens` tokens were embedded so far, in `seconds`.
    """

    completed: int
    total: int
    label: str
    embedded: int = 0
    tokens: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Texts embedded per second; 0 before any was."""
        return self.embedded / self.seconds if self.seconds > 0 else 0.0


class SyncRecord(Struct, frozen=True):
    """The latest completed sync of any process.

    `at` is when it began, in ISO 8601, `reason` why it ran. Files are counted; those that `failed` or were `skipped`
    are named with their reasons (the first hundred).
    """

    at: str
    reason: str = ""
    seconds: float = 0.0
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    embedded: int = 0
    failed: Mapping[str, str] = {}
    skipped: Mapping[str, str] = {}
    waiting: int = 0
    rebuilt: str | None = None


class SyncFailure(Struct, frozen=True):
    """The error that ended the latest sync, and its time in ISO 8601 (None if unknown)."""

    at: str | None
    error: str


class Finding(Struct, frozen=True):
    """A place that needs a look.

    Attributes:
        where: A path or a citation.
        words: The finding, for people.
        advice: The answer of the model that was asked; None without one.
    """

    where: str
    words: str
    advice: str | None = None


class TaskReport(Struct, frozen=True):
    """One task of a heartbeat.

    Attributes:
        name: The task.
        seconds: How long it took.
        findings: Its findings.
        changed: The files that it changed.
        is_done: False if the time was up before it had looked at everything.
    """

    name: str
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    changed: tuple[str, ...] = ()
    is_done: bool = True


class HeartbeatRecord(Struct, frozen=True):
    """The latest heartbeat: its time (UTC, ISO 8601), the number of its findings, and the tasks that it left."""

    at: str
    findings: int
    left: tuple[str, ...] = ()


class HeartbeatReport(Struct, frozen=True):
    """The report of a heartbeat.

    Attributes:
        at: Its time (UTC, ISO 8601).
        seconds: How long it took.
        is_quiet: True if nothing had changed since the last one and nothing was due, so that no task ran.
        tasks: The tasks that ran.
        left: The tasks without time: the next heartbeat begins with them.
        is_busy: True if another heartbeat of this memory was under way, and nothing was done.
    """

    at: str
    seconds: float
    is_quiet: bool
    tasks: tuple[TaskReport, ...] = ()
    left: tuple[str, ...] = ()
    is_busy: bool = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all tasks."""
        return tuple(finding for task in self.tasks for finding in task.findings)


MAX_LISTED = 10  # names of files; more would push everything else off the screen


def limit_names(names: Sequence[str]) -> list[str]:
    """Return the first ten names, and how many more there are."""
    more = len(names) - MAX_LISTED
    return [*names[:MAX_LISTED], *([f"and {more:,} more"] if more > 0 else [])]


# A note of a day, another note, a fact, what a program added, a conversation, the end of one.
Kind: TypeAlias = Literal["day", "note", "record", "document", "transcript", "snapshot"]
# A file goes as a whole, lines of a note go, or messages are replaced by what says nothing.
Action: TypeAlias = Literal["remove", "lines", "messages"]


class Item(Struct, frozen=True):
    """One thing that is remembered: a file.

    Attributes:
        path: The path by which it is searched and read.
        kind: Its kind.
        date: The day that it is of: the first of the lines of a note or of the messages of a transcript, when a record,
            document or snapshot was made. None where it is of no day.
        last_date: The latest day that it is of: that of the last message or line, `date` of all others.
        changed: When the file was last written (UTC).
        type: The type of a record, None for all others.
        key: The key of a record, the id of a document, the session of a snapshot.
        source: Who says so: of a record as it says; a person's file, a program's document, a conversation.
        sensitivity: That of a record, None for all others.
        size: In bytes.
        lines: How many lines the file has.
        problem: Why a record is shown nowhere: no signature vouches for its file. None for all others.
    """

    path: str
    kind: Kind
    date: datetime.date | None
    last_date: datetime.date | None
    changed: datetime.datetime
    type: str | None
    key: str | None
    source: SourceKind | str
    sensitivity: str | None
    size: int
    lines: int
    problem: str | None = None


class Step(Struct, frozen=True):
    """One change of a plan: to a file, or to its lines `spans`, with the reason.

    `hash` is the SHA-256 of the first `size` bytes of the file: all of it when it was planned.
    """

    path: str
    kind: Kind
    action: Action
    spans: tuple[Span, ...]
    reason: str
    hash: str
    size: int

    @property
    def citation(self) -> str:
        """The file, or its lines that go."""
        return format_citation(self.path, *self.spans) if self.spans else self.path


class Review(Struct, frozen=True):
    """A place that may hold more and is not touched: `where` is a path or a citation, as `paths` takes it."""

    where: str
    reason: str


class ForgetPlan(Struct, frozen=True):
    """A plan of a forgetting: nothing was changed yet.

    Attributes:
        steps: The changes, by path.
        review: Items that a person has to look at.
        sessions: The keys of `sessions.json` that go with their transcripts.
        hash: Names this very plan; another one has another hash.
    """

    steps: tuple[Step, ...]
    review: tuple[Review, ...]
    sessions: tuple[str, ...]
    hash: str

    def __bool__(self) -> bool:
        return bool(self.steps or self.sessions)


class ForgetReceipt(Struct, frozen=True):
    """The result of a plan.

    Attributes:
        plan: The plan.
        is_dry_run: Whether nothing was done, but planned.
        forgotten: The paths and citations that are gone from the files.
        remaining: Items that could not go, or keepers of copies that this library does not touch, and why.
        is_erased: Whether the index, its keyword tables, vectors and log hold nothing of it any more.
    """

    plan: ForgetPlan
    is_dry_run: bool = True
    forgotten: tuple[str, ...] = ()
    remaining: tuple[Skipped, ...] = ()
    is_erased: bool = False
