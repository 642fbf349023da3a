"""Match phrases exactly: in chunks, and in the lines of results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from openclaw_memory.search.lines import split_lines
from openclaw_memory.search.ranking import has_line_in
from openclaw_memory.text.terms import fold, is_run
from openclaw_memory.types import SearchResult, StoredChunk


def show_phrases(
    results: Sequence[SearchResult], chunks: Iterable[StoredChunk], phrases: Iterable[str]
) -> list[SearchResult]:
    """Return results that show the phrases: those that do, and of other chunks the lines with the phrases.

    Args:
        results: The results, best first.
        chunks: The chunks that they come from, each of which holds the phrases.
        phrases: The phrases.
    """
    patterns = tuple(map(compile_phrase, phrases))
    matching = [result for result in results if has_phrases(result.snippet, patterns)]
    for stored in chunks:
        if any(has_line_in(result, stored) for result in matching):
            continue
        own = (result for result in results if has_line_in(result, stored))
        best = max(own, key=lambda result: result.score, default=None)
        first, last, snippet = _find_shortest(stored, patterns)
        score = best.score if best else min((result.score for result in results), default=0.0)
        parts: Mapping[str, float] = best.parts if best else {}
        confidence = best.confidence if best else "weak"
        matching.append(
            SearchResult(stored.path, first, last, score, snippet, stored.source, parts, confidence=confidence)
        )
    return sorted(matching, key=lambda result: -result.score)


def _find_shortest(stored: StoredChunk, patterns: Iterable[re.Pattern[str]]) -> tuple[int, int, str]:
    """Return the fewest lines of a chunk, one after the other, that hold the phrases: first, last, and their text."""
    lines = split_lines([stored])
    for count in range(1, len(lines) + 1):
        for at in range(len(lines) - count + 1):
            text = "\n".join(line.text for line in lines[at : at + count])
            if has_phrases(text, patterns):
                return lines[at].number, lines[at + count - 1].number, text
    return stored.chunk.start_line, stored.chunk.end_line, stored.chunk.text


def has_phrases(text: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    """Return whether a text holds each phrase.

    Args:
        text: The text.
        patterns: The phrases, as `compile_phrase` returns them.
    """
    folded = fold(text)
    return all(pattern.search(folded) for pattern in patterns)


def compile_phrase(phrase: str) -> re.Pattern[str]:
    """Compile a phrase to a pattern of folded text: case, accents, punctuation and line breaks do not count.

    In a script without spaces a phrase may begin and end anywhere.

    Args:
        phrase: The phrase, which has a letter or a digit.
    """
    parts = re.findall(r"[^\W_]+", fold(phrase))
    start = "" if is_run(parts[0][0]) else r"(?<![^\W_])"
    end = "" if is_run(parts[-1][-1]) else r"(?![^\W_])"
    return re.compile(start + r"[\W_]+".join(map(re.escape, parts)) + end)
