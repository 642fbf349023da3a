"""Read a file, recognise its format, and plan the migration; nothing is written."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast, get_args
from urllib.parse import unquote

from openclaw_memory.errors import InvalidInputError, NotFoundError
from openclaw_memory.workspace import decode
from openclaw_memory_migrate import chatgpt, claude, markdown, mem0
from openclaw_memory_migrate.conversations import ReadConversation, plan_all
from openclaw_memory_migrate.types import Format, LeftOut, MigrationPlan

FORMATS: tuple[Format, ...] = get_args(Format)
_DATABASE = b"SQLite format 3\0"
_PACKED = (b"PK\x03\x04", b"\x1f\x8b")  # zip, gzip
_MARKDOWN = frozenset({".md", ".markdown", ".txt"})
# Files to look for in a folder, in this order: what ChatGPT and Claude export, what earlier plugins left.
OLD_NOTES = ".memory.md"  # what earlier plugins kept at the top of a project
IN_A_FOLDER = ("conversations.json", OLD_NOTES)
_PARTS = "conversations-[0-9]*.json"  # a large export has its conversations in several files
_CONVERSATIONS: Mapping[Format, ReadConversation] = {"chatgpt": chatgpt.read, "claude": claude.read}


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the files that it was read from."""

    plan: MigrationPlan
    files: tuple[Path, ...]


def plan_migration(
    file: Path,
    file_format: str | None = None,
    zone: datetime.tzinfo | None = None,
    root: Path | None = None,
    moved_to: Mapping[str, str] = MappingProxyType({}),
) -> Planned:
    """Return the plan for a file. Nothing is written.

    Args:
        file: A file, or the folder of an export.
        file_format: One of `markdown`, `mem0`, `chatgpt`, `claude`; by default, detected.
        zone: The zone of the days of conversations; the machine's where None.
        moved_to: From paths, relative to the folder of the file, to where those files are in the workspace now.
        root: The workspace that links of Markdown are rewritten for; without it they stay as they are.

    Raises:
        NotFoundError: There is no such file, or it cannot be read.
        InvalidInputError: It is damaged, of no known format, or not of that format. The error says where.
        WorkspaceError: It is neither UTF-8 nor UTF-16.
    """
    if file_format is not None and file_format not in FORMATS:
        raise InvalidInputError(f"{file_format!r} is no format: use one of {', '.join(FORMATS)}")
    files = _list_export_files(file) if file.is_dir() else [file]
    plans = [_plan_file(item, file_format, zone, root, moved_to) for item in files]
    return plans[0] if len(plans) == 1 else _merge_plans(file, plans)


def _plan_file(
    file: Path, file_format: str | None, zone: datetime.tzinfo | None, root: Path | None, moved_to: Mapping[str, str]
) -> Planned:
    content = _read(file)
    if content.startswith(_DATABASE):
        raise InvalidInputError(f"{file} is a database, not an export: have the program that made it export it")
    if content.startswith(_PACKED):
        raise InvalidInputError(f"{file} is packed: unpack it, and name the file in it, such as conversations.json")
    if file_format == "markdown" or (file_format is None and _is_markdown(file, content)):
        base = None if root is None else _find_base(file, root)
        text = decode(content, str(file))
        return Planned(markdown.plan(text, base, lambda path: _is_target(file, path), moved_to), (file,))
    data = _parse_json(content, file)
    data_format = _check_format(file, data, file_format)
    if not data:
        return Planned(MigrationPlan(data_format), (file,))
    if data_format in _CONVERSATIONS:
        return Planned(plan_all(data_format, data, zone, _CONVERSATIONS[data_format]), (file,))
    return Planned(mem0.plan(data), (file,))


