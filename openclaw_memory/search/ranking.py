"""Score and order results: formulas of fusion, decay and MMR (diversity), and the selection.

The formulas are OpenClaw's (2026.9) if it has one; deliberate differences are listed in
`docs/explanation/differences.md`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from openclaw_memory.text.days import get_chunk_day
from openclaw_memory.text.utf16 import measure_utf16
from openclaw_memory.types import SearchResult, StoredChunk
from openclaw_memory.workspace.paths import rank_path_match

if TYPE_CHECKING:
    from openclaw_memory.config.sections import SearchConfig

Item = TypeVar("Item")

# OpenClaw's lexical boosts: whole-word coverage, density, words in the path, and length.
COVERAGE_BOOST = 0.45
DENSITY_BOOST = 0.2
PATH_BOOST = 0.18
LENGTH_BOOST = 0.18
FULL_LENGTH_CHARS = 160
UNRANKED_SCORE = 0.001

# Names in `SearchResult.parts` of the scores of keyword and vector search; results made of lines have neither.
TEXT_SCORE, VECTOR_SCORE = "text_score", "vector_score"
# Names there of the share of a score, 0..1, that comes from vectors, and of the factor that age has left of it.
VECTOR_SHARE, DECAY = "vector_share", "decay"
# Name there of what the likeness to a task has brought to a score, before age.
TASK = "task"

SECONDS_A_DAY = 86_400


def scale_bm25(rank: float) -> float:
    """Return SQLite's bm25(), which is negative for a match and lower for a better one, as a score in (0, 1).

    The score is r/(1+r) with r = -rank, OpenClaw's 1/(1+rank) for other ranks, and 0.001 for infinities and NaN.
    """
    if not math.isfinite(rank):
        return UNRANKED_SCORE
    return -rank / (1 - rank) if rank < 0 else 1 / (1 + rank)


def boost_keyword_score(query: str, path: str, text: str, score: float) -> float:
    """Return a keyword score with OpenClaw's boosts for whole words, their density, path and length; 0..1."""
    query_words = list(dict.fromkeys(_fold_words(query)))
    if not query_words:
        return score
    words = set(_fold_words(text))
    present = sum(word in words for word in query_words)
    place = unicodedata.normalize("NFC", path).lower()
    boost = COVERAGE_BOOST * present / len(query_words) + (DENSITY_BOOST * present / len(words) if words else 0.0)
    boost += PATH_BOOST * sum(word in place for word in query_words)
    boost += min(measure_utf16(text) / FULL_LENGTH_CHARS, LENGTH_BOOST)
    return min(1.0, score + boost)


def to_z_scores(values: Mapping[int, float], ids: Sequence[int]) -> list[float]:
    """Return the z-scores of the values of these ids; a missing one counts as the smallest of all values and 0."""
    if not ids:
        return []
    floor = min([0.0, *values.values()])
    filled = [values.get(at, floor) for at in ids]
    mean = math.fsum(filled) / len(filled)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in filled) / len(filled))
    return [(value - mean) / deviation if deviation > 1e-12 else 0.0 for value in filled]


def merge_scores(
    vector: Mapping[Item, float], keyword: Mapping[Item, float], vector_weight: float, text_weight: float
) -> dict[Item, float]:
    """Return the weighted sum of the two scores of each item; a search that did not find it counts 0."""
    return {
        item: vector_weight * vector.get(item, 0.0) + text_weight * keyword.get(item, 0.0)
        for item in dict.fromkeys((*vector, *keyword))
    }


def share_of_vector(vector: float, keyword: float) -> float:
    """Return the share of `vector` in `vector + keyword`, 0..1; negative parts count as 0, and the share in 0 is 0."""
    gained = max(vector, 0.0) + max(keyword, 0.0)
    return max(vector, 0.0) / gained if gained > 0 else 0.0


def decay_score(score: float, age_days: float, half_life_days: float) -> float:
    """Return a score halved for every half-life of age, unchanged if age or half-life is not finite and positive."""
    if not math.isfinite(age_days) or not math.isfinite(half_life_days) or half_life_days <= 0:
        return score
    return score * math.exp(-math.log(2) / half_life_days * max(0.0, age_days))


