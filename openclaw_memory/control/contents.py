"""Read everything in a memory: each file with its kind, its bytes or its lines."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs

from openclaw_memory.conversation import snapshots
from openclaw_memory.errors import NotFoundError, OpenClawMemoryError, PathNotAllowedError
from openclaw_memory.text.days import get_note_day, get_path_day, list_line_days
from openclaw_memory.text.front_matter import parse, parse_own_fields
from openclaw_memory.text.quotation import EXTERNAL, is_external
from openclaw_memory.types import MemoryFile
from openclaw_memory.types.codec import SUFFIX
from openclaw_memory.types.files import Skipped
from openclaw_memory.types.results import Item, Kind
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.atomic import lock_file
from openclaw_memory.workspace.encodings import UTF8, decode, find_encoding
from openclaw_memory.workspace.excerpts import split_lines
from openclaw_memory.workspace.paths import RECORDS_FOLDER, Place, is_transcript
from openclaw_memory.workspace.tombstones import Line, read_lines

Accepts: TypeAlias = Callable[[str, str | None], bool]


@dataclass(frozen=True, slots=True)
class Content:
    """One file: its item, its bytes (none of a transcript), its text, and the fields above it.

    `updated` is the latest day that the fields of a record or document name, `days` are those of the lines of a note.
    `read_turns` reads the lines of a transcript anew each time.
    """

    item: Item
    data: bytes
    text: str
    fields: Mapping[str, Any]
    updated: datetime.date | None
    read_turns: Callable[[], Iterator[Line]] = lambda: iter(())
    days: Sequence[datetime.date | None] = ()


def read_contents(workspace: Workspace, accepts: Accepts = lambda *_: True) -> tuple[list[Content], list[Skipped]]:
    """Read the files of a memory in the order of a scan, and list those that cannot be read.

    Transcripts are there though `sessions.index` is off: they are on the disk.

    Args:
        workspace: The files.
        accepts: Returns whether to read the file at a path, for None, and whether to keep a note, for its text.

    Raises:
        WorkspaceError: The folder cannot be listed.
        ConfigError: The time zone is unknown.
    """
    zone, every = workspace.zone, with_transcripts(workspace)
    listed = every.scan()
    readable, skipped = list[Content](), list(listed.skipped)
    for file in (file for file in listed.files if accepts(file.path, None)):
        try:
            read = _read_transcript if file.source == "sessions" else partial(_read_note, accepts)
            if content := read(every, file, zone):
                readable.append(content)
        except NotFoundError:  # gone since it was listed
            continue
        except (OpenClawMemoryError, OSError) as error:
            skipped.append(Skipped(file.path, str(error)))
    for path in (path for path in snapshots.list_paths(workspace.root) if accepts(path, None)):
        try:
            readable.append(_read_snapshot(workspace, path, zone))
        except NotFoundError:
            continue
        except (OpenClawMemoryError, OSError) as error:
            skipped.append(Skipped(workspace.files.mask_path(path), str(error)))
    return readable, skipped


def with_transcripts(workspace: Workspace) -> Workspace:
    """Return the workspace with the transcripts that are there, whether they are indexed or not."""
    return replace(workspace, sessions=structs.replace(workspace.sessions, index=True))


def locate_any(workspace: Workspace, path: str) -> Place:
    """Return the place of anything that is remembered, as `locate` does of a memory file.

    Raises:
        PathNotAllowedError: It does not name a remembered file.
    """
    return workspace.files.make_place(path) if snapshots.is_snapshot(path) else workspace.locate(path)


def lock_any(workspace: Workspace, place: Place) -> AbstractContextManager[None]:
    """Return the lock under which a file is written.

    Args:
        workspace: The files.
        place: The file, as `locate_any` returns it.
    """
    if snapshots.is_snapshot(place.path):
        return snapshots.lock_snapshots(workspace.root, place.path)
    if is_transcript(place.path):
        return lock_file(Path(place.base, *place.parts[:-1], ".lock"), place.path)
    return workspace.files.lock(place.path)


def is_sealed(workspace: Workspace, path: str) -> bool:
    """Return whether a file is sealed; False if it cannot be read."""
    with suppress(OpenClawMemoryError, OSError):
        return path.endswith(SUFFIX) or workspace.files.is_sealed(locate_any(workspace, path))
    return False


def _read_note(
    accepts: Accepts, workspace: Workspace, file: MemoryFile, zone: datetime.tzinfo | None
) -> Content | None:
    data, info = workspace.files.read(workspace.files.locate(file.path))
    text = decode(data, file.path)
    read = parse(text) if find_encoding(data) == UTF8 else None
    if read is None and not accepts(file.path, text):
        return None
    fields = {} if read is None else read.fields
    kind, key, days = _classify(file.path, is_document=read is not None), None, list[datetime.date | None]()
    day = get_note_day(file.path, parse_own_fields(text))
    last = day
    if kind in {"record", "document"}:
        key = fields.get("key" if kind == "record" else "id")
        last = day = _parse_day(_get_time(fields, "created_at"), zone) or (day if kind == "document" else None)
    else:
        days = list_line_days(split_lines(text), file.path)
        every = [own for own in (day, *days) if own is not None]
        day, last = min(every, default=None), max(every, default=None)
    origin, source = fields.get("source"), "file"
    if kind == "document":
        source = EXTERNAL if is_external(fields) else "tool"
    if kind == "record" and isinstance(origin, dict):
        source = str(origin.get("kind"))
    changed = datetime.datetime.fromtimestamp(info.st_mtime_ns / 1e9, datetime.UTC)
    own, sensitivity = (_get_text(fields.get(name)) if kind == "record" else None for name in ("type", "sensitivity"))
    sizes = len(data), len(split_lines(text)), workspace.files.explain_withheld(file.path, text)
    item = Item(file.path, kind, day, last, changed, own, _get_text(key), source, sensitivity, *sizes)
    updated = _parse_day(_get_time(fields, "updated_at"), zone) or day if kind in {"record", "document"} else None
    return Content(item, data, text, fields, updated, days=days)


def _read_transcript(workspace: Workspace, file: MemoryFile, zone: datetime.tzinfo | None) -> Content:
    place = workspace.locate(file.path)

    def read_turns() -> Iterator[Line]:
        with workspace.files.open(place) as (stream, _):
            yield from read_lines(stream, zone)

    days, count, size = set[datetime.date](), 0, 0
    for line in read_turns():
        count, size = line.number, size + len(line.data)
        is_header = line.record is not None and line.record.get("type") == "session"
        days |= {line.day} if line.day is not None and not is_header else set()
    first, last = min(days, default=None), max(days, default=None)
    changed = datetime.datetime.fromtimestamp(file.mtime_ns / 1e9, datetime.UTC)
    item = Item(file.path, "transcript", first, last, changed, None, None, "chat_turn", None, size, count)
    return Content(item, b"", "", {}, None, read_turns)


def _read_snapshot(workspace: Workspace, path: str, zone: datetime.tzinfo | None) -> Content:
    data, info = workspace.files.read(workspace.files.make_place(path))
    snapshot = snapshots.parse_snapshot(data, path)
    if snapshots.is_hidden(workspace.files, snapshot):
        raise PathNotAllowedError("a rule of policies leaves sessions of this name out: change it, or delete it")
    day = snapshot.timestamp.astimezone(zone).date()
    changed = datetime.datetime.fromtimestamp(info.st_mtime_ns / 1e9, datetime.UTC)
    text = decode(data, path)
    lines = len(split_lines(text))
    item = Item(path, "snapshot", day, day, changed, None, snapshot.session_id, "chat_turn", None, len(data), lines)
    return Content(item, data, text, snapshot.to_dict(), None)


def _classify(path: str, *, is_document: bool) -> Kind:
    if path.startswith(f"{RECORDS_FOLDER}/"):
        return "record"
    if is_document:
        return "document"
    return "note" if get_path_day(path) is None else "day"


def _get_time(fields: Mapping[str, Any], name: str) -> object:
    """Return a time of a file: a program puts it next to the metadata, or into them."""
    metadata = fields.get("metadata")
    return fields.get(name) or (metadata.get(name) if isinstance(metadata, dict) else None)


def _parse_day(value: object, zone: datetime.tzinfo | None) -> datetime.date | None:
    """Return the day of a moment as JSON has it, in a zone; None for anything else."""
    if isinstance(value, str):
        with suppress(ValueError, OverflowError):
            moment = datetime.datetime.fromisoformat(value)
            return (moment.astimezone(zone) if moment.tzinfo else moment).date()
    return None


def _get_text(value: object) -> str | None:
    return value if isinstance(value, str) else None
