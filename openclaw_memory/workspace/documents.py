"""Documents on disk: what a program adds to a memory, each a Markdown file with fields above its text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from openclaw_memory.chunking.matter import composed, parsed
from openclaw_memory.config import Files
from openclaw_memory.errors import NotFoundError, PathNotAllowedError, QueryError, UndecodableError, WriteError
from openclaw_memory.redaction import redact
from openclaw_memory.workspace.files import notes_below
from openclaw_memory.workspace.journal import checked_text
from openclaw_memory.workspace.paths import NOTES_FOLDER, Place, locate
from openclaw_memory.workspace.reading import decode, opened
from openclaw_memory.workspace.writing import (
    make_folder,
    read_whole,
    refused,
    remove_file,
    replace_files,
    writing,
)

DOCUMENTS_FOLDER = f"{NOTES_FOLDER}/notes"

_NAME_CHARS = 80
_UNSAFE = re.compile(r"[^a-z0-9_-]+")
# Windows takes these for devices, whatever follows after a dot.
_RESERVED = re.compile(r"con|prn|aux|nul|com[0-9]|lpt[0-9]")

_Stamp: TypeAlias = tuple[int, int, int]
# What is known of files that were read before: the id in them, None where they have none, while the stamp is the same.
Known: TypeAlias = MutableMapping[str, tuple[_Stamp, str | None]]


class Fields(NamedTuple):
    """A document as it is written: its path, the fields above the text, and the text."""

    path: str
    fields: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class _File:
    """What is at a place now. `content` is None where there is no document, be it nothing or a person's own file."""

    place: Place
    info: os.stat_result | None
    text: str
    content: tuple[dict[str, Any], str] | None


def file_name(doc_id: str) -> str:
    """A name for the file of a document, without its ending: the id, or what is readable of it and a digest.

    It is of `a-z`, `0-9`, `_` and `-`, at most 93 characters long, and a name on every system. Ids that differ in case
    alone have different names.

    Raises:
        QueryError: the id is no string, is blank, or is no Unicode.
    """
    if not isinstance(doc_id, str) or not doc_id.strip():
        raise QueryError(f"a document needs an id of at least one character, not {doc_id!r}")
    checked_text(doc_id, f"the id {doc_id!r}")
    safe = _UNSAFE.sub("-", doc_id.lower()).strip("-_")[:_NAME_CHARS]
    if safe == doc_id and not _RESERVED.fullmatch(safe):
        return safe
    return f"{safe}-{sha256(doc_id.encode()).hexdigest()[:12]}".lstrip("-")


def path_of(doc_id: str) -> str:
    """The path that the document with this id has, unless a person's file was in the way, or has moved it.

    Raises:
        QueryError: as `file_name`.
    """
    return f"{DOCUMENTS_FOLDER}/{file_name(doc_id)}.md"


def write(root: Path, rules: Files, documents: Sequence[Fields]) -> list[str]:
    """Write documents, each file whole or not at all; returns the paths of those that were not there just so.

    Raises:
        QueryError: a field is not JSON, or a text no Unicode: nothing was written.
        PathNotAllowedError: a path lies not below `memory/`, is left out by the globs, or is that of a person's file.
        WriteError: a file would be too large (nothing was written), or could not be written (those before it are).
    """
    with writing(root, documents[0].path if documents else NOTES_FOLDER):
        return _write(root, rules, documents)


def upsert(root: Path, rules: Files, documents: Mapping[str, tuple[Mapping[str, Any], str]], known: Known) -> list[str]:
    """Write documents by their ids, in the files that have them or in new ones; returns the paths that changed.

    A name that a person's file has is left to it: the document gets another one. `known` is kept for the next call.

    Raises:
        QueryError, PathNotAllowedError, WriteError: as `write`.
    """
    names = {doc_id: file_name(doc_id) for doc_id in documents}
    with writing(root, DOCUMENTS_FOLDER):
        there = paths_by_id(root, rules, known)
        taken = _names_taken(root)
        placed: list[Fields] = []
        for doc_id, (fields, text) in documents.items():
            path = there[doc_id][0] if doc_id in there else f"{DOCUMENTS_FOLDER}/{_free(names[doc_id], taken)}.md"
            placed.append(Fields(path, {"id": doc_id, **fields}, text))
        return _write(root, rules, placed)


def read(root: Path, rules: Files, path: str) -> tuple[dict[str, Any], str] | None:
    """Fields and text of a document; None where there is none, or a file that no program wrote.

    Raises:
        PathNotAllowedError: the path can be none of a memory file, or passes a symlink.
        WorkspaceError: the file cannot be read.
    """
    return _file(locate(root, rules, path), rules).content


def remove(root: Path, rules: Files, paths: Iterable[str]) -> list[str]:
    """Remove documents; returns the paths of those that were there.

    Raises:
        PathNotAllowedError: a path is that of a person's file, which is not touched; those before are removed.
        WriteError: a file could not be removed.
    """
    removed: list[str] = []
    for place in [_own_place(root, rules, path) for path in paths]:
        with writing(root, place.path):
            file = _file(place, rules)
            if file.info is None:
                continue
            if file.content is None:
                raise _not_ours(place.path, "removed")
            remove_file(place.base, place.parts, file.info)
            removed.append(place.path)
    return removed


