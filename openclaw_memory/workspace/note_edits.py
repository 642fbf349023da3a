"""Change notes: replace or remove lines that are still as the caller read them, and copy lines to long-term memory."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence

import msgspec

from openclaw_memory.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    PathNotAllowedError,
    RecordError,
    UndecodableError,
    WriteError,
)
from openclaw_memory.text.front_matter import measure_front_matter, parse
from openclaw_memory.text.markdown_blocks import split_blocks
from openclaw_memory.text.policies import Policies, parse_about
from openclaw_memory.text.quotation import find_source, is_external
from openclaw_memory.types import Excerpt
from openclaw_memory.types.codec import IS_SEALED, SEAL_FIRST, SUFFIX, get_plain_name, is_sealed
from openclaw_memory.workspace.encodings import CANVAS, UTF8, check_text, find_encoding
from openclaw_memory.workspace.excerpts import find_block, hash_lines, make_excerpt_of_lines, mask_lines, split_lines
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import Place, is_of_the_agent

LONG_TERM_HEADING = "# Long-term memory"

# The beginning of a hash is enough, as in git; twelve digits identify a version of one file beyond doubt.
_SHORT_HASH = re.compile(r"[0-9a-fA-F]{12,64}")
_BOM = "\ufeff"
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")


class _Note(msgspec.Struct, frozen=True):
    """A note as it was read: its lines without newlines, and the form that a change preserves."""

    place: Place
    lines: Sequence[str] = ()
    mark: str = ""
    ends_line: bool = True
    is_sealed: bool = False
    info: os.stat_result | None = None  # None: there is no such file yet

    @property
    def path(self) -> str:
        return self.place.path

    @property
    def has_crlf(self) -> bool:
        return bool(self.lines) and self.lines[0].endswith("\r")

    def match_style(self, lines: Sequence[str]) -> list[str]:
        """Return lines with the carriage returns of this note."""
        return [line.removesuffix("\r") + "\r" * self.has_crlf for line in lines]

    def join(self, lines: Sequence[str]) -> str:
        """Return the text of this note with other lines, without its byte order mark."""
        body = "\n".join(lines)
        if self.ends_line:
            return body + "\n" * bool(lines)
        if not self.lines[-1].endswith("\r"):
            body = body.removesuffix("\r")
        if lines and (not body or body.endswith("\n")):
            return body + "\r" * self.has_crlf + "\n"  # a last line that is blank is one by its newline alone
        return body


def edit(files: WorkspaceFiles, path: str, start: int, end: int, text: str, *, expected: str | Excerpt) -> Excerpt:
    """Replace lines of a note if they are still as the caller read them; returns the new lines. See `Notes.edit`.

    Args:
        files: The files of the workspace.
        path: The note.
        start: The first line, 1-based.
        end: The last line, included.
        text: The new lines; "" removes the old ones.
        expected: The excerpt that the caller read, or its hash.

    Raises:
        ConflictError, PolicyError, InvalidInputError, NotFoundError: As `Notes.edit`.
        PathNotAllowedError, UndecodableError, SealedFileError, WriteError: As `Notes.edit`.
    """
    place = _locate_writable(files, path)
    with files.lock(place.path):
        note = _read(place, files)
        _check_expected(note, start, end, expected, text, files.policies)
        new = note.match_style(split_lines(text))
        lines = [*note.lines[: start - 1], *new, *note.lines[end:]]
        _check_masks(note, start, end, text, lines, files.policies)
        changed = note.join(lines)
        if text:
            files.policies.check(parse_about(changed), text)
        files.replace(place, (note.mark + changed).encode(), note.info)
    return make_excerpt_of_lines(place.path, split_lines(changed), start - 1, len(new), policies=files.policies)


def promote(
    files: WorkspaceFiles, path: str, start: int, end: int, section: str | None, expected: str | Excerpt | None
) -> Excerpt:
    """Copy lines of a note to `MEMORY.md`, and return the lines there. See `Notes.promote`.

    Args:
        files: The files of the workspace.
        path: The note.
        start: The first line, 1-based.
        end: The last line, included.
        section: The heading to add them below; the end of the file where None.
        expected: The excerpt that the caller read, or its hash; not compared where None.

    Raises:
        InvalidInputError, RecordError, PolicyError, ConflictError: As `Notes.promote`.
        NotFoundError, PathNotAllowedError, UndecodableError, WriteError: As `Notes.edit`.
    """
    source, target = files.locate(path), files.locate(files.find_long_term())
    if source.path == target.path:
        raise InvalidInputError(f"{source.path} is the long-term memory itself: name lines of another note")
    title = None if section is None else check_text(" ".join(section.split()).lstrip("# "), "the section")
    if title == "":
        raise InvalidInputError("the section is empty: name a heading, or none")
    policies = files.policies
    with files.lock(target.path):
        own = _read(source, files)
        if expected is not None:
            _check_expected(own, start, end, expected, "", policies)
        copied = _check_copied(own, start, end, files)
        policies.check(None, "\n".join([*([title] if title else []), *copied]))
        try:
            note = _read(target, files)
        except NotFoundError:
            note = _Note(target, is_sealed=target.path.endswith(SUFFIX))
        if own.is_sealed and not note.is_sealed:
            raise InvalidInputError(
                f"{own.path} {IS_SEALED} and {note.path} is not, which would hold its lines in the open: "
                f"{SEAL_FIRST} {note.path}`"
            )
        if (first := find_block(note.lines, copied)) is not None:
            return make_excerpt_of_lines(note.path, note.lines, first, len(copied), existed=True, policies=policies)
        lines, first = _insert(note, copied, title)
        text = note.join(lines)
        files.replace(note.place, (note.mark + text).encode(), note.info)
    return make_excerpt_of_lines(note.path, split_lines(text), first, len(copied), policies=policies)


def _locate_writable(files: WorkspaceFiles, path: str) -> Place:
    if get_plain_name(path.strip()).endswith(".jsonl"):
        raise PathNotAllowedError(f"{path!r} is a transcript, which only grows: change notes instead")
    place = files.locate(path)
    if place.path.endswith(CANVAS):
        raise PathNotAllowedError(f"{path!r} is a canvas, which is only read: change it in Obsidian")
    if place.base != str(files.root):
        raise PathNotAllowedError(f"{path!r} lies outside of the workspace, where files are only read: edit it there")
    if is_of_the_agent(files.root, place.path):
        raise PathNotAllowedError(f"{path!r} is the agent's own, and is only read: edit it in an editor")
    return place


def _read(place: Place, files: WorkspaceFiles) -> _Note:
    raw, info = files.read_raw(place)
    data = files.unseal(raw, place.path)
    if (encoding := find_encoding(data)) != UTF8:
        raise WriteError(f"{place.path} is {encoding}: save it as UTF-8 first")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UndecodableError(f"{place.path} is not text in UTF-8 (byte {error.start}): save it as UTF-8") from error
    mark = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    ends_line = not body or body.endswith("\n")
    return _Note(place, split_lines(body), mark, ends_line, is_sealed=is_sealed(raw), info=info)


def _check_range(start: int, end: int) -> None:
    if not isinstance(start, int) or not isinstance(end, int) or not 1 <= start <= end:
        raise InvalidInputError(f"lines {start!r} to {end!r} are not a range: lines count from 1, the last is included")


def _check_end(note: _Note, end: int) -> None:
    if end > len(note.lines):
        raise NotFoundError(f"{note.path} has {len(note.lines)} lines, none numbered {end}: read it again")


def _check_expected(
    note: _Note, start: int, end: int, expected: str | Excerpt, proposed: str, policies: Policies
) -> None:
    _check_range(start, end)
    first, last, digest = start, end, expected
    if isinstance(expected, Excerpt):
        first, last, digest = expected.start_line, expected.end_line, expected.hash
    if not isinstance(digest, str) or not _SHORT_HASH.fullmatch(digest):
        raise InvalidInputError(f"expected is {expected!r}, not an excerpt or 12 digits of its hash: read the lines")
    if isinstance(expected, Excerpt) and (expected.path != note.path or start < first or end > last):
        raise InvalidInputError(f"lines {start} to {end} are not in the excerpt {expected.citation}: read them")
    if not hash_lines("\n".join(note.lines[first - 1 : last])).startswith(digest.lower()):
        raise _describe_conflict(note, start, end, expected, proposed, policies)
    _check_end(note, end)


def _check_masks(note: _Note, start: int, end: int, proposed: str, changed: Sequence[str], policies: Policies) -> None:
    """Refuse to write a mask back, which would lose the secret, or to split a key, which would reveal the remainder."""
    before, after = mask_lines(note.lines), mask_lines(changed)
    visible = mask_lines(note.lines, policies)[start - 1 : end]
    for line, safe in zip(note.lines[start - 1 : end], visible, strict=True):
        masks = [word for word in safe.split() if word not in line and word in proposed]
        if masks:
            raise InvalidInputError(f"{masks[0]!r} masks a secret, which would be lost: leave its line out")
    above = zip(note.lines[: start - 1], before, after, strict=False)
    below = zip(note.lines[end:], before[end:], after[len(after) - len(note.lines) + end :], strict=True)
    # Of a key over several lines, all but the first are shown blank.
    begins_inside = bool(note.lines[start - 1].strip()) and not before[start - 1].strip()
    if begins_inside or any(line != was and line == now for line, was, now in (*above, *below)):
        raise InvalidInputError(
            f"lines {start} to {end} are part of a secret, whose rest would stay: name all its lines"
        )


def _describe_conflict(
    note: _Note, start: int, end: int, expected: str | Excerpt, proposed: str, policies: Policies
) -> ConflictError:
    visible = mask_lines(note.lines, policies)
    current, digest = "\n".join(visible[start - 1 : end]), hash_lines("\n".join(note.lines[start - 1 : end]))
    message = (
        f"lines {start} to {end} of {note.path} are not what you saw, and were not changed: "
        f"look at them as they are now, whose hash is {digest[:12]}\n--- what is there now\n{current}"
    )
    if proposed:
        message += f"\n--- what you wanted to write\n{proposed}"
    if isinstance(expected, Excerpt):
        now = visible[expected.start_line - 1 : expected.end_line]
        rows = difflib.unified_diff(expected.text.split("\n"), now, "seen", "now", lineterm="")
        message += "\n" + "\n".join(rows)
    return ConflictError(message, path=note.path, start_line=start, current=current, proposed=proposed, hash=digest)


def _check_copied(note: _Note, start: int, end: int, files: WorkspaceFiles) -> list[str]:
    """Return lines to be copied to long-term memory, once it is checked that they may be."""
    _check_range(start, end)
    _check_end(note, end)
    name, file, policies = f"lines {start} to {end} of {note.path}", "\n".join(note.lines), files.policies
    if (problem := files.explain_withheld(note.path, file)) is not None:
        raise RecordError(problem)
    matter = parse(file)
    if (matter is not None and is_external(matter.fields)) or find_source(note.lines, start, end) is not None:
        raise InvalidInputError(f"{name} come from outside and stay out of MEMORY.md: write what the user says holds")
    if start <= (above := file[: measure_front_matter(file)].count("\n")):
        raise InvalidInputError(f"the first {above} lines of {note.path} are front matter: name lines below")
    lines = note.lines[start - 1 : end]
    policies.check(parse_about(file), "\n".join(lines))
    if mask_lines(note.lines, policies)[start - 1 : end] != list(lines):
        raise InvalidInputError(f"{name} hold a secret, which is shown masked: name lines without it")
    text = "\n".join(line.removesuffix("\r") for line in lines).strip("\n")
    if not text.strip():
        raise InvalidInputError(f"{name} are blank: name lines that say something")
    return text.split("\n")


def _insert(note: _Note, new: Sequence[str], section: str | None) -> tuple[list[str], int]:
    """Return a note's lines with `new` at the end of a section, or of the note, and the 0-based place of `new`."""
    lines = note.lines or [LONG_TERM_HEADING]
    end = len(lines) if section is None else _find_section_end(lines, section)
    heading = [] if end is not None else ["", f"## {section}"]
    end = len(lines) if end is None else end
    while end and not lines[end - 1].strip():
        end -= 1
    # Items stay one list; everything else is set apart.
    is_list = not heading and end > 0 and _ITEM.match(lines[end - 1]) and _ITEM.match(new[0])
    before = [*heading, *([] if is_list or not end else [""])]
    after = [""] if end < len(lines) and lines[end].strip() else []
    return [*lines[:end], *note.match_style([*before, *new, *after]), *lines[end:]], end + len(before)


def _find_section_end(lines: Sequence[str], section: str) -> int | None:
    """Return where the section with this heading ends: at the next heading that is not below it."""
    level = None
    for block in split_blocks(lines):
        if block.kind != "heading":
            continue
        own_level, title = block.get_title(lines)
        if level is not None and own_level <= level:
            return block.first
        if level is None and title.casefold() == section.casefold():
            level = own_level
    return None if level is None else len(lines)
