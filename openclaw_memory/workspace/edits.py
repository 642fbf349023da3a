"""Change notes: replace or remove lines that still are what the caller saw, and promote lines to long-term memory."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from openclaw_memory.chunking.blocks import blocks, title_of
from openclaw_memory.config import FilesConfig
from openclaw_memory.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    OriginError,
    PathNotAllowedError,
    UndecodableError,
    WriteError,
)
from openclaw_memory.security.age import is_encrypted
from openclaw_memory.text.front_matter import front_matter_end, parse, with_vector
from openclaw_memory.text.policies import about_in, policies_of
from openclaw_memory.text.quotation import is_external, source_of
from openclaw_memory.types import Excerpt
from openclaw_memory.types.files import ENCRYPTED, unencrypted
from openclaw_memory.workspace.atomic import replace_file, writing
from openclaw_memory.workspace.journal import checked_text, find_block
from openclaw_memory.workspace.paths import Place, is_of_the_agent, locate, long_term_path
from openclaw_memory.workspace.safe_read import (
    as_written,
    decrypted,
    excerpt_of_lines,
    hash_of,
    is_utf16,
    masked_lines,
    other_encoding,
    read_as_it_is,
    shown_lines,
    split_lines,
)
from openclaw_memory.workspace.vouched import check_vouched

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
    is_encrypted: bool = False
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


def edit(root: Path, path: str, start: int, end: int, text: str, *, seen: str | Excerpt, rules: FilesConfig) -> Excerpt:
    """Replace lines `start` to `end` (1-based, inclusive) of a note by `text` if they still are what the caller saw.

    `seen` is the `hash` of these lines, or at least its first 12 digits; or an excerpt that shows them, all of whose
    lines must be unchanged. The byte order mark, the kind of newlines and a missing newline at the end are preserved. A
    newline at the end of `text` ends its last line and starts no other. The vector of a document, which is shown as
    `…`, is kept where the line that shows it is written back unchanged. Returns the new lines.

    Raises:
        ConflictError: The lines have changed. Nothing was written.
        PolicyError: A rule says never to store the text. Nothing was written.
        InvalidInputError: The range, the text or `seen` is invalid; or a secret, which is shown masked, would be lost
            or revealed.
        NotFoundError: There is no such file, or no such line.
        PathNotAllowedError: The path is not a memory file, is a transcript, or is outside the workspace.
        UndecodableError: The file is not text.
        UndecryptableError: The file is encrypted, and cannot be decrypted.
        WriteError: It could not be written, or is text in another encoding than UTF-8. The file is unchanged.
    """
    wanted = checked_text(text, "the text to write")
    if not wanted:
        raise InvalidInputError("the text to write is empty: delete the lines instead")
    return _changed(root, path, start, end, wanted, seen, rules)


def delete(root: Path, path: str, start: int, end: int, *, seen: str | Excerpt, rules: FilesConfig) -> None:
    """Remove lines `start` to `end` (1-based, inclusive) of a note if they still are what the caller saw.

    Raises:
        ConflictError, InvalidInputError, NotFoundError, PathNotAllowedError, UndecodableError, WriteError: As `edit`.
    """
    _changed(root, path, start, end, "", seen, rules)


def promote(
    root: Path,
    path: str,
    start: int,
    end: int,
    *,
    section: str | None = None,
    seen: str | Excerpt | None = None,
    rules: FilesConfig,
) -> Excerpt:
    """Copy lines `start` to `end` (1-based, inclusive) of a note to `MEMORY.md` and return the lines there.

    They are added at the end of the section below the heading `section`, which is created if need be, or at the end of
    the file. Lines that are already there, one after the other, are not added again: the excerpt then has `existed`
    set.

    Raises:
        InvalidInputError: The range, the section or `seen` is invalid, the lines hold a secret, which stays where it
            is, they are front matter of a document, or they are encrypted and `MEMORY.md` is not.
        OriginError: They come from outside: a quotation with its source, or a document whose `origin` is "external".
        SignatureError: They are of a record that no signature vouches for.
        PolicyError: A rule says never to store them. Nothing was written.
        ConflictError, NotFoundError, PathNotAllowedError, UndecodableError, WriteError: As `edit`.
    """
    source, target = locate(root, rules, path), locate(root, rules, long_term_path(root))
    if source.path == target.path:
        raise InvalidInputError(f"{source.path} is the long-term memory itself: name lines of another note")
    title = None if section is None else checked_text(" ".join(section.split()).lstrip("# "), "the section")
    if title == "":
        raise InvalidInputError("the section is empty: name a heading, or none")
    policies = policies_of(rules)
    with writing(root, target.path, rules):
        own = _read(source, rules)
        kept = _lines_to_keep(own, start, end, seen, rules)
        policies.check(None, "\n".join([*([title] if title else []), *kept]))
        try:
            note = _read(target, rules)
        except NotFoundError:
            note = _Note(target, is_encrypted=target.path.endswith(ENCRYPTED))
        if own.is_encrypted and not note.is_encrypted:
            raise InvalidInputError(
                f"{source.path} is encrypted and {target.path} is not, which would hold its lines in the open: encrypt "
                f"that file first, with `openclaw-memory encrypt {target.path}`"
            )
        if (first := find_block(note.lines, kept)) is not None:
            return excerpt_of_lines(
                target.path, note.lines, first, len(kept), existed=True, policies=policies_of(rules)
            )
        lines, first = _with_kept(note, kept, title)
        text = note.text(lines)
        _write(note, text, rules)
    return excerpt_of_lines(target.path, split_lines(text), first, len(kept), policies=policies)


def _changed(
    root: Path, path: str, start: int, end: int, text: str, seen: str | Excerpt, rules: FilesConfig
) -> Excerpt:
    place = _writable(root, path, rules)
    with writing(root, place.path, rules):
        note = _read(place, rules)
        _check_seen(note, start, end, seen, text, rules)
        new = note.styled(split_lines(text))
        lines = with_vector([*note.lines[: start - 1], *new, *note.lines[end:]], note.lines)
        _check_masks(note, start, end, text, lines, rules)
        changed = note.text(lines)
        if text:
            policies_of(rules).check(about_in(changed), text)
        _write(note, changed, rules)
    return excerpt_of_lines(place.path, split_lines(changed), start - 1, len(new), policies=policies_of(rules))


def _writable(root: Path, path: str, rules: FilesConfig) -> Place:
    if unencrypted(path.strip()).endswith(".jsonl"):
        raise PathNotAllowedError(f"{path!r} is a transcript, which only grows: change notes instead")
    place = locate(root, rules, path)
    if place.base != str(root):
        raise PathNotAllowedError(f"{path!r} lies outside of the workspace, where files are only read: edit it there")
    if is_of_the_agent(root, place.path):
        raise PathNotAllowedError(f"{path!r} is the agent's own, and is only read: edit it in an editor")
    return place


def _read(place: Place, rules: FilesConfig) -> _Note:
    raw, info = read_as_it_is(place, rules)
    data = decrypted(raw, place.path, rules)
    if is_utf16(data):
        raise WriteError(f"{place.path} is UTF-16: save it as UTF-8 first")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if (encoding := other_encoding(data)) is not None:
            raise WriteError(f"{place.path} is {encoding}, which is only read: save it as UTF-8 first") from error
        raise UndecodableError(f"{place.path} is not text in UTF-8 (byte {error.start}): save it as UTF-8") from error
    mark = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    ends_line = not body or body.endswith("\n")
    return _Note(place, split_lines(body), mark, ends_line, is_encrypted=is_encrypted(raw), info=info)


def _write(note: _Note, text: str, rules: FilesConfig) -> None:
    path, info = note.place.path, note.info
    data = (note.mark + text).encode()
    if len(data) > rules.max_bytes:
        raise WriteError(f"{path} would grow beyond files.max_bytes ({rules.max_bytes:,}) and never be read again")
    if info is not None and info.st_nlink > 1:
        raise WriteError(f"{path} has {info.st_nlink} hard links, which a change would part: copy it first")
    written = as_written(data, note.place, rules, is_there=info is not None)
    replace_file(note.place.base, note.place.parts, written, info)


def _check_seen(note: _Note, start: int, end: int, seen: str | Excerpt, proposed: str, rules: FilesConfig) -> None:
    path, count = note.place.path, len(note.lines)
    _check_range(start, end)
    first, last, digest = start, end, seen.hash if isinstance(seen, Excerpt) else seen
    if not isinstance(digest, str) or not _SHORT_HASH.fullmatch(digest):
        raise InvalidInputError(
            f"seen must be an excerpt or its hash, at least 12 digits of it, not {seen!r}: read the lines"
        )
    if isinstance(seen, Excerpt):
        first, last = seen.start_line, seen.end_line
        if seen.path != path or start < first or end > last:
            raise InvalidInputError(
                f"lines {start} to {end} of {path} are not in the excerpt {seen.citation}: read them"
            )
    if not hash_of("\n".join(note.lines[first - 1 : last])).startswith(digest.lower()):
        raise _conflict(note, start, end, seen, proposed, rules)
    if end > count:
        raise NotFoundError(f"{path} has {count} lines, none numbered {end}: read it again")


def _check_masks(note: _Note, start: int, end: int, proposed: str, changed: Sequence[str], rules: FilesConfig) -> None:
    """Refuse to write a mask back, which would lose the secret, or to split a key, which would reveal the rest."""
    shown, after = masked_lines(note.lines), masked_lines(changed)
    seen = masked_lines(note.lines, policies_of(rules))[start - 1 : end]
    for line, safe in zip(note.lines[start - 1 : end], seen, strict=True):
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
    note: _Note, start: int, end: int, seen: str | Excerpt, proposed: str, rules: FilesConfig
) -> ConflictError:
    path, shown = note.place.path, shown_lines(note.lines, policies_of(rules))
    current, digest = "\n".join(shown[start - 1 : end]), hash_of("\n".join(note.lines[start - 1 : end]))
    message = (
        f"lines {start} to {end} of {path} are not what you saw, and were not changed: "
        f"look at them as they are now, whose hash is {digest[:12]}\n--- what is there now\n{current}"
    )
    if proposed:
        message += f"\n--- what you wanted to write\n{proposed}"
    if isinstance(seen, Excerpt):
        now = shown[seen.start_line - 1 : seen.end_line]
        rows = difflib.unified_diff(seen.text.split("\n"), now, "seen", "now", lineterm="")
        message += "\n" + "\n".join(rows)
    return ConflictError(message, path=path, start_line=start, current=current, proposed=proposed, hash=digest)


def _lines_to_keep(note: _Note, start: int, end: int, seen: str | Excerpt | None, rules: FilesConfig) -> list[str]:
    if seen is not None:
        _check_seen(note, start, end, seen, "", rules)
    _check_range(start, end)
    if end > len(note.lines):
        raise NotFoundError(f"{note.place.path} has {len(note.lines)} lines, none numbered {end}: read it again")
    file = "\n".join(note.lines)
    check_vouched(Path(note.place.base), note.place.path, file)
    _check_origin(note, file, start, end)
    if start <= (above := file[: front_matter_end(file)].count("\n")):
        raise InvalidInputError(
            f"the first {above} lines of {note.place.path} are front matter of a document, not memory: name "
            "lines below them"
        )
    lines, policies = note.lines[start - 1 : end], policies_of(rules)
    policies.check(about_in(file), "\n".join(lines))
    if masked_lines(note.lines, policies)[start - 1 : end] != lines:
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
    if (said is not None and is_external(said.fields)) or source_of(note.lines, start, end) is not None:
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
    for block in blocks(lines):
        if block.kind != "heading":
            continue
        own_level, title = title_of(lines, block)
        if level is not None and own_level <= level:
            return block.first
        if level is None and title.casefold() == section.casefold():
            level = own_level
    return None if level is None else len(lines)
