"""Forget for good: plan, change the files, and erase the bytes of the index."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from openclaw_memory.control.contents import locate_any, lock_any, read_contents, with_transcripts
from openclaw_memory.control.planning import ForgetRequest, expand_spans, fold_words, plan_forgetting
from openclaw_memory.errors import ConflictError, InvalidInputError, NotFoundError, OpenClawMemoryError, WriteError
from openclaw_memory.flush.state import FILE_NAME, read_states, remove_states
from openclaw_memory.indexing.service import IndexService
from openclaw_memory.search.request import check_count
from openclaw_memory.types.files import Skipped, Span, parse_citation
from openclaw_memory.types.results import ForgetPlan, ForgetReceipt, Step
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.encodings import CANVAS, UTF8, find_encoding
from openclaw_memory.workspace.paths import (
    DOCUMENTS_FOLDER,
    RECORDS_FOLDER,
    TRANSCRIPTS,
    is_of_the_agent,
    locate_transcripts,
)
from openclaw_memory.workspace.session_log import make_log_name
from openclaw_memory.workspace.time_zone import to_day
from openclaw_memory.workspace.tombstones import forget_lines, hash_head

_SHORT_HASH = 12  # digits name a plan, as they name the lines of an edit
WAIT_SECONDS = 10.0  # for a sync of another process, which ends soon or is reported


def read_request(
    workspace: Workspace, criteria: Mapping[str, Any], paths: Sequence[str] | None, now: datetime.date | str | None
) -> ForgetRequest:
    """Read the arguments of `Memory.control.forget`.

    Args:
        workspace: The files.
        criteria: Its arguments `last_days`, `since`, `query`, `key` and `session`.
        paths: Its argument of that name.
        now: Its argument of that name.

    Raises:
        InvalidInputError: An argument has a wrong type or value, or not one thing is named.
        PathNotAllowedError: One of `paths` is not that of a memory file.
    """
    names = [name for name, value in criteria.items() if value is not None]
    if len(names) > 1 or not (names or paths):
        message = ", ".join(names) or "nothing"
        raise InvalidInputError(
            f"{message} says what to forget: name one of {', '.join(criteria)}, or files and lines as paths"
        )
    last_days, since, query, key, session = criteria.values()
    for name, text in (("query", query), ("key", key), ("session", session)):
        if text is not None and (not isinstance(text, str) or not fold_words(text)):
            raise InvalidInputError(f"{name} is {text!r}, not a text of at least one character")
    timezone = workspace.sessions.timezone
    first = to_day(since, "since", timezone)
    if last_days is not None:
        check_count("last_days", last_days)
        today = to_day(now, "now", timezone) or workspace.get_time().date()
        first = today - datetime.timedelta(min(last_days, today.toordinal()) - 1)  # no day is before the year 1
    if isinstance(paths, str):
        raise InvalidInputError(f"paths is {paths!r}: give a list of paths and citations")
    spans_by_path: dict[str, list[Span]] = {}
    every = with_transcripts(workspace)
    for entry in paths or ():
        path, spans = (parse_citation(entry) if isinstance(entry, str) else None) or (entry, ())
        path = locate_any(every, path).path
        before = spans_by_path.setdefault(path, list(spans))
        spans_by_path[path] = [*before, *spans] if before and spans else []
    transcript, ids = None, frozenset[str]()
    if session is not None:
        session_id = _map_sessions(workspace).get(session) or session
        ids = frozenset({session, session_id})
        transcript = f"{TRANSCRIPTS}/{make_log_name(session_id)}"
    return ForgetRequest(first, query, key, transcript, ids, spans_by_path)


def check_expected(plan: ForgetPlan, expected: str | None) -> None:
    """Check that a plan has the hash that a person has seen.

    Args:
        plan: The plan.
        expected: The hash, or its first digits; not compared if None.

    Raises:
        InvalidInputError: The hash is too short.
        ConflictError: It is that of another plan.
    """
    if expected is not None and (not isinstance(expected, str) or len(expected) < _SHORT_HASH):
        raise InvalidInputError(
            f"expected must be a plan or at least {_SHORT_HASH} digits of its hash, not {expected!r}"
        )
    if expected is not None and not plan.hash.startswith(expected):
        raise ConflictError(
            "what would be forgotten is not what the plan said, and nothing was changed: look at the plan again, "
            f"whose hash is {plan.hash[:_SHORT_HASH]} now",
            path="",
            hash=plan.hash,
        )


def make_plan(workspace: Workspace, request: ForgetRequest) -> ForgetPlan:
    """Plan a forgetting from the files as they are now.

    Raises:
        InvalidInputError: Lines are named of a record, document or snapshot, which goes as a whole.
        NotFoundError: A file or line that was named is not there.
        WorkspaceError: The folder cannot be listed.
    """
    contents, skipped = read_contents(workspace, request.may_concern)
    items = {content.item.path: content.item for content in contents}
    for path, spans in request.paths.items():
        if (item := items.get(path)) is None:
            raise NotFoundError(f"{path} does not exist or cannot be read: check its name")
        if spans and item.kind in {"record", "document", "snapshot"}:
            raise InvalidInputError(f"{path} is a {item.kind}, which goes as a whole: name the file without lines")
        if spans and (last := max(end for _, end in spans)) > item.lines:
            raise NotFoundError(f"{path} has {item.lines} lines, none numbered {last}: read it again")
    of_key = {key: f"{TRANSCRIPTS}/{make_log_name(session)}" for key, session in _map_sessions(workspace).items()}
    return plan_forgetting(request, contents, skipped, of_key, workspace.zone)


def apply_plan(workspace: Workspace, service: IndexService, plan: ForgetPlan) -> ForgetReceipt:
    """Apply a plan to the files and to the bytes of the index.

    Where a crash cuts it short, some files are done: plan again, and apply that.

    Raises:
        ConflictError: A file has changed since the plan. Nothing was changed.
    """
    every = with_transcripts(workspace)
    remaining = list[Skipped]()
    folder = locate_transcripts(workspace.root, workspace.sessions)
    forgotten = _apply_files(every, plan.steps, remaining)
    _remove_empty_folders(workspace.root, [step.path for step in plan.steps])
    if plan.sessions:
        with _collect_errors(remaining, f"{TRANSCRIPTS}/{FILE_NAME}"):
            remove_states(folder, plan.sessions)
    if plan:
        service.record_write()
    indexed = [step.path for step in plan.steps if step.kind != "snapshot"]
    if (why := service.forget(indexed, WAIT_SECONDS)) is not None:
        remaining.append(Skipped("index", why))
    repositories = [folder for folder in (workspace.root, *workspace.root.parents) if (folder / ".git").exists()]
    if plan and repositories:
        remaining.append(Skipped(str(repositories[0]), "git may keep the versions it has seen: see `git filter-repo`"))
    return ForgetReceipt(plan, False, tuple(sorted(forgotten)), tuple(remaining), why is None)


def _apply_files(workspace: Workspace, steps: Sequence[Step], remaining: list[Skipped]) -> list[str]:
    """Apply steps, once all were checked; return the places that are gone, and add the others to `remaining`."""
    forgotten, there = list[str](), list[tuple[Step, os.stat_result]]()

    with ExitStack() as locks:
        for _, group in groupby(sorted(steps, key=_rank_lock), _rank_lock):
            some = list(group)
            with _collect_errors(remaining, *(step.citation for step in some)):
                locks.enter_context(lock_any(workspace, locate_any(workspace, some[0].path)))
                for step in some:
                    with _collect_errors(remaining, step.citation):
                        try:
                            there.append((step, _check_step(workspace, step)))
                        except NotFoundError:  # it has gone: that is what was wanted
                            forgotten.append(step.citation)
        for step, info in there:
            with _collect_errors(remaining, step.citation):
                _apply_step(workspace, step, info)
                forgotten.append(step.citation)
    return forgotten


def _rank_lock(step: Step) -> int:
    """Return the place of a step's lock in the order of locks."""
    return {"transcript": 1, "snapshot": 2}.get(step.kind, 0)


