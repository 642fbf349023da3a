"""Convert the snapshots that earlier plugins left in `.memory/snapshots/` to those of this library."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from openclaw_memory.conversation import get_text, prepare_snapshot, strip_recalled, write_snapshot
from openclaw_memory.errors import InvalidInputError, OpenClawMemoryError, PolicyError
from openclaw_memory.types import Snapshot
from openclaw_memory.workspace import SafeFolder, decode
from openclaw_memory_migrate.plan import IN_A_FOLDER
from openclaw_memory_migrate.types import LeftOut, MigratedFile, OldSnapshot

if TYPE_CHECKING:
    from openclaw_memory import Memory
    from openclaw_memory.workspace import Workspace

SNAPSHOTS = ".memory/snapshots"
FOLDER = tuple(SNAPSHOTS.split("/"))
_OWN_NAME = re.compile(r"\d{8}T\d{6}Z-.+\.json(?:\.age)?")
# 2026-02-18T12:00:00.000Z-ses_1.json; on Windows, where names have no colons, with another sign for them.
_OLD_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d\D\d\d\D\d\d.*\.json")


def list_snapshot_files(source: Path, root: Path) -> tuple[list[Path], bool]:
    """Return the files of old snapshots, and True if the source has nothing else to migrate.

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
        old_files = sorted(file for file in folder.iterdir() if file.suffix == ".json")
    except OSError:
        old_files = []
    if folder == source and not any(_is_old(file, root) for file in old_files):
        return [], False  # the folder of an export
    # What is damaged may have any name, and is to be listed.
    old_files = [file for file in old_files if not _is_own(file, root)]
    more = [source / name for name in IN_A_FOLDER] if source.is_dir() else [source]
    return old_files, bool(old_files) and not any(file.exists() for file in more)


def _is_old(file: Path, root: Path) -> bool:
    is_named = bool(_OLD_NAME.fullmatch(file.name) or _OWN_NAME.fullmatch(file.name))
    return is_named and not _is_own(file, root)


def _is_own(file: Path, root: Path) -> bool:
    return bool(_OWN_NAME.fullmatch(file.name)) and file.parent.resolve() == (root / SNAPSHOTS).resolve()


def convert_snapshots(memory: Memory, files: Sequence[Path]) -> tuple[list[OldSnapshot], list[LeftOut]]:
    """Convert old snapshots; return them, and the ones left out. Nothing is written.

    Secrets in them are masked, and long messages cut, as `Memory.sessions.snapshot` does.
    """
    if not files:
        return [], []
    existing = {(snapshot.session_id, snapshot.timestamp): snapshot for snapshot in memory.sessions.snapshots()}
    taken, snapshots, left_out = set[str](), list[OldSnapshot](), list[LeftOut]()
    for file in files:
        try:
            converted = _convert(memory.workspace, file, left_out, taken)
        except OpenClawMemoryError as error:
            reason = f"a rule says never to store it: {error.rule!r}" if isinstance(error, PolicyError) else str(error)
            left_out.append(LeftOut(file.name, reason))
            continue
        before = existing.get((converted.session_id, converted.timestamp))
        if before is None:
            taken.add(converted.path)
            existing[converted.session_id, converted.timestamp] = converted
        elif before.to_dict() != converted.to_dict():
            left_out.append(
                LeftOut(
                    file.name,
                    f"{before.path} is of the same session and time, says something else, and was left as it is",
                )
            )
            continue
        snapshots.append(OldSnapshot(file.name, before or converted, before is not None))
    return snapshots, left_out


def write_snapshots(
    workspace: Workspace, snapshots: Sequence[OldSnapshot], left_out: list[LeftOut], *, dry_run: bool
) -> list[MigratedFile]:
    """Write the missing snapshots, and return the counts of their folder.

    Args:
        workspace: The files.
        snapshots: The snapshots.
        left_out: Those that cannot be written are added to it.
        dry_run: Whether to write nothing.
    """
    if not snapshots:
        return []
    missing = [snapshot for snapshot in snapshots if not snapshot.is_there]
    refused = 0
    for snapshot in () if dry_run else missing:
        try:
            write_snapshot(workspace, snapshot.snapshot)
        except OpenClawMemoryError as error:
            left_out.append(LeftOut(snapshot.name, str(error)))
            refused += 1
    return [MigratedFile(SNAPSHOTS, len(missing) - refused, len(snapshots) - len(missing))]


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
    numbered = enumerate(messages, 1)
    storable = [item for number, item in numbered if _is_storable(workspace, file, number, item, left_out)]
    moment = _parse_moment(content.get("timestamp"))
    return prepare_snapshot(workspace, session_id, storable, summary, moment, taken)


def _is_storable(workspace: Workspace, file: Path, number: int, message: object, left_out: list[LeftOut]) -> bool:
    if not isinstance(message, Mapping):
        return True  # it is refused by name
    try:
        workspace.policies.check(None, str(message.get("role")), strip_recalled(get_text(message)))
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


def _parse_moment(value: object) -> datetime.datetime:
    """Return a time as a snapshot has it: in milliseconds, as JavaScript writes it.

    Raises:
        InvalidInputError: It is not a time.
    """
    try:
        at = datetime.datetime.fromisoformat(value) if isinstance(value, str) else None
        if at is not None:
            at = (at if at.tzinfo else at.replace(tzinfo=datetime.UTC)).astimezone(datetime.UTC)
            return at.replace(microsecond=at.microsecond // 1000 * 1000)
    except (ValueError, OverflowError):
        pass
    raise InvalidInputError(f"its `timestamp` is no time: {value!r:.80}")
