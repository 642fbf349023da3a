"""Has one engine answer in place of another while that one fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from openclaw_memory import _forks
from openclaw_memory.backends.protocol import Backend
from openclaw_memory.errors import (
    BackendError,
    ConfigError,
    InvalidInputError,
    NotFoundError,
    NotOfferedError,
    StoreError,
    WorkspaceError,
)
from openclaw_memory.indexing.background import Background
from openclaw_memory.types import Excerpt, Progress, SyncReport

if TYPE_CHECKING:
    from openclaw_memory.search import SearchResults
    from openclaw_memory.types import SearchRequest, Status

_log = logging.getLogger(__name__)

# An engine that fails is tried again after the first, then after twice as long each time, up to the second: seconds.
PROBE_SECONDS = (5.0, 300.0)
# What is wrong with a call, or with the notes, is so with every engine.
_OF_THE_CALLER = (InvalidInputError, ConfigError, WorkspaceError, NotFoundError)

T = TypeVar("T")


class FallbackBackend:
    """Asks the primary engine, and the secondary one while that fails. Safe to use from several threads.

    What the primary one does not offer, and what it finds nothing for, the secondary one answers too. `reason` of the
    results and `fallback` of the status say why. While the primary one fails no search waits for it: it is tried in the
    background, by a deep status, and answers again once that has no problems.
    """

    def __init__(
        self,
        primary: Backend,
        secondary: Backend,
        *,
        name: str = "qmd",
        probe_seconds: tuple[float, float] = PROBE_SECONDS,
    ) -> None:
        """Put both together; each is closed with this one.

        Args:
            primary: The engine that is wanted.
            secondary: The one in its place.
            name: What the primary one is called in reasons and in the status.
            probe_seconds: How long after a failure the primary one is tried again, and how long at most.
        """
        self.primary, self.secondary, self._name = primary, secondary, name
        self._first, self._longest = probe_seconds
        self._lock = _forks.lock()
        self._reason: str | None = None
        self._delay = self._first
        self._is_closed = False
        self._probing = Background(self._probe)

    def search(self, request: SearchRequest) -> SearchResults:
        """See `Memory.search`; `reason` says why the secondary engine has answered, where it has.

        Raises:
            BackendError: Both engines failed; the message has both reasons.
        """

        def ask(engine: Backend) -> SearchResults:
            return engine.search(request)

        found, why = self._first_of(ask)
        if why is None and found is not None:
            if found.results or not request.query.strip():
                return found
            why = f"{self._name} found nothing" + (f" ({found.reason})" if found.reason else "")
            try:
                other = ask(self.secondary)
            except _OF_THE_CALLER:
                raise
            except Exception as error:  # noqa: BLE001 - the answer of the primary one stands
                _log.warning("the engine in place of %s failed too: %s", self._name, error)
                return found
            if not other.results:
                return found
            found = other
        elif found is None:
            found = self._instead(ask, str(why))
        return replace(found, reason="; ".join(filter(None, [f"another engine answered: {why}", found.reason])))

    def get(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """See `Memory.get`."""

        def ask(engine: Backend) -> Excerpt:
            return engine.get(path, start=start, lines=lines)

        found, why = self._first_of(ask)
        return self._instead(ask, str(why)) if found is None else found

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        wait: float | None = None,
    ) -> SyncReport:
        """Bring the index of the secondary engine up to date, then that of the primary one unless it fails.

        The report is that of the secondary engine; what goes wrong with the primary one is in the status.
        """
        self._check_open()
        report = self.secondary.sync(force=force, progress=progress, wait=wait)
        if self._reason is None:
            self._sync_primary(force=force)
        return report

    def renew(self) -> None:
        """Have the primary engine delete what it keeps, and build it again: text was forgotten that it may hold."""
        self._sync_primary(force=True)

    def status(self, *, deep: bool = False) -> Status:
        """Return the status of the secondary engine, with that of the primary one in `backend` and `custom`.

        While the secondary one answers, `backend` is its own, and `fallback` has the name of the primary one and why.
        """
        state = self.secondary.status(deep=deep)
        reason = self._reason
        if reason is None:
            try:
                primary = self.primary.status(deep=deep)
            except _OF_THE_CALLER:
                raise
            except Exception as error:  # noqa: BLE001 - told as the reason
                self._failed(error)
                reason = str(error)
            else:
                notices = (*state.notices, *(one for one in primary.notices if one not in state.notices))
                problems = (*state.problems, *primary.problems)
                engine = {**state.engine, **primary.engine}
                return replace(
                    state, backend=self._name, custom=primary.custom, notices=notices, problems=problems, engine=engine
                )
        words = f"another engine answers, since {self._name} failed: {reason}"
        fallback = {"from": self._name, "reason": reason}
        return replace(state, fallback=fallback, notices=(*state.notices, words))

    def close(self) -> None:
        """Close both engines. Calling it twice is allowed."""
        self._is_closed = True
        try:
            self.primary.close()
        finally:
            self.secondary.close()
            self._probing.stop()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("the memory is closed: open it again")

    def _first_of(self, ask: Callable[[Backend], T]) -> tuple[T | None, str | None]:
        """Return the answer of the primary engine; None, and why, where it gives none."""
        self._check_open()
        if (reason := self._reason) is not None:
            self._probing.request(self._delay)  # it is under way already, but for a child that was forked
            return None, f"{self._name} failed: {reason}"
        try:
            return ask(self.primary), None
        except NotOfferedError as error:
            return None, str(error)
        except _OF_THE_CALLER:
            raise
        except Exception as error:  # noqa: BLE001 - an engine may raise anything
            self._check_open()
            self._failed(error)
            return None, f"{self._name} failed: {error}"

    def _instead(self, ask: Callable[[Backend], T], why: str) -> T:
        try:
            return ask(self.secondary)
        except _OF_THE_CALLER:
            raise
        except Exception as error:
            raise BackendError(f"{why}; and the engine in its place failed too: {error}") from error

    def _sync_primary(self, *, force: bool) -> None:
        try:
            self.primary.sync(force=force)
        except _OF_THE_CALLER:
            raise
        except Exception as error:  # noqa: BLE001 - told by the status and the next results
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        with self._lock:
            if self._reason is not None or self._is_closed:
                return
            self._reason, self._delay = str(error) or type(error).__name__, self._first
        _log.warning("another engine answers, since %s failed: %s", self._name, error)
        self._probing.request(self._first)

    def _probe(self) -> None:
        """Try the primary engine, and return to it where it is well."""
        if self._reason is None or self._is_closed:
            return
        try:
            problems = self.primary.status(deep=True).problems
        except Exception as error:  # noqa: BLE001 - the reason why it does not answer yet
            problems = (str(error) or type(error).__name__,)
        with self._lock:
            self._reason = problems[0] if problems else None
            self._delay = min(self._delay * 2, self._longest) if problems else self._first
        if problems and not self._is_closed:
            self._probing.request(self._delay)
        else:
            _log.info("%s answers again", self._name)
