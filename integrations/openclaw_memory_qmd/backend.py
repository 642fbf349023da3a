"""Answer searches with QMD, and with the built-in engine if QMD fails."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from openclaw_memory.config import read_plugin_settings
from openclaw_memory.errors import ConfigError, OpenClawMemoryError, StoreError
from openclaw_memory.types import Excerpt, Progress, SearchResult, SyncReport
from openclaw_memory.workspace import SafeFolder, Workspace
from openclaw_memory_qmd.copies import COPIES_FOLDER, Copies
from openclaw_memory_qmd.program import COLLECTION, INDEX_NAME, DamagedIndexError, QmdProgram, read_hits
from openclaw_memory_qmd.settings import QmdSettings

if TYPE_CHECKING:
    from openclaw_memory import MemoryConfig, SearchResults
    from openclaw_memory.backends import Backend
    from openclaw_memory.search import SearchRequest
    from openclaw_memory.types import Status

_log = logging.getLogger(__name__)

RETRY_SECONDS = 60.0  # how long QMD is left alone after it has failed
_MODES: Mapping[str, Any] = {"search": "keyword", "vsearch": "vector", "query": "hybrid"}
_OVER_HTTP: Mapping[str, str] = {"search": "lex", "vsearch": "vec"}  # `query` asks a model, which the server leaves out
_HEADER = re.compile(r"@@ -(\d+),(\d+) @@")
_COPY = re.compile(r"qmd://[^/]+/([^/?#]+)")
_PENDING = re.compile(r"Pending:\s+(\d+)")
_VECTORS = re.compile(r"Vectors:\s+(\d+)")
_NEGATED = re.compile(r'(?:^|(?<=\s))-+(?=[\w"])')
_MOST_CHARS = 2000  # a pasted page is not a query: QMD looks up every word of it
_MOST_RESULTS = 20  # of one search of QMD's server
_SPARE = 10  # so many more are asked for, since those of another source and outdated ones go
_CONFIGURATION = "openclaw-memory.yml"
_EMBEDDING = ".qmd-embed.lock"  # left behind by an `embed` that was killed
_CLOSING_SECONDS = 10.0


class NotOfferedError(StoreError):
    """QMD lacks a feature; nothing is wrong with it."""


class QmdBackend:
    """QMD 2 (`npm install -g @tobilu/qmd`) over copies of the notes. Safe to use from several threads.

    Where QMD fails, lacks a feature or finds nothing, the built-in engine answers; `reason` of the results
    and `fallback` of the status say why. Scores are QMD's own: of its server 1 for the best result, 1/2 for the next,
    and so on; of its command `search` `|bm25| / (1 + |bm25|)`. The `min_score` of a search is on that scale.
    """

    def __init__(self, workspace: Workspace, builtin: Backend, config: MemoryConfig) -> None:
        """Start nothing yet: the first search or sync does.

        Args:
            workspace: The notes, with the policies.
            builtin: The built-in engine.
            config: The settings, with those of `[plugins.qmd]`.

        Raises:
            ConfigError: A setting of the plug-in is wrong, or its folder is in the workspace.
        """
        self._workspace, self._builtin, self._config = workspace, builtin, config
        self._settings = settings = read_plugin_settings(config, "qmd", QmdSettings)
        usual = SafeFolder.locate_data(workspace.root).base / "qmd"
        self.folder = workspace.root / (Path(settings.folder).expanduser() if settings.folder else usual)
        """Where the copies and QMD's index are."""
        if self.folder.is_relative_to(workspace.root):
            raise ConfigError(f"plugins.qmd.folder {settings.folder!r} is in the workspace: name a folder outside")
        self._files = SafeFolder(self.folder, create=True)
        self._copies = Copies(workspace, builtin, self._files)
        self._program = QmdProgram(settings, self.folder)
        self._updating = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: str | None = None
        self._update_failure: str | None = None
        self._retry_at = 0.0
        self._is_closed = self._is_indexed = self._is_embedded = False
        self._process = os.getpid()

    def search(self, request: SearchRequest) -> SearchResults:
        """Return the lines that QMD finds, best first, or those of the built-in engine with the reason.

        In the mode `search` a note must hold every word of the query; `"..."` is a phrase, and `-word` leaves out notes
        that hold it.

        Args:
            request: The search. With a filter, `task` or `settings` the built-in engine answers.
        """
        try:
            results = self._search(request)
            reason = "qmd found nothing"
        except NotOfferedError as error:
            results, reason = None, str(error)
        except (OpenClawMemoryError, OSError) as error:
            self._record_failure(error)
            results, reason = None, f"qmd failed: {error}"
        if results is not None and (results.results or results.rejected):
            return results
        answer = self._builtin.search(request)  # which says so if the memory is closed
        return replace(answer, reason="; ".join(filter(None, [f"another engine answered: {reason}", answer.reason])))

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """See `Memory.get`."""
        return self._builtin.get(path, start=start, lines=lines)

    def sync(
        self, *, force: bool = False, progress: Callable[[Progress], None] | None = None, wait: float | None = None
    ) -> SyncReport:
        """Bring the built-in index up to date, then QMD's; the status has the errors of QMD.

        Args:
            force: Build the indexes again: the copies and QMD's index are deleted first.
            progress: As for `Memory.sync`.
            wait: As for `Memory.sync`.
        """
        report = self._builtin.sync(force=force, progress=progress, wait=wait)
        self._is_indexed = False
        try:
            self._update(force=force)
        except (OpenClawMemoryError, OSError) as error:
            self._record_failure(error)
        else:
            self._follow()
        return report

    def status(self, *, deep: bool = False) -> Status:
        """Return the status of the built-in engine and of QMD; `deep` asks QMD a question."""
        state = self._builtin.status(deep=deep)
        custom: dict[str, Any] = {"mode": self._settings.mode, "copies": len(self._copies)}
        engine = dict(state.engine)
        try:
            self._program.locate()
            if deep:
                engine["qmd"] = self._program.check_version()
                self._begin()
                self._find("memory", 1)
                custom["vectors"], custom["pending"] = self._count_vectors()
                self._failure = None
        except (OpenClawMemoryError, OSError) as error:
            self._record_failure(error)
        if self._failure is not None:
            notices = (*state.notices, f"another engine answers, since qmd failed: {self._failure}")
            return structs.replace(state, fallback={"from": "qmd", "reason": self._failure}, notices=notices)
        failure = self._update_failure
        notices = state.notices if failure is None else (*state.notices, f"the latest update of QMD failed: {failure}")
        return structs.replace(state, backend="qmd", engine=engine, custom=custom, notices=notices)

    def close(self) -> None:
        """End QMD and the work in the background, and close the built-in engine. Calling it twice is allowed."""
        self._is_closed = True
        if os.getpid() == self._process:  # what a fork has copied is the parent's to end
            self._program.close()
            self._wake.set()
            if self._thread is not None:
                self._thread.join(_CLOSING_SECONDS)
        self._builtin.close()

    def _record_failure(self, error: Exception) -> None:
        if self._is_closed or self._is_resting():
            return
        self._failure, self._retry_at = str(error), time.monotonic() + RETRY_SECONDS
        self._is_indexed = False  # its index may be damaged: the next update looks
        _log.warning("another engine answers, since qmd failed: %s", error)

    def _is_resting(self) -> bool:
        return self._failure is not None and time.monotonic() < self._retry_at

    def _search(self, request: SearchRequest) -> SearchResults:
        from openclaw_memory import SearchResults

        settings = self._settings
        if filters := _list_filters(request):
            raise NotOfferedError(f"QMD offers no {', '.join(filters)} of a search")
        if self._is_resting():
            raise StoreError(str(self._failure))
        min_score = request.min_score or 0.0
        answer = SearchResults((), request.query, _MODES[settings.mode], "qmd", settings.mode, min_score=min_score)
        if not request.query.strip():
            return answer
        self._begin()
        limit = request.max_results or (_MOST_RESULTS if request.max_chars else self._config.search.max_results)
        hits, warning = self._find(_write_query(request.query, settings.mode), limit + _SPARE)
        self._failure = None
        results, outdated = self._read_results(hits)
        results = [result for result in results if request.filter.source in (None, result.source)]
        rejected = tuple(result for result in results if result.score < min_score)
        is_behind = bool(outdated) or not self._copies.is_current()
        if is_behind:
            self._wake.set()
        encrypted = [file for file in self._workspace.scan().skipped if file.path.endswith(".age")]
        reasons = [warning] if warning else []
        if outdated:
            reasons.append(
                f"results of {', '.join(outdated)} were left out: the text has changed, and is indexed again"
            )
        if encrypted:
            reasons.append(f"what is encrypted was not searched: {encrypted[0].path} {encrypted[0].reason}")
        return replace(
            answer,
            results=tuple(result for result in results if result.score >= min_score)[:limit],
            filtered=len(rejected),
            rejected=rejected if request.options.explain else (),
            stale=is_behind or warning is not None,
            reason="; ".join(reasons) or None,
        )

    def _begin(self) -> None:
        """Index the notes before the first search if there is no index; later updates run in the background."""
        if os.getpid() != self._process:
            raise NotOfferedError("it answers in the process that opened the memory")
        if self._thread is None:
            if not (self.folder / INDEX_NAME).exists():
                if not self._config.sync.before_search:
                    raise NotOfferedError("QMD has indexed nothing yet: call sync()")
                self._update()
            self._follow()

    def _follow(self) -> None:
        """Update QMD in the background: at once, when a search asks for it, and at the interval."""
        self._wake.set()
        with self._updating:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._keep_up, name="openclaw-memory qmd", daemon=True)
                self._thread.start()

    def _keep_up(self) -> None:
        minutes = self._settings.update_minutes
        while True:
            self._wake.wait(minutes * 60 if minutes else None)
            self._wake.clear()
            if self._is_closed:
                return
            try:
                self._update()
                if not self._is_embedded:  # it may take minutes, or a download: no search and no sync waits for it
                    self._program.run("embed", seconds=self._settings.update_timeout_seconds)
                    self._is_embedded = True
                self._update_failure = None
            except (OpenClawMemoryError, OSError) as error:
                if not self._is_closed:
                    self._update_failure = str(error)
                    _log.warning("QMD could not be brought up to date: %s", error)

    def _update(self, *, force: bool = False) -> None:
        """Copy the notes that have changed, and have QMD index them."""
        seconds = self._settings.update_timeout_seconds
        with self._updating:
            if force:
                self._copies.delete()
                self._delete_index()
            is_changed = self._copies.update()
            if self._is_indexed and not is_changed:
                return
            self._is_indexed = False
            self._configure()
            self._program.check_version()
            try:
                self._program.run("update", seconds=seconds)
            except DamagedIndexError as error:
                _log.warning("%s", error)
                self._delete_index()
                self._program.run("update", seconds=seconds)
            self._is_indexed, self._is_embedded = True, self._settings.mode == "search"

    def _configure(self) -> None:
        """Write QMD's configuration, with the copies alone."""
        collection = {"path": str(self.folder / COPIES_FOLDER), "pattern": "**/*.md"}
        text = json.dumps({"collections": {COLLECTION: collection}}, indent=2).encode()  # JSON is YAML
        with self._files.lock():
            self._files.replace(_CONFIGURATION, text)

    def _delete_index(self) -> None:
        self._program.stop()
        names = [name for name in self._files.list_names() if name.startswith(INDEX_NAME) or name == _EMBEDDING]
        with self._files.lock():
            self._files.remove_all("", names)

    def _find(self, query: str, limit: int) -> tuple[list[Mapping[str, Any]], str | None]:
        """Return QMD's results, and a warning if it lacks vectors."""
        settings, warning = self._settings, None
        if settings.server and settings.mode in _OVER_HTTP:
            hits = self._program.ask([{"type": _OVER_HTTP[settings.mode], "query": query}], limit)
        else:
            options = ("--json", "-n", str(limit), "-c", COLLECTION)
            output = self._program.run(settings.mode, *options, "--", query, seconds=settings.timeout_seconds)
            hits = read_hits(output.out)
            warning = next((line for line in output.error.splitlines() if "need embeddings" in line), None)
        if not hits and settings.mode == "vsearch":
            vectors, pending = self._count_vectors()
            if pending and not vectors:  # QMD itself says that all is well
                raise StoreError(
                    f"QMD has embedded none of {pending} notes: it does so in the background once its models are there "
                    '(`qmd pull`), or set plugins.qmd.mode = "search"'
                )
        return hits, warning and f"QMD searched without all vectors: {warning.strip()[:200]}"

    def _count_vectors(self) -> tuple[int, int]:
        """Return how many vectors there are, and how many notes wait for theirs."""
        text = self._program.run("status", seconds=self._settings.timeout_seconds).out
        vectors, pending = _VECTORS.search(text), _PENDING.search(text)
        return int(vectors[1]) if vectors else 0, int(pending[1]) if pending else 0

    def _read_results(self, hits: list[Mapping[str, Any]]) -> tuple[list[SearchResult], list[str]]:
        """Return the results with the lines that the notes have now, and the notes that have others."""
        results, outdated = [], set()
        for hit in hits:
            name = _COPY.match(str(hit.get("file", "")))
            place = self._copies.locate(name[1]) if name else None
            if name is None or place is None:
                continue  # the note is not the memory's any more
            path, source = place
            header = _HEADER.search(str(hit.get("snippet", "")))
            first, count = (int(header[1]), int(header[2])) if header else (int(hit.get("line", 1)), 1)
            if (lines := self._copies.read_lines(name[1], first, first + count - 1)) is None:
                outdated.add(path)
                continue
            while lines and not lines[-1].strip():
                lines.pop()
            while lines and not lines[0].strip():
                lines.pop(0)
                first += 1
            if lines:
                snippet = "\n".join(lines)[: self._config.search.snippet_chars]
                score = min(max(float(hit.get("score") or 0.0), 0.0), 1.0)
                results.append(SearchResult(path, first, first + len(lines) - 1, score, snippet, source))
        return results, sorted(outdated)


def _write_query(query: str, mode: str) -> str:
    """Write a query as QMD takes it: in one line, with quotes in pairs, and without its signs for vectors."""
    query = query[:_MOST_CHARS].replace("\0", " ")
    if mode != "search" or query.count('"') % 2:
        query = query.replace('"', " ")
    query = " ".join(query.split())
    return query if mode == "search" else _NEGATED.sub("", query)


def _list_filters(request: SearchRequest) -> list[str]:
    """List the filters of a request that QMD does not offer.

    QMD has phrases and a minus of its own, but the minus leaves out whole notes, and of a note with the phrase it shows
    other lines: those with most of the words as they are typed, quotation marks included.
    """
    fields = asdict(replace(request.filter, source=None)) | asdict(replace(request.options, explain=False))
    return [name for name, value in fields.items() if value]