def apply_age(
    results: Iterable[SearchResult], chunks: Sequence[StoredChunk], half_life_days: float, now: datetime
) -> list[SearchResult]:
    """Return results with scores that have fallen with their age; without a day they have not."""
    aged = []
    for result in results:
        own = next((stored for stored in chunks if has_line_in(result, stored)), None)
        day = get_chunk_day(result.path, own.chunk.metadata if own else {})
        if day is not None:
            midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
            share = decay_score(1.0, (now - midnight).total_seconds() / SECONDS_A_DAY, half_life_days)
            result = replace(result, score=result.score * share, parts={**result.parts, DECAY: share})  # noqa: PLW2901
        aged.append(result)
    return aged


TASK_WEIGHT = 0.1  # of the likeness of a result to the task; the score of before counts the remaining share


def apply_task(
    results: Sequence[SearchResult], chunks: Sequence[StoredChunk], similarities: Mapping[int, float]
) -> list[SearchResult]:
    """Return results with scores that count their likeness to a task; their order stays.

    The likeness is that of the nearest chunk that a result has lines of. It counts as a share of the best score, which
    no new score is above: a task makes no result of a search that has found nothing good.

    Args:
        results: The results, before age and threshold.
        chunks: The chunks that they come from.
        similarities: How near these are to the task, by id, 0..1; those without a vector are left out.
    """
    best = max((result.score for result in results), default=0.0)
    changed = []
    for result in results:
        own = [stored.id for stored in chunks if has_line_in(result, stored)]
        part = TASK_WEIGHT * best * max((similarities.get(at, 0.0) for at in own), default=0.0)
        score = (1 - TASK_WEIGHT) * result.score + part
        changed.append(replace(result, score=score, parts={**result.parts, TASK: part}))
    return changed


def order_results(results: Iterable[SearchResult], query: str, mmr_lambda: float | None) -> list[SearchResult]:
    """Return results in their final order: by score, or by MMR if `mmr_lambda` is given.

    If the query is the name of a file, results from that file come first, with score 1.

    Args:
        results: The results.
        query: The query.
        mmr_lambda: The weight of relevance against diversity, 0..1, or None.
    """
    ordered = sorted(results, key=_sort_key)
    tiers = {result.path: _name_tier(query, result) for result in ordered}
    exact = [result for result in ordered if tiers[result.path]]
    first = [replace(result, score=1.0, confidence="strong", parts={**result.parts, DECAY: 1.0}) for result in exact]
    last = [result for result in ordered if not tiers[result.path]]
    if mmr_lambda is not None:
        last = rank_by_mmr(last, mmr_lambda, lambda result: result.score, lambda result: result.snippet)
    return sorted(first, key=lambda result: -tiers[result.path]) + last


def select_results(
    results: Sequence[SearchResult], settings: SearchConfig, max_share: float, *, fill: bool = True
) -> list[SearchResult]:
    """Return the results at or above the threshold; free places go to chunks that keyword search found.

    These are the ones that keyword search alone found, or all where nothing reaches the threshold. A threshold for a
    sum of two scores would drop every chunk that only one search found, however well it matches.

    Args:
        results: The results, best first.
        settings: The threshold `min_score`, and `max_results`.
        max_share: The share of transcripts, 0..1, unless notes leave places free.
        fill: Whether free places go to chunks below the threshold.
    """
    limit = settings.max_results
    strict = [result for result in results if result.score >= settings.min_score]
    if not fill:
        return _share_places(strict, limit, max_share)
    matching = [result for result in results if result.parts.get(TEXT_SCORE, 0.0) > 0 and result.score >= 0]
    if not strict:
        return _share_places(matching, limit, max_share)
    below = (result for result in matching if result.score < settings.min_score)
    spare = [result for result in below if result.parts.get(VECTOR_SCORE) == 0]
    return (_share_places(strict, limit, max_share) + spare)[:limit]


