"""Change notes: replace or remove lines that still are what the caller saw, and promote lines to long-term memory."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from openclaw_memory.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OriginError,
    PathNotAllowedError,
    SignatureError,
    UndecodableError,
    WriteError,
)
from openclaw_memory.text.front_matter import measure_front_matter, parse, with_vector
from openclaw_memory.text.markdown_blocks import get_title, split_blocks
from openclaw_memory.text.policies import Policies, parse_about
from openclaw_memory.text.quotation import find_source, is_external
from openclaw_memory.types import Excerpt
from openclaw_memory.types.codec import IS_SEALED, SEAL_FIRST, SUFFIX, get_plain_name, is_sealed
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.journal import check_text, find_block
from openclaw_memory.workspace.paths import Place, is_of_the_agent
from openclaw_memory.workspace.safe_read import (
    find_encoding,
    hash_lines,
    is_utf16,
    make_excerpt_of_lines,
    mask_lines,
    show_lines,
    split_lines,
)
from openclaw_memory.workspace.vouched import explain_withheld

LONG_TERM_HEADING = "# Long-term memory"

# The beginning of a hash is enough, as in git; twelve digits identify a version of one file beyond doubt.
_SHORT_HASH = re.compile(r"[0-9a-fA-F]{12,64}")
_BOM = "\ufeff"
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")


@dataclass(frozen=True, slots=True)
class _Note:
    """A note as it was read: its lines without newlines, and what has to be preserved."""

    place: Place
    lines: list[str] = field(default_factory=list)
    mark: str = ""
    ends_line: bool = True
    is_sealed: bool = False
    info: os.stat_result | None = None  # None: there is no such file yet

    @property
    def has_crlf(self) -> bool:
        return self.lines[:1] != [] and self.lines[0].endswith("\r")

    def styled(self, lines: Sequence[str]) -> list[str]:
        """Return lines with the carriage returns of this note."""
        return [line.removesuffix("\r") + "\r" * self.has_crlf for line in lines]

    def text(self, lines: Sequence[str]) -> str:
        """Return what this note would hold with other lines, without its byte order mark."""
        body = "\n".join(lines)
        if self.ends_line:
            return body + "\n" * bool(lines)
        if not self.lines[-1].endswith("\r"):
            body = body.removesuffix("\r")
        if lines and (not body or body.endswith("\n")):
            return body + "\r" * self.has_crlf + "\n"  # a last line that is blank is one by its newline alone
        return body


def edit(files: WorkspaceFiles, path: str, start: int, end: int, text: str, *, expected: str | Excerpt) -> Excerpt:
    """Replace lines `start` to `end` (1-based, inclusive) of a note by `text` if they still are what the caller saw.

    `expected` is the `hash` of these lines, or at least its first 12 digits; or an excerpt that shows them,
    all unchanged. The byte order mark, the kind of newlines and a missing newline at the end are preserved. A
    newline at the end of `text` ends its last line and starts no other. The vector of a document, which is shown as
    `…`, is kept where the line that shows it is written back unchanged. Returns the new lines.

    Raises:
        ConflictError: The lines have changed. Nothing was written.
        PolicyError: A rule says never to store the text. Nothing was written.
        InvalidInputError: The range, the text or `expected` is invalid; or a secret, which is shown masked, would be
            lost or revealed.
        NotFoundError: There is no such file, or no such line.
        PathNotAllowedError: The path is not a memory file, is a transcript, or is outside the workspace.
        UndecodableError: The file is not text.
        SealedFileError: The file is sealed, and cannot be opened.
        WriteError: It could not be written, or is text in another encoding than UTF-8. The file is unchanged.
    """
    wanted = check_text(text, "the text to write")
    if not wanted:
        raise InvalidInputError("the text to write is empty: delete the lines instead")
    return _changed(files, path, start, end, wanted, expected)


def delete(files: WorkspaceFiles, path: str, start: int, end: int, *, expected: str | Excerpt) -> None:
    """Remove lines `start` to `end` (1-based, inclusive) of a note if they still are what the caller saw.

    Raises:
        ConflictError, InvalidInputError, NotFoundError, PathNotAllowedError, UndecodableError, WriteError: As `edit`.
    """
    _changed(files, path, start, end, "", expected)


def promote(
    files: WorkspaceFiles,
    path: str,
    start: int,
    end: int,
    *,
    section: str | None = None,
    expected: str | Excerpt | None = None,
) -> Excerpt:
    """Copy lines `start` to `end` (1-based, inclusive) of a note to `MEMORY.md` and return the lines there.

    They are added at the end of the section below the heading `section`, which is created if need be, or at the end of
    the file. Lines that are already there, one after the other, are not added again: the excerpt then has `existed`
    set.

    Raises:
        InvalidInputError: The range, the section or `expected` is invalid, the lines hold a secret, which stays where
            it is, they are front matter of a document, or they are sealed and `MEMORY.md` is not.
        OriginError: They come from outside: a quotation with its source, or a document whose `origin` is "external".
        SignatureError: They are of a record that no signature vouches for.
        PolicyError: A rule says never to store them. Nothing was written.
        ConflictError, NotFoundError, PathNotAllowedError, UndecodableError, WriteError: As `edit`.
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
        kept = _lines_to_keep(own, start, end, expected, files)
        policies.check(None, "\n".join([*([title] if title else []), *kept]))
        try:
            note = _read(target, files)
        except NotFoundError:
            note = _Note(target, is_sealed=target.path.endswith(SUFFIX))
        if own.is_sealed and not note.is_sealed:
            raise InvalidInputError(
                f"{source.path} {IS_SEALED} and {target.path} is not, which would hold its lines in the open: "
                f"{SEAL_FIRST} {target.path}`"
            )
        if (first := find_block(note.lines, kept)) is not None:
            return make_excerpt_of_lines(target.path, note.lines, first, len(kept), existed=True, policies=policies)
        lines, first = _with_kept(note, kept, title)
        text = note.text(lines)
        _write(note, text, files)
    return make_excerpt_of_lines(target.path, split_lines(text), first, len(kept), policies=policies)