def below(root: Path, rules: Files, folder: str = DOCUMENTS_FOLDER) -> Iterator[Fields]:
    """Every document below a folder of `memory/`, in the order of their paths; a person's files are passed over.

    Raises:
        PathNotAllowedError: the folder does not lie there.
        WorkspaceError: a folder or a file cannot be read.
    """
    inside = locate(root, rules, f"{folder}/any.md")
    for path, _ in notes_below(root, inside.path.rpartition("/")[0], rules):
        if (content := read(root, rules, path)) is not None:
            yield Fields(path, *content)


def paths_by_id(root: Path, rules: Files, known: Known) -> dict[str, list[str]]:
    """The files of each document by its id: more than one where a person has copied it, that of its own name first."""
    found: dict[str, list[str]] = {}
    for path, info in notes_below(root, DOCUMENTS_FOLDER, rules):
        stamp = (info.st_ino, info.st_size, info.st_mtime_ns)
        if path not in known or known[path][0] != stamp:
            known[path] = (stamp, id_in(read(root, rules, path)))
        doc_id = known[path][1]
        if doc_id is not None:
            own = path == path_of(doc_id)
            found.setdefault(doc_id, []).insert(0 if own else len(found.get(doc_id, ())), path)
    return found


def id_in(content: tuple[Mapping[str, Any], str] | None) -> str | None:
    """The id of a document that has one, and metadata that are a table."""
    if content is None:
        return None
    fields, _ = content
    doc_id = fields.get("id")
    is_one = isinstance(doc_id, str) and bool(doc_id.strip()) and isinstance(fields.get("metadata", {}), dict)
    return doc_id if is_one else None


def _write(root: Path, rules: Files, documents: Sequence[Fields]) -> list[str]:
    """As `write`, under the lock that is held. All is checked before anything is written."""
    planned: dict[tuple[str, ...], list[tuple[str, bytes, os.stat_result | None]]] = {}
    written: list[str] = []
    base = str(root)
    for document in documents:
        place = _own_place(root, rules, document.path)
        text = composed(document.fields, checked_text(document.text, f"the text of {place.path}"))
        data = text.encode()
        if len(data) > rules.max_bytes:
            raise WriteError(
                f"{place.path} would have {len(data):,} bytes, more than files.max_bytes ({rules.max_bytes:,}), and "
                "never be read again: part it, or raise files.max_bytes"
            )
        file = _file(place, rules)
        if file.text == text and file.info is not None:
            continue
        if file.info is not None:
            _check_replaceable(file, text)
        planned.setdefault(place.parts[:-1], []).append((place.parts[-1], data, file.info))
        written.append(place.path)
    for folder, files in planned.items():
        _make_folders(root, folder)
        replace_files(base, folder, files)
    return written


def _check_replaceable(file: _File, text: str) -> None:
    path, info = file.place.path, file.info
    if file.content is None or info is None:
        raise _not_ours(path, "overwritten")
    if info.st_nlink > 1:
        raise WriteError(f"{path} has {info.st_nlink} hard links, which a change would part: copy it first")
    shown = redact(file.text)
    masks = [] if shown == file.text else [word for word in shown.split() if word not in file.text and word in text]
    if masks:
        raise QueryError(f"{masks[0]!r} stands for a secret in {path}, which would be lost: change that file by hand")


def _file(place: Place, rules: Files) -> _File:
    try:
        with opened(place, rules) as descriptor:
            info = os.fstat(descriptor)
            data = read_whole(descriptor)
    except NotFoundError:
        return _File(place, None, "", None)
    try:
        text = decode(data, place.path)
    except UndecodableError:
        return _File(place, info, "", None)
    return _File(place, info, text, parsed(text))


def _own_place(root: Path, rules: Files, path: str) -> Place:
    """The place of a path below `memory/`.

    Raises:
        PathNotAllowedError: it lies somewhere else, or is left out by the globs.
    """
    place = locate(root, rules, path)
    if place.parts[0] != NOTES_FOLDER or place.base != str(root):
        raise PathNotAllowedError(f"{path!r} is not below {NOTES_FOLDER}/, where documents are kept: name a path there")
    return place


def _not_ours(path: str, what: str) -> PathNotAllowedError:
    return PathNotAllowedError(
        f"{path} is a person's own file and is not {what} through a framework: change it by hand, or with "
        "`edit` and `delete` of the memory"
    )


def _names_taken(root: Path) -> set[str]:
    """The names in the folder of documents as a disk that ignores case compares them, without their endings."""
    try:
        return {name.casefold().removesuffix(".md") for name in os.listdir(root / DOCUMENTS_FOLDER)}
    except FileNotFoundError:
        return set()


def _free(name: str, taken: set[str]) -> str:
    """`name`, or where it is taken, that with the first number that is not; taken from now on."""
    numbered = (name if number == 1 else f"{name}-{number}" for number in count(1))
    free = next(one for one in numbered if one not in taken)
    taken.add(free)
    return free


def _make_folders(root: Path, parts: Sequence[str]) -> None:
    try:
        for depth, part in enumerate(parts):
            make_folder(root.joinpath(*parts[:depth]), part)
    except OSError as error:
        raise refused(error, "/".join(parts)) from error