def has_common_line(first: SearchResult, second: SearchResult) -> bool:
    """Return whether two results share a line."""
    return first.path == second.path and any(
        start <= second_end and second_start <= end
        for start, end in first.spans
        for second_start, second_end in second.spans
    )


def has_line_in(result: SearchResult, stored: StoredChunk) -> bool:
    """Return whether a result has a line of a chunk."""
    chunk = stored.chunk
    return result.path == stored.path and any(
        start <= chunk.end_line and chunk.start_line <= end for start, end in result.spans
    )


def _share_places(results: Sequence[SearchResult], limit: int, max_share: float) -> list[SearchResult]:
    """Return the first `limit` results, with at most the share of transcripts and the places that notes leave free."""
    notes = sum(result.source == "memory" for result in results)
    share = max(math.floor(limit * max_share), math.ceil(max_share))
    room = {"memory": limit, "sessions": max(share, limit - notes)}
    selected: list[SearchResult] = []
    for result in results:
        if room[result.source] > 0 and len(selected) < limit:
            room[result.source] -= 1
            selected.append(result)
    return selected


def _sort_key(result: SearchResult) -> tuple[float, float, str, int, int]:
    return (-result.score, -result.parts.get(TEXT_SCORE, 0.0), result.path, result.start_line, result.end_line)


def _name_tier(query: str, result: SearchResult) -> int:
    """Return how exactly the query names the file; a single word that is the id of a session names no transcript."""
    tier = rank_path_match(query, result.path)
    return tier if result.source == "memory" or tier > 1 else 0


def _fold_words(text: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFC", text).lower())


def rank_by_mmr(
    items: Sequence[Item], relevance: float, score: Callable[[Item], float], text: Callable[[Item], str]
) -> list[Item]:
    """Return items by maximal marginal relevance: relevance * score - (1 - relevance) * similarity to earlier ones.

    Carbonell & Goldstein (1998), with scores scaled to 0..1 and Jaccard similarity of words.

    Args:
        items: The items.
        relevance: The weight of the score, clamped to 0..1; 1 sorts by score.
        score: Returns the score of an item; infinities and NaN rank last.
        text: Returns the text of an item.
    """
    weight = min(1.0, max(0.0, relevance))
    raw = [value if math.isfinite(value) else -math.inf for value in map(score, items)]
    remaining = sorted(range(len(items)), key=lambda at: -raw[at])
    if weight == 1.0 or len(items) < 2:
        return [items[at] for at in remaining]
    finite = [value for value in raw if value > -math.inf] or [0.0]
    low, spread = min(finite), max(finite) - min(finite)
    scaled = [0.0 if value == -math.inf else (value - low) / spread if spread else 1.0 for value in raw]
    texts = [_normalise(text(item)) for item in items]
    words = list(map(split_mmr_words, texts))
    closest = [0.0] * len(items)  # similarity to the most alike of those in `order`
    order: list[int] = []
    while remaining:
        best = max(remaining, key=lambda at: (weight * scaled[at] - (1 - weight) * closest[at], raw[at]))
        order.append(best)
        remaining.remove(best)
        for at in remaining:
            closest[at] = max(closest[at], compare_texts(texts[at], texts[best], words[at], words[best]))
    return [items[at] for at in order]


def compare_texts(first: str, second: str, first_words: frozenset[str], second_words: frozenset[str]) -> float:
    """Return the Jaccard similarity of the words of two texts; without words, whether they are equal."""
    if not first_words and not second_words:
        return float(_normalise(first) == _normalise(second))
    return len(first_words & second_words) / len(first_words | second_words)


def split_mmr_words(text: str) -> frozenset[str]:
    """Return the ASCII words of a text, and its Chinese, Japanese and Korean characters and pairs of characters."""
    lower = _normalise(text)
    words = frozenset(re.findall(r"[a-z0-9_]+", lower))
    if lower.isascii():
        return words
    matches = list(re.finditer("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u1100-\u11ff]", lower))
    pairs = [lower[a.start() : b.end()] for a, b in pairwise(matches) if b.start() == a.end()]
    return words | {match.group() for match in matches} | frozenset(pairs)


def _normalise(text: str) -> str:
    return text.lower().strip()
