"""Write a plan: a backup, then notes, documents and transcripts, each only where it is missing."""

from __future__ import annotations

import filecmp
import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from openclaw_memory.errors import (
    InvalidInputError,
    NotFoundError,
    OpenClawMemoryError,
    PathNotAllowedError,
    WriteError,
)
from openclaw_memory.workspace import SafeFolder
from openclaw_memory_migrate.plan import OLD_NOTES, Planned, plan_migration
from openclaw_memory_migrate.policies import apply_policies
from openclaw_memory_migrate.snapshots import SNAPSHOTS, convert_snapshots, list_snapshot_files, write_snapshots
from openclaw_memory_migrate.types import LeftOut, MigratedFile, MigrationPlan, MigrationReport

if TYPE_CHECKING:
    import datetime

    from openclaw_memory import Memory
    from openclaw_memory_migrate.types import Conversation, PlacedDocument, Section

_HEAD = "# From the notes before the migration"


def migrate(
    memory: Memory,
    source: str | os.PathLike[str] | None = None,
    *,
    file_format: str | None = None,
    dry_run: bool = False,
    now: datetime.datetime | None = None,
) -> MigrationReport:
    """Bring another memory into this one. The source is copied first, and never changed.

    Markdown goes to notes: sections with a day in their heading to that day's, all others to `memory/legacy.md`, and
    nothing to `MEMORY.md`. Memories of mem0 become documents with their ids. Conversations of ChatGPT and Claude
    become transcripts with all their branches. Snapshots of earlier plugins, in `.memory/snapshots/` next to
    `.memory.md`, are converted; links in the notes lead to the new ones. Existing entries are left as they are, so
    that it may be run again, also after it was interrupted. The next sync indexes the new files.

    Args:
        memory: The memory.
        source: A file, or the folder of an export, of a project, or of its snapshots; `.memory.md` in the workspace
            where None.
        file_format: One of `markdown`, `mem0`, `chatgpt`, `claude`, `snapshots`; by default, detected.
        dry_run: Whether to write nothing, and only report.
        now: The day of the backup; today if None.

    Raises:
        NotFoundError: There is no such file.
        InvalidInputError: It is damaged, or of no known format. The error says where. Nothing was written.
        WorkspaceError: It is neither UTF-8 nor UTF-16. Nothing was written.
        WriteError: The backup could not be written. Nothing else was.
    """
    workspace = memory.workspace
    moment = workspace.get_time(now)
    file = workspace.root / OLD_NOTES if source is None else Path(source).expanduser()
    if source is None and file.is_symlink():
        raise PathNotAllowedError(f"{file} is a symlink, and is not followed: name the file that it leads to")
    old_files, are_all = list_snapshot_files(file, workspace.root)
    if not (file.exists() or old_files):
        raise NotFoundError(f"{file} does not exist: name the file to migrate with --from")
    snapshots, refused = convert_snapshots(memory, old_files)
    if file_format == "snapshots" and not old_files:
        raise NotFoundError(f"{file} has no snapshots: name the folder that they are in, or the one above {SNAPSHOTS}")
    if file_format == "snapshots" or (are_all and file_format is None):
        planned = Planned(MigrationPlan("snapshots"), ())
    else:
        moved_to = {f"{SNAPSHOTS}/{item.name}": item.snapshot.path for item in snapshots}
        zone = moment.tzinfo if workspace.sessions.timezone else None
        planned = plan_migration(file, file_format, zone, workspace.root, moved_to)
    plan = apply_policies(replace(planned.plan, left_out=(*refused, *planned.plan.left_out)), workspace)
    backups = [] if dry_run else [_copy_aside(item, moment.date()) for item in planned.files]
    left_out = list(plan.left_out)
    files: list[MigratedFile] = []
    try:
        files += write_snapshots(workspace, snapshots, left_out, dry_run=dry_run)  # first: notes link to them
        files += _write_notes(memory, plan.sections, left_out, dry_run=dry_run)
        files += _write_documents(memory, plan.documents, left_out, dry_run=dry_run)
        files += [_write_conversation(memory, chat, left_out, dry_run=dry_run) for chat in plan.conversations]
    finally:
        if not dry_run:
            memory.notes.sync_soon()
            memory.events.emit("migrate", [(file.path, "") for file in files])
    notices = list(plan.notices)
    if plan.conversations and not workspace.sessions.index:
        notices.append("transcripts are not searched: set sessions.index = true")
    return MigrationReport(
        plan.format, str(file), dry_run, tuple(map(str, backups)), tuple(files), tuple(left_out), tuple(notices)
    )