@contextmanager
def _collect_errors(remaining: list[Skipped], *where: str) -> Iterator[None]:
    """Collect errors in place of raising them; a conflict is raised."""
    try:
        yield
    except ConflictError:
        raise
    except (OpenClawMemoryError, OSError) as error:
        why = str(error) if isinstance(error, OpenClawMemoryError) else f"the system refused it: {error}"
        remaining += [Skipped(entry, why) for entry in where]


def _check_step(workspace: Workspace, step: Step) -> os.stat_result:
    """Check that a file is the planned one, and return its stamp.

    Raises:
        ConflictError: It is not.
        OpenClawMemoryError: It cannot be read, or must not be changed.
    """
    place = locate_any(workspace, step.path)
    if step.kind == "transcript":
        with workspace.files.open(place) as (file, info):
            same = hash_head(file, step.size) == step.hash
            same = same and (step.action == "messages" or file.seek(0, os.SEEK_END) == step.size)
    else:
        data, info = workspace.files.read(place)
        same = sha256(data).hexdigest() == step.hash
        if place.base != str(workspace.root):
            raise WriteError(f"{step.path} lies outside of the workspace, where files are only read: change it there")
        if is_of_the_agent(workspace.root, step.path):
            raise WriteError(f"{step.path} is the agent's own, and is only read: change it in an editor")
        if step.action == "lines" and step.path.endswith(CANVAS):
            raise WriteError(f"{step.path} is a canvas, whose lines are only read: name the whole file")
        if step.action == "lines" and (encoding := find_encoding(data)) != UTF8:
            raise WriteError(f"{step.path} is {encoding}: save it as UTF-8 first, or name the whole file")
    if not same:
        raise _make_conflict(step)
    return info


def _apply_step(workspace: Workspace, step: Step, info: os.stat_result) -> None:
    place = locate_any(workspace, step.path)
    if step.action == "messages":
        if not forget_lines(workspace.files, place, expand_spans(step.spans), step.size, step.hash):
            raise _make_conflict(step)
        return
    if step.action == "remove":
        workspace.files.remove(place, info)
        return
    data, _ = workspace.files.read(place)
    forgotten = set(expand_spans(step.spans))
    remainder = [line for number, line in enumerate(data.split(b"\n"), 1) if number not in forgotten]
    workspace.files.replace(place, b"\n".join(remainder), info)


def _make_conflict(step: Step) -> ConflictError:
    message = f"{step.path} has changed since the plan was made, and was not touched: plan again, and look at it"
    return ConflictError(message, path=step.path, start_line=step.spans[0][0] if step.spans else 1)


def _remove_empty_folders(root: Path, paths: Sequence[str]) -> None:
    """Remove folders of documents and records that are empty now: their names may be private."""
    tops = (DOCUMENTS_FOLDER, RECORDS_FOLDER)
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder.startswith(tuple(f"{top}/" for top in tops)):
            with suppress(OSError):  # it is not empty
                os.rmdir(root / folder)
            folder = folder.rpartition("/")[0]


def _map_sessions(workspace: Workspace) -> dict[str, str]:
    """Return the session of each key of `sessions.json`; of none where that cannot be read."""
    with suppress(OpenClawMemoryError):
        states = read_states(locate_transcripts(workspace.root, workspace.sessions))
        return {key: state.session_id or key for key, state in states.items() if key}
    return {}