def _changed(files: WorkspaceFiles, path: str, start: int, end: int, text: str, expected: str | Excerpt) -> Excerpt:
    place = _writable(files, path)
    with files.lock(place.path):
        note = _read(place, files)
        _check_seen(note, start, end, expected, text, files.policies)
        new = note.styled(split_lines(text))
        lines = with_vector([*note.lines[: start - 1], *new, *note.lines[end:]], note.lines)
        _check_masks(note, start, end, text, lines, files.policies)
        changed = note.text(lines)
        if text:
            files.policies.check(parse_about(changed), text)
        _write(note, changed, files)
    return make_excerpt_of_lines(place.path, split_lines(changed), start - 1, len(new), policies=files.policies)


def _writable(files: WorkspaceFiles, path: str) -> Place:
    if get_plain_name(path.strip()).endswith(".jsonl"):
        raise PathNotAllowedError(f"{path!r} is a transcript, which only grows: change notes instead")
    place = files.locate(path)
    if place.base != str(files.root):
        raise PathNotAllowedError(f"{path!r} lies outside of the workspace, where files are only read: edit it there")
    if is_of_the_agent(files.root, place.path):
        raise PathNotAllowedError(f"{path!r} is the agent's own, and is only read: edit it in an editor")
    return place


def _read(place: Place, files: WorkspaceFiles) -> _Note:
    raw, info = files.read_raw(place)
    data = files.unseal(raw, place.path)
    if is_utf16(data):
        raise WriteError(f"{place.path} is UTF-16: save it as UTF-8 first")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if (encoding := find_encoding(data)) is not None:
            raise WriteError(f"{place.path} is {encoding}, which is only read: save it as UTF-8 first") from error
        raise UndecodableError(f"{place.path} is not text in UTF-8 (byte {error.start}): save it as UTF-8") from error
    mark = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    ends_line = not body or body.endswith("\n")
    return _Note(place, split_lines(body), mark, ends_line, is_sealed=is_sealed(raw), info=info)


def _write(note: _Note, text: str, files: WorkspaceFiles) -> None:
    path, info, most = note.place.path, note.info, files.settings.max_bytes
    data = (note.mark + text).encode()
    if len(data) > most:
        raise WriteError(f"{path} would grow beyond files.max_bytes ({most:,}) and never be read again")
    if info is not None and info.st_nlink > 1:
        raise WriteError(f"{path} has {info.st_nlink} hard links, which a change would part: copy it first")
    files.replace(note.place, data, info)


def _check_seen(note: _Note, start: int, end: int, expected: str | Excerpt, proposed: str, policies: Policies) -> None:
    path, count = note.place.path, len(note.lines)
    _check_range(start, end)
    first, last, digest = start, end, expected.hash if isinstance(expected, Excerpt) else expected
    if not isinstance(digest, str) or not _SHORT_HASH.fullmatch(digest):
        raise InvalidInputError(
            f"expected must be an excerpt or its hash, at least 12 digits of it, not {expected!r}: read the lines"
        )
    if isinstance(expected, Excerpt):
        first, last = expected.start_line, expected.end_line
        if expected.path != path or start < first or end > last:
            raise InvalidInputError(
                f"lines {start} to {end} of {path} are not in the excerpt {expected.citation}: read them"
            )
    if not hash_lines("\n".join(note.lines[first - 1 : last])).startswith(digest.lower()):
        raise _conflict(note, start, end, expected, proposed, policies)
    if end > count:
        raise NotFoundError(f"{path} has {count} lines, none numbered {end}: read it again")


def _check_masks(note: _Note, start: int, end: int, proposed: str, changed: Sequence[str], policies: Policies) -> None:
    """Refuse to write a mask back, which would lose the secret, or to split a key, which would reveal the rest."""
    shown, after = mask_lines(note.lines), mask_lines(changed)
    expected = mask_lines(note.lines, policies)[start - 1 : end]
    for line, safe in zip(note.lines[start - 1 : end], expected, strict=True):
        masks = [word for word in safe.split() if word not in line and word in proposed]
        if masks:
            raise InvalidInputError(
                f"{masks[0]!r} masks a secret, which would be lost: leave its line out of the range"
            )
    above = zip(note.lines[: start - 1], shown, after, strict=False)
    below = zip(note.lines[end:], shown[end:], after[len(after) - len(note.lines) + end :], strict=True)
    # Of a key over several lines, all but the first are shown blank.
    begins_inside = bool(note.lines[start - 1].strip()) and not shown[start - 1].strip()
    if begins_inside or any(line != was and line == now for line, was, now in (*above, *below)):
        raise InvalidInputError(
            f"lines {start} to {end} are a part of a secret, and its rest would stay: name all its lines"
        )


