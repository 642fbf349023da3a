"""Answers searches with QMD, a program of its own that indexes copies of the notes."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory import _forks
from openclaw_memory.backends.qmd_notes import NOTES_FOLDER, QmdNotes
from openclaw_memory.backends.qmd_program import INDEX_NAME, DamagedIndexError, QmdProgram
from openclaw_memory.config.config import settings_of
from openclaw_memory.errors import (
    BackendError,
    ConfigError,
    NotOfferedError,
    OpenClawMemoryError,
    StoreError,
    remedy,
)
from openclaw_memory.indexing.background import Background
from openclaw_memory.indexing.history import unread_in_words
from openclaw_memory.records.files import RecordFiles
from openclaw_memory.types import Excerpt, Progress, SearchResult, SyncReport
from openclaw_memory.types.files import Skipped

if TYPE_CHECKING:
    from openclaw_memory.config import MemoryConfig
    from openclaw_memory.search import SearchResults
    from openclaw_memory.types import SearchRequest, Status
    from openclaw_memory.workspace import Workspace

_log = logging.getLogger(__name__)

_MODES: Mapping[str, Any] = {"search": "keyword", "vsearch": "vector", "query": "hybrid"}
_OVER_HTTP: Mapping[str, str] = {"search": "lex", "vsearch": "vec"}  # `query` asks a model, which the server leaves out
_HEADER = re.compile(r"@@ -(\d+),(\d+) @@")
_COPY = re.compile(r"qmd://[^/]+/([^/?#]+)")
_PENDING = re.compile(r"Pending:\s+(\d+)")
_VECTORS = re.compile(r"Vectors:\s+(\d+)")
_NEED = "need embeddings"
_COLLECTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NEGATED = re.compile(r'(?:^|(?<=\s))-+(?=[\w"])')
# A pasted page is not a query; QMD looks up every word of it.
_MOST_CHARS = 2000
# So many results more than wanted are asked for, since those of another source, expired ones and outdated ones go.
_SPARE = 10
_CONFIGURATION = "openclaw-memory.yml"
_BEHIND = "the latest update of QMD failed:"
_EMBEDDING = ".qmd-embed.lock"  # left behind by an `embed` that was killed


class QmdBackend:
    """The engine QMD 2 (`npm install -g @tobilu/qmd`) over copies of the notes. Safe to use from several threads.

    Scores are QMD's own: of its server 1 for the best result, 1/2 for the next, and so on; of its command
    `search` `|bm25| / (1 + |bm25|)`, which is about 0 for a word that most notes hold. `config.search.min_score` is on
    another scale and does not count; the `min_score` of a search does. A result is the lines that QMD shows, as they
    are now in the file.
    """

    def __init__(self, workspace: Workspace, config: MemoryConfig | None = None) -> None:
        """Start nothing yet: the first search or sync does.

        Args:
            workspace: The files, with the policies.
            config: The settings, above all `config.backend`; the defaults where None.

        Raises:
            ConfigError: The name of the collection has other characters than letters, digits, `-` and `_`.
        """
        from openclaw_memory.store.location import in_cache

        self._workspace, self._config = workspace, settings_of(config)
        rules = self._rules = self._config.backend
        if not _COLLECTION.fullmatch(rules.collection):
            raise ConfigError(f"backend.collection {rules.collection!r} must be up to 64 letters, digits, '-' or '_'")
        own = Path(rules.folder).expanduser() if rules.folder else in_cache(workspace.root).parent / "qmd"
        self.folder = workspace.root / own
        """Where the copies and QMD's index are."""
        self._records = RecordFiles(workspace, self._config.records)
        self._notes = QmdNotes(workspace, self._records, self.folder)
        self._program = QmdProgram(rules, self.folder)
        self._updating = _forks.lock()
        self._background = Background(self._cycle, rules.update_minutes * 60)
        self._failure: str | None = None
        self._began = self._is_closed = False
        self._is_current = self._is_embedded = False  # QMD has indexed and embedded the copies as they are

    def search(self, request: SearchRequest) -> SearchResults:
        """Return the lines that QMD finds, best first.

        In the mode `search` a note must hold every word of the query; `"..."` is a phrase, and `-word` leaves out notes
        that hold it. `min_score` is on QMD's scale, and 0 where None. `explain` keeps the results that it removes.

        Args:
            request: The search. `only`, `task` and `rules` are not offered.

        Raises:
            QueryError: An argument has a wrong type or value.
            NotOfferedError: QMD has no such filter or ranking.
            BackendError: QMD is missing, failed, lacks its vectors, or did not answer in time.
        """
        from openclaw_memory.search import SearchResults
        from openclaw_memory.search.budget import within
        from openclaw_memory.search.query import rules_of, with_time_zone

        self._check_open()
        rules = rules_of(request, self._config.search)
        now = with_time_zone(request.now)
        if unknown := _not_offered(request):
            raise NotOfferedError(
                f"QMD offers no {', '.join(unknown)} of a search: leave it out, or let the built-in engine answer"
            )
        answer = SearchResults(
            (),
            request.query,
            _MODES[self._rules.mode],
            "qmd",
            self._rules.mode,
            min_score=request.min_score or 0.0,
        )
        if not request.query.strip():
            return answer
        self._begin()
        hits, waiting = self._found(_as_asked(request.query, self._rules.mode), rules.max_results + _SPARE)
        results, lost = self._cited(hits, rules.snippet_chars)
        hidden = self._records.hidden((one.path for one in results), now)
        fitting = [one for one in results if one.path not in hidden and request.source in (None, one.source)]
        passed = [one for one in fitting if one.score >= answer.min_score]
        rejected = [one for one in fitting if one.score < answer.min_score]
        shown, omitted = passed[: rules.max_results], 0
        if request.max_chars is not None:
            kept, omitted = within(shown, request.max_chars)
            shown = list(kept)
        behind = bool(lost or self._notes.behind())
        if behind:
            self._background.request()
        unread = unread_in_words({one.path: one.reason for one in self._notes.skipped})
        return replace(
            answer,
            results=tuple(shown),
            filtered=len(rejected),
            rejected=tuple(rejected) if request.explain else (),
            stale=behind or waiting is not None,
            omitted=omitted,
            reason="; ".join(filter(None, [waiting, _words_on(lost), unread])) or None,
        )

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """See `Memory.get`."""
        self._check_open()
        excerpt = self._workspace.excerpt(path, start=start, lines=lines)
        self._records.check_shown(excerpt.path)
        return excerpt

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
    ) -> SyncReport:
        """Copy what has changed, and have QMD index it; in modes that search by vectors it is embedded afterwards.

        Args:
            force: Delete the copies and QMD's index first.
            progress: Called once, when the notes are copied.
            wait: How many seconds to wait for another update of this process; as long as it takes where None.

        Raises:
            WorkspaceError: The workspace cannot be listed.
            BackendError: QMD is missing, failed, or took longer than `config.backend.update_timeout_seconds`.
        """
        self._check_open()
        if not self._updating.acquire(timeout=-1 if wait is None else wait):
            raise BackendError(f"another update of QMD was not done after {wait:g} s: wait longer")
        try:
            report = self._updated(force=force, progress=progress)
        finally:
            self._updating.release()
        self._failure = None
        if not self._is_embedded:
            self._background.request()
        return report

    def status(self, *, deep: bool = False) -> Status:
        """Return what is copied and indexed; with `deep`, `problems` says why a search fails."""
        from openclaw_memory.types.status import CacheStatus, DiskUsage, KeywordStatus, Status, VectorStatus

        self._check_open()
        problems: list[str] = []
        version, vectors, pending = "", None, None
        if deep:
            try:
                version = self._program.version()
                self._begin()
                self._found("memory", 1)
                vectors, pending = self._counts()
            except OpenClawMemoryError as error:
                problems.append(str(error))
        scan = self._workspace.scan()
        by_vectors = self._rules.mode != "search"
        index = self.folder / INDEX_NAME
        size = sum(file.stat().st_size for file in self.folder.glob(f"{INDEX_NAME}*"))
        said = {"mode": self._rules.mode, "copies": self._notes.count, "vectors": vectors, "pending": pending}
        return Status(
            workspace=str(self._workspace.root),
            index_path=str(index),
            provider="qmd",
            model=self._rules.mode,
            requested_provider="qmd",
            unavailable={},
            mode="hybrid" if by_vectors else "keyword",
            files=self._notes.count,
            chunks=0,  # QMD does not say how many it makes
            sources={source: (count, 0) for source, count in self._notes.by_source().items()},
            dirty=self._notes.behind(),
            skipped=scan.skipped,
            vector=VectorStatus(by_vectors, by_vectors and vectors != 0, "qmd"),
            fts=KeywordStatus(available=not problems, verified=not problems if deep else None),
            cache=CacheStatus(enabled=False, entries=0, max_entries=0),
            index_bytes=size,
            notices=tuple(filter(None, [self._program.missing(), self._failure and f"{_BEHIND} {self._failure}"])),
            engine={"qmd": version} if version else {},
            problems=tuple(problems),
            backend="qmd",
            store="qmd",
            extra_paths=self._workspace.rules.extra_paths,
            bytes=DiskUsage(index=size),
            custom={name: value for name, value in said.items() if value is not None},
        )

    def close(self) -> None:
        """End the background work, the server, and what else of QMD runs. Calling it twice is allowed."""
        self._is_closed = True
        self._program.close()
        self._background.stop()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"the memory of {self._workspace.root} is closed: open it again")

    def _begin(self) -> None:
        """Index the notes before the first search where there is no index; later updates run in the background."""
        if self._began:
            return
        with self._updating:
            if not (self.folder / INDEX_NAME).exists():
                if not self._config.sync.before_search:
                    raise NotOfferedError("QMD has indexed nothing yet: call sync()")
                self._updated()
        self._began = True
        self._background.start()
        self._background.request()

    def _cycle(self) -> None:
        try:
            with self._updating:
                self._updated(if_changed=True)
            if not self._is_embedded:  # no search and no sync waits for it: it may take minutes, or a download
                self._program.run("embed", seconds=self._rules.update_timeout_seconds)
                self._is_embedded = True
        except (OpenClawMemoryError, OSError) as error:
            if not self._is_closed:
                self._failure = str(error)
                _log.warning("QMD could not be brought up to date: %s", error)
        else:
            self._failure = None

    def _updated(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        if_changed: bool = False,
    ) -> SyncReport:
        """Copy the notes and have them indexed; the caller holds the lock of updates."""
        started = time.perf_counter()
        if force:
            self._program.stop()
            self._notes.delete()
            self._delete_index()
        done = self._notes.copy()
        if done.added or done.changed or done.removed or force:
            self._is_current = False
        if progress is not None:
            count = self._notes.count
            progress(Progress(count, count, "files copied", 0, 0, time.perf_counter() - started))
        rebuilt = "it was asked for" if force else None
        if not (if_changed and self._is_current):
            rebuilt = self._indexed() or rebuilt
            self._is_current, self._is_embedded = True, self._rules.mode == "search"
        return SyncReport(
            added=done.added,
            changed=done.changed,
            removed=done.removed,
            unchanged=done.unchanged,
            failed=tuple(Skipped(path, why) for path, why in done.failed.items()),
            seconds=round(time.perf_counter() - started, 3),
            rebuilt=rebuilt,
        )

    def _indexed(self) -> str | None:
        """Have QMD index the copies, and return why its index was built again, if it was."""
        self._configure()
        self._program.version()
        try:
            self._program.run("update", seconds=self._rules.update_timeout_seconds)
        except DamagedIndexError as error:
            _log.warning("%s: it is built again", error)
        else:
            return None
        self._program.stop()
        self._delete_index()
        self._program.run("update", seconds=self._rules.update_timeout_seconds)
        return "QMD's index was damaged"

    def _configure(self) -> None:
        """Write QMD's configuration, which names the copies alone."""
        place = {"path": str(self.folder / NOTES_FOLDER), "pattern": "**/*.md"}
        words = json.dumps({"collections": {self._rules.collection: place}}, indent=2)  # JSON is YAML
        file = self.folder / _CONFIGURATION
        try:
            if not file.exists() or file.read_text(encoding="utf-8") != words:
                file.write_text(words, encoding="utf-8")
        except OSError as error:
            raise BackendError(f"{file} cannot be written ({error}): {remedy(error)}") from error

    def _delete_index(self) -> None:
        for file in (*self.folder.glob(f"{INDEX_NAME}*"), self.folder / _EMBEDDING):
            file.unlink(missing_ok=True)

    def _found(self, query: str, limit: int) -> tuple[list[Mapping[str, Any]], str | None]:
        """Return what QMD finds, and which notes it could not search by vectors."""
        rules = self._rules
        if rules.server and rules.mode in _OVER_HTTP:
            hits = self._program.ask([{"type": _OVER_HTTP[rules.mode], "query": query}], limit)
            if not hits and rules.mode == "vsearch":
                self._check_vectors()
            return hits, None
        options = ("--json", "-n", str(limit), "-c", rules.collection)
        said = self._program.run(rules.mode, *options, "--", query, seconds=rules.timeout_seconds)
        listed = _listed(said.out)
        if listed is None:
            raise BackendError(
                f"`qmd {rules.mode} --json` wrote no list of results but {said.out.strip()[:120]!r}: is another "
                "program called qmd? See backend.command"
            )
        if _NEED not in said.error:
            return listed, None
        if not listed and rules.mode == "vsearch":
            self._check_vectors()
        warning = next(line for line in said.error.splitlines() if _NEED in line)
        return listed, f"QMD searched without all vectors: {warning.strip()[:200]}"

    def _check_vectors(self) -> None:
        """Raise an error where nothing was found because nothing is embedded."""
        vectors, pending = self._counts()
        if pending and not vectors:
            raise BackendError(
                f"QMD has embedded none of {pending} notes, and so finds nothing by vectors: it does so in the "
                'background once its models are there (`qmd pull`), or use backend.mode = "search"'
            )

    def _counts(self) -> tuple[int, int]:
        """Return how many vectors there are, and how many notes wait for theirs."""
        said = self._program.run("status", seconds=self._rules.timeout_seconds).out
        vectors, pending = _VECTORS.search(said), _PENDING.search(said)
        return int(vectors[1]) if vectors else 0, int(pending[1]) if pending else 0

    def _cited(self, hits: Sequence[Mapping[str, Any]], most_chars: int) -> tuple[list[SearchResult], list[str]]:
        """Return the results with the lines that their files have now, and the files that have others."""
        results, lost = [], []
        for hit in hits:
            name = _COPY.match(str(hit.get("file", "")))
            place = self._notes.place(name[1]) if name else None
            if name is None or place is None:
                continue  # of a file that is a memory's no more
            path, source = place
            header = _HEADER.search(str(hit.get("snippet", "")))
            copy = self._notes.copied(name[1])
            try:
                lines = self._notes.text(path, source).split("\n")
            except OpenClawMemoryError:  # it has gone, or may not be read any more
                lost.append(path)
                continue
            first = int(header[1]) if header else int(hit.get("line", 1))
            last = first + int(header[2]) - 1 if header else first
            if copy is None or copy.split("\n")[first - 1 : last] != lines[first - 1 : last]:
                lost.append(path)
                continue
            last = min(last, len(lines))
            while first < last and not lines[first - 1].strip():
                first += 1
            while first < last and not lines[last - 1].strip():
                last -= 1
            snippet = "\n".join(lines[first - 1 : last])[:most_chars]
            if snippet.strip():
                score = min(max(float(hit.get("score") or 0.0), 0.0), 1.0)
                results.append(SearchResult(path, first, last, score, snippet, source))
        return results, sorted(set(lost))


def _listed(text: str) -> list[Mapping[str, Any]] | None:
    with suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, list) and all(isinstance(one, dict) for one in found):
            return found
    return None


def _as_asked(query: str, mode: str) -> str:
    """Return a question as QMD takes it: in one line, with quotes in pairs, and for vectors without its signs."""
    query = " ".join(query[:_MOST_CHARS].replace("\0", " ").split())
    if mode != "search" or query.count('"') % 2:
        query = " ".join(query.replace('"', " ").split())
    return query if mode == "search" else _NEGATED.sub("", query)


def _not_offered(request: SearchRequest) -> list[str]:
    """Return the names of what QMD cannot do.

    It has phrases and a minus of its own, but the minus leaves out whole notes, and of a note with the phrase it shows
    other lines: those with most of the words as they are typed, quotation marks included.
    """
    only = {} if request.only is None else asdict(request.only)
    filters = [name for name, value in only.items() if value not in (None, ())]
    return filters + [name for name in ("task", "rules") if getattr(request, name) is not None]


def _words_on(lost: Sequence[str]) -> str | None:
    if not lost:
        return None
    return f"results of {', '.join(lost)} were left out: the text has changed, and is indexed again"