def _check_format(file: Path, data: Any, requested: str | None) -> Format:
    """Return the format of a JSON file; the requested one if the file is empty.

    Raises:
        InvalidInputError: It is of no known format, or of another one.
    """
    detected = _detect_format(data)
    if detected is None and requested is not None and data in ([], {}):
        return cast("Format", requested)
    if detected is None:
        raise InvalidInputError(
            f"{file} is of no known format ({_describe(data)}): give one of {', '.join(FORMATS[1:])}, as its program "
            "exports it"
        )
    if requested not in {None, detected}:
        raise InvalidInputError(f"{file} looks like {detected}, not {requested}: leave the format out")
    return detected


def _list_export_files(folder: Path) -> list[Path]:
    for name in IN_A_FOLDER:
        if (folder / name).is_file():
            return [folder / name]
    if parts := sorted(part for part in folder.glob(_PARTS) if part.is_file()):
        return parts
    raise NotFoundError(f"{folder} has no {' and no '.join(IN_A_FOLDER)}: name a file")


def _read(file: Path) -> bytes:
    if file.exists() and not file.is_file():
        raise NotFoundError(f"{file} is no ordinary file: name one")
    try:
        with file.open("rb") as stream:
            return stream.read()
    except OSError as error:
        raise NotFoundError(f"{file} cannot be read ({error.strerror}): make it readable, or name another") from error


def _find_base(file: Path, root: Path) -> str | None:
    """Return the folder of a file, relative to the workspace; None where it is outside."""
    folder, root = file.resolve().parent, root.resolve()
    return folder.relative_to(root).as_posix().removeprefix(".") if folder.is_relative_to(root) else None


def _is_target(file: Path, path: str) -> bool:
    """Return whether a link in a file, as it is written, leads to something."""
    try:
        return any((file.parent / path_text).exists() for path_text in (path, unquote(path)))
    except (OSError, ValueError):  # too long, or with a NUL
        return False


def _is_markdown(file: Path, content: bytes) -> bool:
    """Return whether a file is text by its name, or by its first character where it has another name."""
    if file.suffix.lower() in _MARKDOWN or file.name.startswith(".memory"):
        return True
    return file.suffix.lower() != ".json" and not content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(
        (b"{", b"[")
    )


def _parse_json(content: bytes, file: Path) -> Any:
    try:
        return json.loads(decode(content, str(file)))
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"{file} is damaged at line {error.lineno}, column {error.colno} ({error.msg}): export it again"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{file} cannot be read as JSON ({error}): export it again") from error


def _detect_format(data: Any) -> Format | None:
    """Detect the format of JSON by its keys."""
    every = [item for item in (data if isinstance(data, list) else [data]) if isinstance(item, Mapping)]
    if any("mapping" in item for item in every):
        return "chatgpt"
    if any("chat_messages" in item for item in every):
        return "claude"
    if isinstance(data, Mapping):
        listed = [data[name] for name in mem0.LISTS if isinstance(data.get(name), list)]
        return "mem0" if listed else None
    return "mem0" if any(isinstance(item.get("memory"), str) for item in every) else None


def _describe(data: Any) -> str:
    if isinstance(data, Mapping):
        return f"an object with the names {', '.join(map(repr, [*data][:5]))}" if data else "an empty object"
    if isinstance(data, list):
        return f"a list of {len(data):,}, the first of which is {_describe(data[0])}" if data else "an empty list"
    return f"a {type(data).__name__}"


def _merge_plans(folder: Path, parts: Sequence[Planned]) -> Planned:
    """Return one plan for the parts of an export."""
    plans, files = [part.plan for part in parts], [file for part in parts for file in part.files]
    formats = {plan.format for plan in plans}
    if len(formats) > 1:
        raise InvalidInputError(f"{folder} holds exports of {' and of '.join(sorted(formats))}: name one at a time")
    return Planned(
        MigrationPlan(
            plans[0].format,
            documents=tuple(item for plan in plans for item in plan.documents),
            conversations=tuple(item for plan in plans for item in plan.conversations),
            left_out=tuple(
                LeftOut(f"{part.files[0].name}: {item.place}", item.reason)
                for part in parts
                for item in part.plan.left_out
            ),
            notices=tuple(dict.fromkeys(notice for plan in plans for notice in plan.notices)),
        ),
        tuple(files),
    )
