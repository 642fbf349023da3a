"""Check that a file says what is cited from it, so that a false or outdated text is never shown as its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from openclaw_memory import _forks
from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.text.policies import Policies, mask_note
from openclaw_memory.types import FileRecord, SearchResult
from openclaw_memory.types.files import LEFT_OUT, Span

if TYPE_CHECKING:
    from openclaw_memory.workspace import Workspace

MASK = re.compile(r"\*\*\*|…")  # what `redact` leaves of a secret


def checked(
    results: Sequence[SearchResult], workspace: Workspace, known: Callable[[], Mapping[str, FileRecord]]
) -> tuple[list[SearchResult], list[SearchResult]]:
    """Return the results whose text is in their files, and the others.

    A text that has moved within its note since it was indexed is cited by its present lines.

    Args:
        results: The results of a search.
        workspace: The files.
        known: Returns what the index knows of the files; asked only where a text is not simply there.
    """
    # A large note, and a long line, bring several results.
    records = cache(known)
    notes = cache(lambda path: _Note(workspace.read(path), workspace.policies))
    talk = cache(lambda *place: _in_one_line(workspace.render_lines(*place)))

    kept: list[SearchResult] = []
    lost: list[SearchResult] = []
    for result in results:
        try:
            if result.source == "sessions":
                said = talk(result.path, result.start_line, result.end_line)
                found = result if _says(said, result.snippet) else None
            else:
                found = _in_note(result, notes(result.path), records)
        except (OpenClawMemoryError, OSError):  # what cannot be read cannot be cited
            found = None
        if found is None:
            lost.append(result)
        else:
            kept.append(found)
    return kept, lost


class _Note:
    """What a note says, read once for all results from it."""

    def __init__(self, text: str, policies: Policies) -> None:
        self._file, self._policies = text, policies
        self.text = policies.mask(text)  # an index of other rules may say more
        self._said: dict[tuple[int, int, bool], str] = {}

    @_forks.cached_property
    def plain(self) -> str:
        """The text without CR, between two line ends."""
        return "\n{}\n".format(self.text.replace("\r\n", "\n") if "\r" in self.text else self.text)

    @_forks.cached_property
    def hash(self) -> str:
        return sha256(self._file.encode("utf-8", "surrogatepass")).hexdigest()

    @_forks.cached_property
    def indexed(self) -> str:
        """The text without what the index leaves out: secrets, recalled text, comments."""
        return mask_note(self._file, self._policies)

    def said(self, first: int, last: int, *, as_indexed: bool) -> str:
        """Return the lines from `first` to `last`, 1-based, as one."""
        key = first, last, as_indexed
        if key not in self._said:
            lines = (self.indexed if as_indexed else self.text).split("\n")
            self._said[key] = _in_one_line(lines[first - 1 : last])
        return self._said[key]


def _in_note(result: SearchResult, note: _Note, known: Callable[[], Mapping[str, FileRecord]]) -> SearchResult | None:
    """Return the result if its text is in the note; else None."""
    runs = result.snippet.split(LEFT_OUT)
    spans = _places(runs, result.spans, note.plain) if len(runs) == len(result.spans) else []
    starts = [start for start, _ in spans]
    if starts == [start for start, _ in result.spans]:
        return result
    record = known().get(result.path)
    if record is not None and record.hash == note.hash and _says_at(note, result, runs):
        return result
    if len(spans) < len(runs):
        return None
    return replace(result, start_line=spans[0][0], end_line=spans[-1][1], spans=tuple(spans))


def _places(runs: Sequence[str], spans: Sequence[Span], text: str) -> list[Span]:
    """Return where the runs of lines are now, one below the other, each as near as can be to where it is expected."""
    found: list[Span] = []
    below = moved = 0
    for run, (first, _) in zip(runs, spans, strict=True):
        starts = [line for line in _lines_with(text, run) if line > below]
        if not starts:
            break
        start = min(starts, key=lambda line: abs(line - first - moved))
        below, moved = start + run.count("\n"), start - first
        found.append((start, below))
    return found


def _lines_with(text: str, snippet: str) -> Iterator[int]:
    """Yield the numbers of the lines where the snippet begins, as whole lines; the text is between two line ends."""
    # Between line ends too: in a long line the same words may be found again and again.
    wanted = f"\n{snippet}\n"
    line, counted, at = 1, 0, text.find(wanted) if snippet else -1
    while at >= 0:
        line, counted = line + text.count("\n", counted, at), at
        yield line
        at = text.find(wanted, at + 1)


def _says_at(note: _Note, result: SearchResult, runs: Sequence[str]) -> bool:
    """Return whether the cited lines say it, each run in its span, but for what the index leaves out."""
    said = list(zip(result.spans, runs, strict=False))
    if len(runs) != len(result.spans):  # pieces of a long line, or lines that read as what is left out
        said = [((result.start_line, result.end_line), result.snippet)]
    return any(all(_says(note.said(*span, as_indexed=indexed), run) for span, run in said) for indexed in (False, True))


def _in_one_line(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def _says(said: str, snippet: str) -> bool:
    """Return whether lines, as one, hold all parts of a snippet in their order; blanks and masks may differ."""
    at = 0
    for line in snippet.split("\n"):
        for part in MASK.split(_in_one_line([line])):
            found = said.find(part.strip(), at)
            if found < 0:
                return False
            at = found + len(part.strip())
    return True
