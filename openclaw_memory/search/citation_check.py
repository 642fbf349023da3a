"""Check that files hold the text that is cited from them, so that no false or outdated text is shown."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from msgspec.structs import replace

from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.search.lines import Outline, parse_outline
from openclaw_memory.text.policies import Policies, mask_note
from openclaw_memory.types import FileRecord, SearchResult
from openclaw_memory.types.files import LEFT_OUT, Span

if TYPE_CHECKING:
    from typing import TypeAlias

    from openclaw_memory.types import Store
    from openclaw_memory.workspace import Workspace

    Stamp: TypeAlias = tuple[int, int, int, int, int]

# Characters of notes that are kept, and of one of them. A file that was written so long ago does not change without
# another stamp.
MAX_CHARS, MAX_NOTE_CHARS, SETTLED_SECONDS = 4 << 20, 1 << 20, 3.0
MASK = re.compile(r"\*\*\*|…")  # what `redact` leaves of a secret


class CitationChecker:
    """Checks results against the files of a workspace, and keeps the notes that it read last. Thread-safe."""

    def __init__(self, workspace: Workspace, store: Callable[[], Store]) -> None:
        """Check nothing yet.

        Args:
            workspace: The files.
            store: Returns the index; called only where a text is not simply there.
        """
        self._workspace, self._store, self._root = workspace, store, str(workspace.root)
        self._notes: dict[str, tuple[Stamp, _Note]] = {}
        self._chars = 0  # of the notes

    def verify(self, results: Sequence[SearchResult]) -> tuple[tuple[SearchResult, ...], set[str], str | None]:
        """Return the results that their files still hold, the files of the others, and why some are left out.

        A text that has moved within its note since it was indexed is cited by its present lines; its file is among the
        others too.
        """
        # A large note, and a long line, bring several results.
        records = cache(lambda: self._store().get_files())
        notes, talk = cache(self._read_note), cache(lambda *place: _join_words(self._workspace.render_lines(*place)))
        verified: list[SearchResult] = []
        lost: list[str] = []
        for result in results:
            try:
                if result.source == "sessions":
                    text = talk(result.path, result.start_line, result.end_line)
                    present = result if _has_text(text, result.snippet) else None
                else:
                    present = _find_in_note(result, notes(result.path), records)
            except (OpenClawMemoryError, OSError):  # what cannot be read cannot be cited
                present = None
            if present is None:
                lost.append(result.path)
            else:
                verified.append(present)
        doubtful = {result.path for result in results if result not in verified}
        if not lost:
            return tuple(verified), doubtful, None
        count = f"{len(lost)} result{'s were' if len(lost) > 1 else ' was'} left out"
        files = ", ".join(sorted(set(lost)))
        return tuple(verified), doubtful, f"{count}: {files} no longer holds the text, and is indexed again"

    def read_outline(self, path: str) -> Outline | None:
        """Return the outline of a note as it is now; None if it is large, or cannot be read."""
        try:
            note = self._read_note(path)
        except (OpenClawMemoryError, OSError):
            return None
        return note.outline if len(note.text) <= MAX_NOTE_CHARS else None

    def _read_note(self, path: str) -> _Note:
        """Return a note, read again only if its stamp has changed or is too new to tell."""
        stamp = _read_stamp(os.path.join(self._root, path))  # pathlib takes as long as all else
        known_stamp, note = self._notes.get(path, (None, None))
        if note is not None and known_stamp == stamp:
            return note
        note = _Note(path, self._workspace.read(path), self._workspace.policies)
        if stamp is not None and len(note.text) <= MAX_NOTE_CHARS:
            if self._chars > MAX_CHARS:
                self._notes, self._chars = {}, 0
            self._notes[path] = stamp, note
            self._chars += len(note.text)
        return note


def _read_stamp(path: str) -> Stamp | None:
    """Return the values that tell two states of a file apart; None if a later write could leave the same."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    is_settled = time.time() - max(info.st_mtime, info.st_ctime) > SETTLED_SECONDS
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns) if is_settled else None


class _Note:
    """The text of a note, read once for all results from it."""

    def __init__(self, path: str, text: str, policies: Policies) -> None:
        self._path, self._file, self._policies = path, text, policies
        self.text = policies.mask(text)  # an index of other rules may say more

    @cached_property
    def plain(self) -> str:
        """The text without CR, between two line ends."""
        return "\n{}\n".format(self.text.replace("\r\n", "\n") if "\r" in self.text else self.text)

    @cached_property
    def hash(self) -> str:
        return sha256(self._file.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def indexed(self) -> str:
        """The text without the parts that are not indexed: secrets, recalled text, comments."""
        return mask_note(self._file, self._policies)

    @cached_property
    def outline(self) -> Outline:
        return parse_outline(self._path, self.indexed)

    def join_lines(self, first: int, last: int, *, as_indexed: bool) -> str:
        """Return the lines from `first` to `last`, 1-based, as one."""
        lines = (self.indexed if as_indexed else self.text).split("\n")
        return _join_words(lines[first - 1 : last])


def _find_in_note(
    result: SearchResult, note: _Note, records: Callable[[], Mapping[str, FileRecord]]
) -> SearchResult | None:
    """Return the result if its text is in the note; else None."""
    runs = result.snippet.split(LEFT_OUT)
    spans = _find_runs(runs, result.spans, note.plain) if len(runs) == len(result.spans) else []
    starts = [start for start, _ in spans]
    if starts == [start for start, _ in result.spans]:
        return result
    record = records().get(result.path)
    if record is not None and record.hash == note.hash and _has_lines(note, result, runs):
        return result
    if len(spans) < len(runs):
        return None
    return replace(result, start_line=spans[0][0], end_line=spans[-1][1], spans=tuple(spans))


def _find_runs(runs: Sequence[str], spans: Sequence[Span], text: str) -> list[Span]:
    """Return the present places of runs of lines, one below the other, each as near as can be to its span."""
    places: list[Span] = []
    below = moved = 0
    for run, (first, _) in zip(runs, spans, strict=True):
        starts = [line for line in _find_lines(text, run) if line > below]
        if not starts:
            break
        start = min(starts, key=lambda line: abs(line - first - moved))
        below, moved = start + run.count("\n"), start - first
        places.append((start, below))
    return places


def _find_lines(text: str, snippet: str) -> Iterator[int]:
    """Yield the numbers of the lines where the snippet begins, as whole lines; the text is between two line ends."""
    # Between line ends too: in a long line the same words may come again and again.
    lines = f"\n{snippet}\n"
    line, counted, at = 1, 0, text.find(lines) if snippet else -1
    while at >= 0:
        line, counted = line + text.count("\n", counted, at), at
        yield line
        at = text.find(lines, at + 1)


def _has_lines(note: _Note, result: SearchResult, runs: Sequence[str]) -> bool:
    """Return whether the cited lines hold the text, each run in its span, apart from parts that are not indexed."""
    places = list(zip(result.spans, runs, strict=False))
    if len(runs) != len(result.spans):  # pieces of a long line, or lines that read as what is left out
        places = [((result.start_line, result.end_line), result.snippet)]
    return any(
        all(_has_text(note.join_lines(*span, as_indexed=indexed), run) for span, run in places)
        for indexed in (False, True)
    )


def _join_words(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def _has_text(text: str, snippet: str) -> bool:
    """Return whether lines, as one, hold all parts of a snippet in their order; blanks and masks may differ."""
    at = 0
    for line in snippet.split("\n"):
        for part in MASK.split(_join_words([line])):
            place = text.find(part.strip(), at)
            if place < 0:
                return False
            at = place + len(part.strip())
    return True