def _copy_aside(file: Path, day: datetime.date) -> Path:
    """Copy a file next to itself, for its owner alone; return the copy, or an earlier identical one.

    Raises:
        WriteError: It could not be written.
    """
    try:
        for earlier in sorted(file.parent.glob(f"{glob.escape(file.name)}.bak-*")):
            if earlier.is_file() and not earlier.is_symlink() and filecmp.cmp(file, earlier, shallow=False):
                return earlier
        target, number = file.with_name(f"{file.name}.bak-{day.isoformat()}"), 1
        while os.path.lexists(target):
            number += 1
            target = file.with_name(f"{file.name}.bak-{day.isoformat()}-{number}")
        SafeFolder(file.parent).replace(target.name, file.read_bytes())
    except (OSError, OpenClawMemoryError) as error:
        raise WriteError(
            f"the backup of {file} could not be written next to it ({error}): copy the file to a folder of your own, "
            "and migrate it from there"
        ) from error
    return target


def _write_notes(
    memory: Memory, sections: Sequence[Section], left_out: list[LeftOut], *, dry_run: bool
) -> list[MigratedFile]:
    by_path: dict[str, list[Section]] = {}
    for section in sections:
        by_path.setdefault(section.path, []).append(section)
    files: list[MigratedFile] = []
    for path, group in by_path.items():
        date = path[len("memory/") : -len(".md")] if path[len("memory/")].isdigit() else None
        try:
            existing = memory.workspace.files.find(path)
            note = memory.workspace.read(existing) if (memory.workspace.root / existing).exists() else ""
            texts = ("\n".join(section.lines).strip("\n") for section in group)
            missing = [text for text in texts if f"\n{text}\n" not in f"\n{note}\n".replace("\r\n", "\n")]
            if missing and not dry_run:
                memory.notes.append("\n\n".join(missing if note or date else [_HEAD, *missing]), date=date, path=path)
        except OpenClawMemoryError as error:
            left_out += [LeftOut(_format_lines(section), str(error)) for section in group]
            continue
        files.append(MigratedFile(path, len(missing), len(group) - len(missing)))
    return files


def _format_lines(section: Section) -> str:
    last = section.first_line + len(section.lines) - 1
    return f"line {last}" if last == section.first_line else f"lines {section.first_line} to {last}"


def _write_documents(
    memory: Memory, placed: Sequence[PlacedDocument], left_out: list[LeftOut], *, dry_run: bool
) -> list[MigratedFile]:
    if not placed:
        return []
    existing = {item.id: item for item in memory.documents.iterate()}
    missing = [item for item in placed if item.document.id not in existing]
    left_out += [
        LeftOut(item.place, "a document with its id is there, says something else, and was left as it is")
        for item in placed
        if item.document.id in existing and _trim(existing[item.document.id].text) != _trim(item.document.text)
    ]
    before = len(left_out)
    if not dry_run:
        _add_documents(memory, missing, left_out)
    refused = len(left_out) - before
    return [MigratedFile("memory/notes", len(missing) - refused, len(placed) - len(missing))]


def _trim(text: str) -> str:
    return "\n".join(text.strip().splitlines())


def _add_documents(memory: Memory, placed: Sequence[PlacedDocument], left_out: list[LeftOut]) -> None:
    """Add documents; on an error, halve the batch until only the bad document is left out."""
    try:
        memory.documents.add([item.document for item in placed])
    except (InvalidInputError, PathNotAllowedError, WriteError) as error:
        if len(placed) == 1:
            left_out.append(LeftOut(placed[0].place, str(error)))
            return
        middle = len(placed) // 2
        _add_documents(memory, placed[:middle], left_out)
        _add_documents(memory, placed[middle:], left_out)


def _write_conversation(
    memory: Memory, conversation: Conversation, left_out: list[LeftOut], *, dry_run: bool
) -> MigratedFile:
    log = memory.workspace.open_log(conversation.session_id)
    missing: list[object] = []
    try:
        there = {entry.get("id") for entry in log.read_entries()}
        missing = [entry for entry in conversation.entries if entry["id"] not in there]
        if not dry_run:
            log.append_entries([entry for entry in conversation.entries if entry["id"] not in there])
    except OpenClawMemoryError as error:
        left_out.append(LeftOut(conversation.place, str(error)))
        return MigratedFile(log.path, 0, len(conversation.entries) - len(missing))
    return MigratedFile(log.path, len(missing), len(conversation.entries) - len(missing))
