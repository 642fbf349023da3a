"""Check that a file says what is cited from it, so that a false or outdated text is never shown as its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from openclaw_memory.errors import OpenClawMemoryError
from openclaw_memory.text.fence import without_fenced
from openclaw_memory.text.front_matter import front_matter_end
from openclaw_memory.text.redaction import redact
from openclaw_memory.types import FileRecord, SearchResult

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
    records = cache(known)

    @cache  # a large note brings several results
    def read(path: str) -> tuple[str, str]:
        text = workspace.read(path)
        return text, text.replace("\r\n", "\n") if "\r" in text else text

    kept: list[SearchResult] = []
    lost: list[SearchResult] = []
    for result in results:
        try:
            if result.source == "sessions":
                lines = workspace.said(result.path, result.start_line, result.end_line)
                found = result if _says(lines, result.snippet) else None
            else:
                found = _in_note(result, *read(result.path), records)
        except (OpenClawMemoryError, OSError):  # what cannot be read cannot be cited
            found = None
        if found is None:
            lost.append(result)
        else:
            kept.append(found)
    return kept, lost


def _in_note(
    result: SearchResult, text: str, plain: str, known: Callable[[], Mapping[str, FileRecord]]
) -> SearchResult | None:
    """Return the result if its text is in the note, which is given with CR and without; else None."""
    nearest = None
    for line in _lines_with(plain, result.snippet):
        if line == result.start_line:
            return result
        if nearest is None or abs(line - result.start_line) < abs(nearest - result.start_line):
            nearest = line
        if line > result.start_line:
            break
    if _is_as_indexed(text, known().get(result.path)) and _says_at(text, result):
        return result
    if nearest is None:
        return None
    return replace(result, start_line=nearest, end_line=nearest + result.snippet.count("\n"))


def _lines_with(text: str, snippet: str) -> Iterator[int]:
    """Yield the numbers of the lines where the snippet begins, as whole lines."""
    line, counted, at = 1, 0, text.find(snippet) if snippet else -1
    while at >= 0:
        line, counted = line + text.count("\n", counted, at), at
        if (at == 0 or text[at - 1] == "\n") and text[at + len(snippet) : at + len(snippet) + 1] in {"", "\n"}:
            yield line
        at = text.find(snippet, at + 1)


def _is_as_indexed(text: str, record: FileRecord | None) -> bool:
    return record is not None and sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == record.hash


def _says_at(text: str, result: SearchResult) -> bool:
    """Return whether the cited lines say it but for what the index leaves out: secrets, recalled text, comments."""
    first, last = result.start_line - 1, result.end_line
    if _says(text.split("\n")[first:last], result.snippet):
        return True
    above = front_matter_end(text)
    indexed = text[:above] + redact(without_fenced(text[above:]))
    return _says(indexed.split("\n")[first:last], result.snippet)


def _says(lines: Sequence[str], snippet: str) -> bool:
    """Return whether the lines hold all parts of a snippet in their order; blanks and masks may differ."""
    said, at = " ".join(" ".join(lines).split()), 0
    for line in snippet.split("\n"):
        for part in MASK.split(" ".join(line.split())):
            found = said.find(part.strip(), at)
            if found < 0:
                return False
            at = found + len(part.strip())
    return True