def _check_range(start: int, end: int) -> None:
    if not isinstance(start, int) or not isinstance(end, int) or not 1 <= start <= end:
        raise InvalidInputError(
            f"lines {start!r} to {end!r} are not a range: lines count from 1, and the last is included"
        )


def _conflict(
    note: _Note, start: int, end: int, expected: str | Excerpt, proposed: str, policies: Policies
) -> ConflictError:
    path, shown = note.place.path, show_lines(note.lines, policies)
    current, digest = "\n".join(shown[start - 1 : end]), hash_lines("\n".join(note.lines[start - 1 : end]))
    message = (
        f"lines {start} to {end} of {path} are not what you saw, and were not changed: "
        f"look at them as they are now, whose hash is {digest[:12]}\n--- what is there now\n{current}"
    )
    if proposed:
        message += f"\n--- what you wanted to write\n{proposed}"
    if isinstance(expected, Excerpt):
        now = shown[expected.start_line - 1 : expected.end_line]
        rows = difflib.unified_diff(expected.text.split("\n"), now, "seen", "now", lineterm="")
        message += "\n" + "\n".join(rows)
    return ConflictError(message, path=path, start_line=start, current=current, proposed=proposed, hash=digest)


def _lines_to_keep(
    note: _Note, start: int, end: int, expected: str | Excerpt | None, files: WorkspaceFiles
) -> list[str]:
    if expected is not None:
        _check_seen(note, start, end, expected, "", files.policies)
    _check_range(start, end)
    if end > len(note.lines):
        raise NotFoundError(f"{note.place.path} has {len(note.lines)} lines, none numbered {end}: read it again")
    file = "\n".join(note.lines)
    if (problem := explain_withheld(files.root, note.place.path, file)) is not None:
        raise SignatureError(problem)
    _check_origin(note, file, start, end)
    if start <= (above := file[: measure_front_matter(file)].count("\n")):
        raise InvalidInputError(
            f"the first {above} lines of {note.place.path} are front matter of a document, not memory: name "
            "lines below them"
        )
    lines, policies = note.lines[start - 1 : end], files.policies
    policies.check(parse_about(file), "\n".join(lines))
    if mask_lines(note.lines, policies)[start - 1 : end] != lines:
        raise InvalidInputError(
            f"lines {start} to {end} of {note.place.path} hold a secret, which is shown masked: leave it where it is, "
            "and name lines without it"
        )
    kept = "\n".join(line.removesuffix("\r") for line in note.lines[start - 1 : end]).strip("\n")
    if not kept.strip():
        raise InvalidInputError(f"lines {start} to {end} of {note.place.path} are blank: name lines that say something")
    return kept.split("\n")


def _check_origin(note: _Note, file: str, start: int, end: int) -> None:
    """Check that lines do not come from outside: what a page says is no long-term memory, however it asks to be.

    Raises:
        OriginError: They are of a quotation with its source, or of a document that says so of itself.
    """
    said = parse(file)
    if (said is not None and is_external(said.fields)) or find_source(note.lines, start, end) is not None:
        raise OriginError(
            f"lines {start} to {end} of {note.place.path} come from outside, and are not copied to MEMORY.md: have the "
            "user say what of it holds, and write that in words of your own"
        )


def _with_kept(note: _Note, kept: Sequence[str], section: str | None) -> tuple[list[str], int]:
    """Return a note's lines with `kept` at the end of a section, or of the note, and the 0-based place of `kept`."""
    lines = note.lines or [LONG_TERM_HEADING]
    stop = len(lines) if section is None else _section_stop(lines, section)
    heading = [] if stop is not None else ["", f"## {section}"]
    stop = len(lines) if stop is None else stop
    while stop and not lines[stop - 1].strip():
        stop -= 1
    # Items stay one list; everything else is set apart.
    is_list = not heading and stop > 0 and _ITEM.match(lines[stop - 1]) and _ITEM.match(kept[0])
    before = [*heading, *([] if is_list or not stop else [""])]
    after = [""] if stop < len(lines) and lines[stop].strip() else []
    put = note.styled([*before, *kept, *after])
    return [*lines[:stop], *put, *lines[stop:]], stop + len(before)


def _section_stop(lines: Sequence[str], section: str) -> int | None:
    """Return where the section with this heading ends: at the next heading that is not below it."""
    level = None
    for block in split_blocks(lines):
        if block.kind != "heading":
            continue
        own_level, title = get_title(lines, block)
        if level is not None and own_level <= level:
            return block.first
        if level is None and title.casefold() == section.casefold():
            level = own_level
    return None if level is None else len(lines)
