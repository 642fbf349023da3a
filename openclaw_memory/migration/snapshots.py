"""Convert the snapshots that earlier plugins left in `.memory/snapshots/` to those of this library."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory.conversation.messages import own_words, text_of
from openclaw_memory.conversation.snapshots import (
    FOLDER,
    free_path,
    is_hidden,
    is_snapshot,
    kept_of,
    saved,
    saving,
    summary_of,
    write,
)
from openclaw_memory.errors import InvalidInputError, OpenClawMemoryError, PolicyError
from openclaw_memory.migration.planning import IN_A_FOLDER
from openclaw_memory.types.migration import LeftOut, MigratedFile, OldSnapshot
from openclaw_memory.types.snapshots import Snapshot, SnapshotMessage
from openclaw_memory.workspace.paths import Place
from openclaw_memory.workspace.safe_read import decode, read_place

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace

SNAPSHOTS = "/".join(FOLDER)
# 2026-02-18T12:00:00.000Z-ses_1.json; on Windows, where names have no colons, with another sign for them.
_OLD_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d\D\d\d\D\d\d.*\.json")


def files_of(source: Path, root: Path) -> tuple[list[Path], bool]:
    """Return the files of old snapshots that belong to what is migrated, and whether it holds nothing else.

    Args:
        source: `.memory.md`, the folder that it is in, the folder of the snapshots, or one of them.
        root: The workspace; the snapshots in it that are this library's are not old.
    """
    if _is_old(source, root) and source.is_file():
        return [source], True
    if source.is_dir():
        folder = source / SNAPSHOTS if (source / SNAPSHOTS).is_dir() else source
    elif source.name.startswith(".memory"):
        folder = source.with_name(FOLDER[0]) / FOLDER[1]
    else:
        return [], False
    try:
        found = sorted(one for one in folder.iterdir() if one.suffix == ".json")
    except OSError:
        found = []
    if folder == source and not any(_is_old(one, root) for one in found):
        return [], False  # the folder of an export
    # What is damaged may have any name, and is to be listed.
    found = [one for one in found if not _is_own(one, root)]
    more = [source / name for name in IN_A_FOLDER] if source.is_dir() else [source]
    return found, bool(found) and not any(one.exists() for one in more)


def _is_old(file: Path, root: Path) -> bool:
    is_named = _OLD_NAME.fullmatch(file.name) or is_snapshot(f"{SNAPSHOTS}/{file.name}")
    return bool(is_named) and not _is_own(file, root)


def _is_own(file: Path, root: Path) -> bool:
    return is_snapshot(f"{SNAPSHOTS}/{file.name}") and file.parent.resolve() == (root / SNAPSHOTS).resolve()


def old_snapshots(workspace: Workspace, files: Sequence[Path]) -> tuple[list[OldSnapshot], list[LeftOut]]:
    """Return what old snapshots become, and what is left out of them; nothing is written.

    Secrets in them are masked, and long messages cut, as `Memory.snapshot` does.

    Args:
        workspace: The files that they go to.
        files: The old files.
    """
    if not files:
        return [], []
    there = {(one.session_id, one.timestamp): one for one in saved(workspace)}
    taken, found, left_out = set[str](), list[OldSnapshot](), list[LeftOut]()
    for file in files:
        try:
            made = _converted(workspace, file, left_out)
        except OpenClawMemoryError as error:
            reason = f"a rule says never to store it: {error.rule!r}" if isinstance(error, PolicyError) else str(error)
            left_out.append(LeftOut(file.name, reason))
            continue
        before = there.get((made.session_id, made.timestamp))
        if before is None:
            path = free_path(workspace, made, taken)
            made = Snapshot(made.session_id, made.timestamp, made.messages, made.summary, path)
            taken.add(path)
            there[made.session_id, made.timestamp] = made
        elif before.to_dict() != made.to_dict():
            left_out.append(
                LeftOut(
                    file.name,
                    f"{before.path} is of the same session and time, says something else, and was left as it is",
                )
            )
            continue
        found.append(OldSnapshot(file.name, before or made, before is not None))
    return found, left_out


def write_snapshots(
    workspace: Workspace, wanted: Sequence[OldSnapshot], left_out: list[LeftOut], *, dry_run: bool
) -> list[MigratedFile]:
    """Write the snapshots that are not there, and return what their folder got.

    Args:
        workspace: The files.
        wanted: The snapshots.
        left_out: Those that cannot be written are added to it.
        dry_run: Whether to write nothing.
    """
    if not wanted:
        return []
    missing = [one for one in wanted if not one.is_there]
    refused = 0
    for one in () if dry_run else missing:
        try:
            with saving(workspace.root, one.snapshot.path):
                write(workspace, one.snapshot)
        except OpenClawMemoryError as error:
            left_out.append(LeftOut(one.name, str(error)))
            refused += 1
    return [MigratedFile(SNAPSHOTS, len(missing) - refused, len(wanted) - len(missing))]


def _converted(workspace: Workspace, file: Path, left_out: list[LeftOut]) -> Snapshot:
    """Return what an old file becomes, without a path.

    Raises:
        OpenClawMemoryError: It cannot be read, holds no snapshot, or may not be stored.
    """
    rules = workspace.rules
    # What is chosen is the project or the folder: in a project, `.memory` itself may be no symlink either.
    below = (*FOLDER, file.name) if file.parts[-3:-1] == FOLDER else (file.name,)
    data, _ = read_place(Place(file.name, str(file.parents[len(below) - 1]), below), rules)
    said = _read(decode(data, file.name))
    if not isinstance(said, Mapping):
        raise InvalidInputError("it is no object of JSON with `id`, `timestamp` and `messages`: mend it")
    session_id, messages = said.get("id"), said.get("messages")
    if not isinstance(session_id, str) or not session_id.strip():
        raise InvalidInputError(f"its session has no id: `id` is {session_id!r:.80}")
    if not isinstance(messages, list):
        raise InvalidInputError(f"its `messages` are no list: {messages!r:.80}")
    summary = said.get("summary")
    if summary is not None and not isinstance(summary, str):
        raise InvalidInputError(f"its `summary` is no text: {summary!r:.80}")
    kept = list[SnapshotMessage]()
    for number, message in enumerate(messages, 1):
        one = kept_of(rules, [message], ())
        if not one and own_words(text_of(message)).strip():
            left_out.append(LeftOut(f"{file.name}, message {number}", "a rule says never to store it"))
        kept += one
    if not kept:
        raise InvalidInputError("it has no message with words that may be stored")
    made = Snapshot(session_id, _moment(said.get("timestamp")), tuple(kept), summary_of(rules, summary), "")
    if is_hidden(rules, made):
        raise InvalidInputError("a rule says never to store what has the name of its session")
    return made


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"it is damaged at line {error.lineno}, column {error.colno} ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"it cannot be read as JSON ({error})") from error


def _moment(given: object) -> datetime.datetime:
    """Return a time as a snapshot has it: in milliseconds, as JavaScript writes it.

    Raises:
        InvalidInputError: It is not a time.
    """
    try:
        at = datetime.datetime.fromisoformat(given) if isinstance(given, str) else None
        if at is not None:
            at = (at if at.tzinfo else at.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)
            return at.replace(microsecond=at.microsecond // 1000 * 1000)
    except (ValueError, OverflowError):
        pass
    raise InvalidInputError(f"its `timestamp` is no time: {given!r:.80}")
