"""Convert the snapshots that earlier plugins left in `.memory/snapshots/` to those of this library."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory.conversation import own_words, prepare_snapshot, text_of, write_snapshot
from openclaw_memory.errors import InvalidInputError, OpenClawMemoryError, PolicyError
from openclaw_memory.types import Snapshot
from openclaw_memory.workspace import SafeFolder, decode
from openclaw_memory_migrate.plan import IN_A_FOLDER
from openclaw_memory_migrate.types import LeftOut, MigratedFile, OldSnapshot

if TYPE_CHECKING:
    from openclaw_memory import Memory, Workspace

SNAPSHOTS = ".memory/snapshots"
FOLDER = tuple(SNAPSHOTS.split("/"))
_OWN_NAME = re.compile(r"\d{8}T\d{6}Z-.+\.json(?:\.age)?")
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
    is_named = bool(_OLD_NAME.fullmatch(file.name) or _OWN_NAME.fullmatch(file.name))
    return is_named and not _is_own(file, root)


def _is_own(file: Path, root: Path) -> bool:
    return bool(_OWN_NAME.fullmatch(file.name)) and file.parent.resolve() == (root / SNAPSHOTS).resolve()


def old_snapshots(memory: Memory, files: Sequence[Path]) -> tuple[list[OldSnapshot], list[LeftOut]]:
    """Return what old snapshots become, and what is left out of them; nothing is written.

    Secrets in them are masked, and long messages cut, as `Memory.sessions.snapshot` does.

    Args:
        memory: The memory that they go to.
        files: The old files.
    """
    if not files:
        return [], []
    there = {(one.session_id, one.timestamp): one for one in memory.sessions.snapshots()}
    taken, snapshots, left_out = set[str](), list[OldSnapshot](), list[LeftOut]()
    for file in files:
        try:
            made = _convert(memory.workspace, file, left_out, taken)
        except OpenClawMemoryError as error:
            reason = f"a rule says never to store it: {error.rule!r}" if isinstance(error, PolicyError) else str(error)
            left_out.append(LeftOut(file.name, reason))
            continue
        before = there.get((made.session_id, made.timestamp))
        if before is None:
            taken.add(made.path)
            there[made.session_id, made.timestamp] = made
        elif before.to_dict() != made.to_dict():
            left_out.append(
                LeftOut(
                    file.name,
                    f"{before.path} is of the same session and time, says something else, and was left as it is",
                )
            )
            continue
        snapshots.append(OldSnapshot(file.name, before or made, before is not None))
    return snapshots, left_out


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
            write_snapshot(workspace, one.snapshot)
        except OpenClawMemoryError as error:
            left_out.append(LeftOut(one.name, str(error)))
            refused += 1
    return [MigratedFile(SNAPSHOTS, len(missing) - refused, len(wanted) - len(missing))]


def _convert(workspace: Workspace, file: Path, left_out: list[LeftOut], taken: set[str]) -> Snapshot:
    """Return the snapshot that an old file becomes.

    Raises:
        OpenClawMemoryError: It cannot be read, holds no snapshot, or may not be stored.
    """
    # What is chosen is the project or the folder: in a project, `.memory` itself may be no symlink either.
    below = (*FOLDER, file.name) if file.parts[-3:-1] == FOLDER else (file.name,)
    content = _read(decode(SafeFolder(file.parents[len(below) - 1]).read("/".join(below)), file.name))
    if not isinstance(content, Mapping):
        raise InvalidInputError("it is no object of JSON with `id`, `timestamp` and `messages`: mend it")
    session_id, messages, summary = (content.get(name) for name in ("id", "messages", "summary"))
    if not isinstance(session_id, str) or not session_id.strip():
        raise InvalidInputError(f"its session has no id: `id` is {session_id!r:.80}")
    if not isinstance(messages, list):
        raise InvalidInputError(f"its `messages` are no list: {messages!r:.80}")
    if summary is not None and not isinstance(summary, str):
        raise InvalidInputError(f"its `summary` is no text: {summary!r:.80}")
    storable = [one for number, one in enumerate(messages, 1) if _is_storable(workspace, file, number, one, left_out)]
    moment = _moment(content.get("timestamp"))
    return prepare_snapshot(workspace, session_id, storable, summary, moment, taken)


def _is_storable(workspace: Workspace, file: Path, number: int, message: object, left_out: list[LeftOut]) -> bool:
    if not isinstance(message, Mapping):
        return True  # it is refused by name
    try:
        workspace.policies.check(None, str(message.get("role")), own_words(text_of(message)))
    except PolicyError:
        left_out.append(LeftOut(f"{file.name}, message {number}", "a rule says never to store it"))
        return False
    return True


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
