"""Forget: plan it from what is there now, do it in the files, and take it out of the bytes of the index."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path

from openclaw_memory.control.contents import contents, place_of, with_transcripts
from openclaw_memory.control.inspection import zone_of
from openclaw_memory.control.planning import Wanted, plain_words, plan
from openclaw_memory.conversation.snapshots import lock_snapshots
from openclaw_memory.errors import ConflictError, InvalidInputError, NotFoundError, OpenClawMemoryError, WriteError
from openclaw_memory.flush.state import FILE_NAME, read_states, remove_states
from openclaw_memory.indexing.service import IndexService
from openclaw_memory.security import signatures
from openclaw_memory.types import Skipped
from openclaw_memory.types.control import ForgetPlan, ForgetReceipt, Step
from openclaw_memory.types.files import Span, cited
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.atomic import lock_file
from openclaw_memory.workspace.days import get_local_now, parse_day
from openclaw_memory.workspace.encodings import is_utf16
from openclaw_memory.workspace.paths import (
    DOCUMENTS_FOLDER,
    RECORDS_FOLDER,
    TRANSCRIPTS,
    Place,
    is_of_the_agent,
    locate_transcripts,
)
from openclaw_memory.workspace.session_log import make_log_name
from openclaw_memory.workspace.tombstones import forget_lines, hash_head

_SHORT_HASH = 12  # digits name a plan, as they name the lines of an edit
WAIT_SECONDS = 10.0  # for a sync of another process, which ends soon or is reported


def wanted_of(
    workspace: Workspace,
    *,
    last_days: int | None = None,
    since: datetime.date | str | None = None,
    query: str | None = None,
    key: str | None = None,
    session: str | None = None,
    paths: Sequence[str] | None = None,
    now: datetime.date | str | None = None,
) -> Wanted:
    """Read the arguments of `Memory.control.forget`.

    Raises:
        InvalidInputError: An argument has a wrong type or value, or not one thing is named.
        PathNotAllowedError: One of `paths` is not that of a memory file.
    """
    given = {"last_days": last_days, "since": since, "query": query, "key": key, "session": session}
    asked = [name for name, value in given.items() if value is not None]
    if len(asked) > 1 or not (asked or paths):
        said = ", ".join(asked) or "nothing"
        raise InvalidInputError(
            f"{said} says what to forget: name one of {', '.join(given)}, or files and lines as paths"
        )
    for name, text in (("query", query), ("key", key), ("session", session)):
        if text is not None and (not isinstance(text, str) or not plain_words(text)):
            raise InvalidInputError(f"{name} is {text!r}, not a text of at least one character")
    timezone = workspace.journal.timezone
    first = parse_day(since, "since", timezone)
    if last_days is not None:
        if isinstance(last_days, bool) or not isinstance(last_days, int) or last_days < 1:
            raise InvalidInputError(f"last_days is {last_days!r}, not a whole number of days from 1, which is today")
        today = parse_day(now, "now", timezone) or get_local_now(timezone).date()
        first = today - datetime.timedelta(min(last_days, today.toordinal()) - 1)  # no day is before the year 1
    if isinstance(paths, str):
        raise InvalidInputError(f"paths is {paths!r}: give a list of paths and citations")
    named: dict[str, list[Span]] = {}
    every = with_transcripts(workspace)
    for one in paths or ():
        path, spans = (cited(one) if isinstance(one, str) else None) or (one, ())
        path = place_of(every, path).path
        before = named.setdefault(path, list(spans))
        named[path] = [*before, *spans] if before and spans else []
    transcript, ids = None, frozenset[str]()
    if session is not None:
        of_key = _sessions_of(workspace)
        ids = frozenset({session, of_key.get(session, session)})
        transcript = f"{TRANSCRIPTS}/{make_log_name(of_key.get(session, session))}"
    return Wanted(first, query, key, transcript, ids, named)


def forget(
    workspace: Workspace,
    service: IndexService,
    wanted: Wanted,
    *,
    dry_run: bool,
    seen: str | ForgetPlan | None,
) -> ForgetReceipt:
    """Plan, and unless `dry_run`, do it; see `Memory.control.forget`."""
    if isinstance(seen, ForgetPlan):
        return ForgetReceipt(seen) if dry_run else applied(workspace, service, seen)
    chosen = planned(workspace, wanted)
    if seen is not None and (not isinstance(seen, str) or len(seen) < _SHORT_HASH):
        raise InvalidInputError(f"expected must be a plan or at least {_SHORT_HASH} digits of its hash, not {seen!r}")
    if seen is not None and not chosen.hash.startswith(seen):
        raise ConflictError(
            "what would be forgotten is not what the plan said, and nothing was changed: look at the plan again, "
            f"whose hash is {chosen.hash[:_SHORT_HASH]} now",
            path="",
            start_line=0,
            current="",
            proposed="",
            hash=chosen.hash,
        )
    return ForgetReceipt(chosen) if dry_run else applied(workspace, service, chosen)


def planned(workspace: Workspace, wanted: Wanted) -> ForgetPlan:
    """Plan what is forgotten from what is there now.

    Args:
        workspace: The files.
        wanted: What is to be forgotten.

    Raises:
        InvalidInputError: Lines are named of a record, document or snapshot, which goes as a whole.
        NotFoundError: A file or line that was named is not there.
        WorkspaceError: The folder cannot be listed.
    """
    zone = zone_of(workspace)
    there, skipped = contents(workspace, zone)
    items = {content.item.path: content.item for content in there}
    for path, spans in wanted.named.items():
        if (item := items.get(path)) is None:
            raise NotFoundError(f"{path} does not exist or cannot be read: check its name")
        if spans and item.kind in {"record", "document", "snapshot"}:
            raise InvalidInputError(f"{path} is a {item.kind}, which goes as a whole: name the file without lines")
        if spans and (last := max(end for _, end in spans)) > item.lines:
            raise NotFoundError(f"{path} has {item.lines} lines, none numbered {last}: read it again")
    of_key = {key: f"{TRANSCRIPTS}/{make_log_name(session)}" for key, session in _sessions_of(workspace).items()}
    return plan(wanted, there, skipped, of_key, zone)


def applied(workspace: Workspace, service: IndexService, chosen: ForgetPlan) -> ForgetReceipt:
    """Do what a plan says, in the files and in the bytes of the index.

    Where a crash cuts it short, some files are done: plan again, and apply that.

    Args:
        workspace: The files.
        service: Their index.
        chosen: The plan.

    Raises:
        ConflictError: A file is not what the plan saw. Nothing was changed.
    """
    every = with_transcripts(workspace)
    remaining = list[Skipped]()
    folder = locate_transcripts(workspace.root, workspace.sessions)
    forgotten = _changed(every, chosen.steps, folder, remaining)
    _remove_empty_folders(workspace.root, [step.path for step in chosen.steps])
    if chosen.sessions:
        with _told(remaining, f"{TRANSCRIPTS}/{FILE_NAME}"):
            remove_states(folder, chosen.sessions)
    if chosen:
        service.record_write()
    indexed = [step.path for step in chosen.steps if step.kind != "snapshot"]
    if (why := service.forget(indexed, WAIT_SECONDS)) is not None:
        remaining.append(Skipped("index", why))
    if chosen and (repository := _repository(workspace.root)) is not None:
        remaining.append(Skipped(str(repository), "git may keep the versions it has seen: see `git filter-repo`"))
    return ForgetReceipt(chosen, False, tuple(sorted(forgotten)), tuple(remaining), why is None)


def _changed(workspace: Workspace, steps: Sequence[Step], folder: Place, remaining: list[Skipped]) -> list[str]:
    """Do the steps, once all of them were checked; return what is gone, and add to `remaining` what could not go."""
    forgotten = list[str]()
    notes = [step for step in steps if step.kind not in {"transcript", "snapshot"}]
    ends = [step for step in steps if step.kind == "snapshot"]
    talks = [step for step in steps if step.kind == "transcript"]
    with ExitStack() as held:
        for some, lock in (
            (notes, workspace.files.lock),
            (talks, partial(lock_file, Path(folder.base, *folder.parts, ".lock"))),
            (ends, partial(lock_snapshots, workspace.root)),
        ):
            is_held = not some
            with _told(remaining, *(step.citation for step in some)):
                if some:
                    held.enter_context(lock(some[0].path))
                    is_held = True
            if not is_held:
                some.clear()
        there = list[tuple[Step, os.stat_result]]()
        for step in (*notes, *talks, *ends):
            with _told(remaining, step.citation):
                try:
                    there.append((step, _checked(workspace, step)))
                except NotFoundError:  # it has gone: that is what was wanted
                    forgotten.append(step.citation)
        for step, seen in there:
            with _told(remaining, step.citation):
                _do(workspace, step, seen)
                forgotten.append(step.citation)
    return forgotten


@contextmanager
def _told(remaining: list[Skipped], *where: str) -> Iterator[None]:
    """Add what could not be done, and why, in place of raising it; a conflict is raised."""
    try:
        yield
    except ConflictError:
        raise
    except (OpenClawMemoryError, OSError) as error:
        why = str(error) if isinstance(error, OpenClawMemoryError) else f"the system refused it: {error}"
        remaining += [Skipped(one, why) for one in where]


def _checked(workspace: Workspace, step: Step) -> os.stat_result:
    """Check that a file is what was planned for, and return which one it is.

    Raises:
        ConflictError: It is not.
        OpenClawMemoryError: It cannot be read, or must not be changed.
    """
    place = place_of(workspace, step.path)
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
        if info.st_nlink > 1:
            raise WriteError(f"{step.path} has {info.st_nlink} hard links: what it says stays under the other names")
        if step.action == "lines" and is_utf16(data):
            raise WriteError(f"{step.path} is UTF-16: save it as UTF-8 first, or name the whole file")
    if not same:
        raise _conflict(step)
    return info


def _do(workspace: Workspace, step: Step, seen: os.stat_result) -> None:
    place = place_of(workspace, step.path)
    if step.action == "messages":
        if not forget_lines(workspace.files, place, _lines(step), step.size, step.hash):
            raise _conflict(step)
        return
    if step.action == "remove":
        workspace.files.remove(place, seen)
        if step.kind == "record":
            signatures.unlisted(workspace.root, step.path)
        return
    data, _ = workspace.files.read(place)
    gone = set(_lines(step))
    kept = [line for number, line in enumerate(data.split(b"\n"), 1) if number not in gone]
    workspace.files.replace(place, b"\n".join(kept), seen)


def _lines(step: Step) -> Iterator[int]:
    return chain.from_iterable(range(first, last + 1) for first, last in step.spans)


def _conflict(step: Step) -> ConflictError:
    line = step.spans[0][0] if step.spans else 1
    return ConflictError(
        f"{step.path} has changed since the plan was made, and was not touched: plan again, and look at it",
        path=step.path,
        start_line=line,
        current="",
        proposed="",
        hash="",
    )


def _remove_empty_folders(root: Path, paths: Sequence[str]) -> None:
    """Remove folders of documents and records that are empty now: their names may say whose they were."""
    tops = (DOCUMENTS_FOLDER, RECORDS_FOLDER)
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder.startswith(tuple(f"{top}/" for top in tops)):
            with suppress(OSError):  # it is not empty
                os.rmdir(root / folder)
            folder = folder.rpartition("/")[0]


def _sessions_of(workspace: Workspace) -> dict[str, str]:
    """Return the session of each key of `sessions.json`; of none where that cannot be read."""
    with suppress(OpenClawMemoryError):
        states = read_states(locate_transcripts(workspace.root, workspace.sessions))
        return {key: state.session_id or key for key, state in states.items() if key}
    return {}


def _repository(root: Path) -> Path | None:
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
