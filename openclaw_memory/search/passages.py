"""Turn candidate chunks into results: their best lines, or the beginning of each chunk."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from openclaw_memory.config import SearchConfig
from openclaw_memory.search.candidates import Candidate
from openclaw_memory.search.late_interaction import QueryTokens, token_matches
from openclaw_memory.search.line_features import (
    LineVocabulary,
    date_matches,
    exact_matches,
    likeness,
    literal_share,
    name_matches,
    pair_matches,
    products,
    spans_of,
    text_of,
    without_blank_lines,
    word_overlap,
)
from openclaw_memory.search.lines import Line, lines_of, matter_not_asked_for
from openclaw_memory.search.prepared import Lexicon, Lines, Neighbourhood, ranges
from openclaw_memory.search.query import Query
from openclaw_memory.search.query_dates import ISO_DAY
from openclaw_memory.search.ranking import TEXT_SCORE, VECTOR_SCORE, VECTOR_SHARE, share_of
from openclaw_memory.text.markdown_blocks import parse_heading
from openclaw_memory.text.utf16 import truncate_utf16
from openclaw_memory.types import SOURCES, SearchResult, SourceHits, StoredChunk
from openclaw_memory.types.codec import get_plain_name
from openclaw_memory.types.files import LEFT_OUT
from openclaw_memory.types.results import Confidence
from openclaw_memory.workspace.paths import rank_path_match

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Integers = NDArray[np.int64]


# A chunk shares in the matches of its neighbours: the answer is often next to the words of the question.
NEIGHBOUR_SHARE = 0.3
_FILE_NAME = re.compile(r"[^\s\"'`<>()]+\.(?:md|markdown|txt)\b", re.IGNORECASE)
# How much it counts for the confidence whose lines answer. More tells questions about the wrong person better, and
# those about something else worse.
ATTRIBUTION = 0.75
# A result is weak below this score, which says how likely the notes answer: where it is less than one to two, they may
# not. Most questions without an answer fall below, and a tenth of the others: `benchmarks/calibration.py`.
WEAK_BELOW = 0.3
# What keywords alone put first with this confidence is among the first two results, or what they value as much.
LIKELY, AS_GOOD = 0.5, 0.1
# OpenClaw's minimum score, which is that of a weak chunk here: keywords alone may have found it.
WEAK_CHUNK_BELOW = 0.35
MAX_EXPONENT = 700.0  # exp(710) is beyond any float
# Of so many of the best lines, one loses REPEAT if it says what a better one says: most of all their words are in both,
# and the same numbers. Look-alikes would take the places of other answers.
COMPARED, REPEAT, SAME_SHARE = 60, 2.0, 0.6
# The nearest chunk is so by far if it leads by this share of the way from the nearest candidate to the farthest.
FAR_NEARER = 0.15
# So much more than any line is worth that the nearness of chunks goes first.
FIRST_BY_CHUNK = 1000.0
# A longer question is not the name of a file.
MAX_NAME_CHARS = 200
# MMR, age and a task choose among this many times the wanted answers.
POOL = 4


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the features of a line, set by hand and the same for every workspace.

    `middle` and `slope` turn the value of the best window, without its `name` and `chunk` parts, into the confidence
    that the notes answer the query: a logistic curve fitted to answerable and unanswerable questions. `name` is left
    out because most lines of a name do not answer, `chunk` because some chunk is always the nearest. `spread` is how
    slowly other passages lose score.
    """

    keyword: float
    overlap: float
    words: float
    meaning: float
    pairs: float
    exact: float
    date: float
    name: float
    question: float
    chunk: float
    middle: float
    slope: float
    spread: float = 5.0
    tokens: float = 0.0
    chunk_tokens: float = 0.0


HYBRID = Weights(
    keyword=1.5, overlap=0.0, words=6.0, meaning=7.0, pairs=0.4, exact=2.0, date=2.0, name=3.0, question=-0.8,
    chunk=1.5, middle=9.28, slope=0.604,
)  # fmt: skip
LATE = Weights(
    keyword=1.25, overlap=0.0, words=4.5, meaning=6.0, pairs=0.4, exact=2.0, date=2.5, name=3.0, question=-0.8,
    chunk=0.7, tokens=5.0, chunk_tokens=4.0, middle=12.1, slope=0.495,
)  # fmt: skip
KEYWORD = Weights(
    keyword=3.0, overlap=3.0, words=0.0, meaning=0.0, pairs=0.3, exact=2.0, date=1.5, name=2.0, question=-0.5,
    chunk=1.5, middle=4.85, slope=1.1,
)  # fmt: skip


# The features that come from vectors, of words or of chunks; the others from the words themselves.
BY_VECTORS = frozenset({"words", "meaning", "chunk", "tokens", "chunk_tokens"})


@dataclass(frozen=True, slots=True)
class RerankInput:
    """Everything that results are made from; see `openclaw_memory.search.search`. `reranked`: a task will do so."""

    query: Query
    candidates: Sequence[Candidate]
    hits: SourceHits
    rules: SearchConfig
    lexicon: Lexicon
    by_vector: bool
    explain: bool
    use_chunk_scores: bool = False
    tokens: QueryTokens | None = None
    reranked: bool = False


def best_lines(given: RerankInput) -> list[SearchResult]:
    """Return the best lines of each place in the candidates, best first.

    The score is the confidence that the notes answer the query at all, which the best passage decides, times the share
    of each passage relative to the best one.
    """
    chunks = [candidate.stored for candidate in given.candidates]
    arrays = given.lexicon.lines(chunks)
    vocabulary = LineVocabulary(arrays, given.lexicon)
    terms = vocabulary.terms(given.query)
    features = _features(given, chunks, arrays, vocabulary, terms)
    weights = KEYWORD if not given.by_vector else HYBRID if given.tokens is None else LATE
    values = _weigh_lines(features, weights)
    unlike = np.subtract(values, REPEAT * _repeats(arrays, values, given.lexicon), dtype=np.float32)
    passages = _passages(arrays, unlike, given)
    confidence = _confidence(passages[0], values, features, weights) if passages else 0.0
    turn = _turn_of_nearest(given, chunks, confidence)
    if given.by_vector and (likely := _find_likely(given, arrays, features, passages[: turn or 2])) is not None:
        passages, turn = _alternate(passages, [likely], 1), turn and 2
    if turn is not None:
        near = _chunk_scores(chunks, arrays, given.hits.cosines)
        by_chunk = _passages(arrays, np.add(FIRST_BY_CHUNK * near, values, dtype=np.float32), given)
        passages = _alternate(passages, by_chunk if turn == 1 else by_chunk[:1], turn)
    results = []
    for passage in passages:
        shown = [arrays.lines[at] for at in passage.picked]
        worth = {name: getattr(weights, name) * float(feature[passage.best]) for name, feature in features.items()}
        share = math.exp((passage.value - passages[0].value) / weights.spread)
        parts = {
            "confidence": confidence,
            "share": share,
            VECTOR_SHARE: _vector_share(given.query, terms[list(passage.picked)], worth),
        }
        if given.explain:
            parts |= {name: float(feature[passage.best]) for name, feature in features.items()}
        results.append(_result(shown, confidence * share, given.rules.snippet_chars, parts))
    return results


def _weigh_lines(features: Mapping[str, Floats], weights: Weights) -> Floats:
    """Sum the weighted features of each line: its value."""
    values: Floats = np.zeros_like(features["keyword"])
    for name, feature in features.items():
        values += getattr(weights, name) * feature
    return values


def _find_likely(
    rerank: RerankInput, arrays: Lines, features: Mapping[str, Floats], before: Sequence[Passage]
) -> Passage | None:
    """Find the best passage by keywords alone, if they call it likely and clearly better than those before."""
    of_words = {name: feature for name, feature in features.items() if name not in BY_VECTORS}
    values = _weigh_lines(of_words, KEYWORD)
    enough = max((float(values[list(passage.picked)].max()) for passage in before), default=math.inf) + AS_GOOD
    if values.max() <= enough:
        return None
    best, *_ = _passages(arrays, values, rerank, count=1)
    is_likely = best.value > enough and _confidence(best, values, of_words, KEYWORD) >= LIKELY
    return best if is_likely else None


def _repeats(arrays: Lines, values: Floats, lexicon: Lexicon) -> Floats:
    """Return 1 for each line that says what a better one says with other names or things, else 0."""
    best = np.argsort(-values, kind="stable")[:COMPARED]
    ends = np.cumsum(arrays.counts)[best].tolist()
    of_lines = [arrays.words[end - count : end] for end, count in zip(ends, arrays.counts[best].tolist(), strict=True)]
    numbers, columns = np.unique(np.concatenate(of_lines), return_inverse=True)
    holds = np.zeros((len(best), len(numbers)), np.float32)
    holds[np.repeat(np.arange(len(best)), arrays.counts[best]), columns] = 1
    digits = holds[:, [lexicon.words[number].isdigit() for number in numbers.tolist()]]
    rows, sizes = np.arange(len(best)), holds.sum(axis=1)
    both, unlike = products(holds, rows, holds), products(digits, rows, 1 - digits)
    same = (both >= SAME_SHARE * (sizes[:, None] + sizes - both)) & (unlike + unlike.T == 0) & (sizes > 0)
    same &= rows < rows[:, None]
    found = np.zeros(len(values), np.float32)
    for row in np.flatnonzero(same.any(axis=1)).tolist():
        found[best[row]] = np.any(found[best[same[row]]] == 0)
    return found


def _vector_share(query: Query, terms: Floats, worth: Mapping[str, float]) -> float:
    """Return the share of vectors in the value of a passage's best line.

    To the extent that the passage contains the query's words themselves, its `terms`, vectors add nothing to them.
    """
    vector = (1 - literal_share(terms, query)) * sum(value for name, value in worth.items() if name in BY_VECTORS)
    return share_of(vector, sum(worth.values()) - vector)


def _passages(arrays: Lines, values: Floats, given: RerankInput, count: int | None = None) -> list[Passage]:
    """Return the best passages of notes, and as many of transcripts."""
    lines, blocks, most = arrays.lines, arrays.blocks, given.rules.snippet_chars
    limits = min(given.rules.passage_chars or most, most), count or _pool(given)
    notes = sum(line.source == "memory" for line in lines)
    matter = matter_not_asked_for(lines, np.flatnonzero(arrays.numbers[:notes] == 1).tolist(), given.query.words)
    found = best_passages(lines[:notes], blocks[:notes], values[:notes], *limits, aside=matter)
    for one in best_passages(lines[notes:], blocks[notes:], values[notes:], *limits):
        found.append(replace(one, picked=tuple(at + notes for at in one.picked), best=one.best + notes))
    return sorted(found, key=lambda passage: -passage.value)


def _turn_of_nearest(rerank: RerankInput, chunks: Sequence[StoredChunk], confidence: float) -> int | None:
    """Return after how many passages those of the nearest chunks have their turn, or None.

    They alternate where the best lines are weak and the embedder knows sentences; what is nearest by far is among the
    first three.
    """
    cosines = [rerank.hits.cosines[stored.id] for stored in chunks if stored.id in rerank.hits.cosines]
    if len(cosines) < 2:
        return None
    if rerank.use_chunk_scores and confidence < WEAK_BELOW:
        return 1
    nearest, second, *_ = sorted(cosines, reverse=True)
    return 2 if nearest - second >= FAR_NEARER * (nearest - min(cosines)) else None


def _alternate(by_line: Sequence[Passage], by_chunk: Sequence[Passage], turn: int) -> list[Passage]:
    """Return passages of two rankings by turns, valued in the order of the first one.

    One that shares a line with one before it is left out.

    Args:
        by_line: The first ranking.
        by_chunk: The second one.
        turn: How many passages of the first ranking come before the first one of the second.
    """
    passages: list[Passage] = []
    taken: set[int] = set()
    last = by_line[-1].value - 1  # of what comes behind all lines
    for line, below, chunk in zip_longest(by_line, by_line[1:], [*[None] * (turn - 1), *by_chunk]):
        value = (line.value + below.value) / 2 if line and below else last
        for passage in (line, replace(chunk, value=value) if chunk else None):
            if passage and taken.isdisjoint(passage.picked):
                taken.update(passage.picked)
                passages.append(passage)
    return passages


def _confidence(best: Passage, values: Floats, features: Mapping[str, Floats], weights: Weights) -> float:
    """Return how likely it is that the notes answer the query at all, 0..1.

    If the query names a speaker, the best of their lines being better than that of others speaks for an answer.
    """
    content, name = values - weights.name * features["name"], features["name"]
    evidence = float(content[best.best]) + best.lift
    if "chunk" in features:
        evidence -= weights.chunk * float(features["chunk"][best.best])
    theirs, others = content[name > 0], content[name < 0]
    if len(theirs) and len(others):
        evidence += ATTRIBUTION * float(theirs.max() - others.max())
    # A query of hundreds of words may speak so much against a line that the exponential has no float.
    return 1 / (1 + math.exp(min(-weights.slope * (evidence - weights.middle), MAX_EXPONENT)))


def best_chunks(given: RerankInput) -> list[SearchResult]:
    """Return the best chunks, each with its beginning as the snippet."""
    results = []
    for candidate in _first_of_each(given.candidates, _pool(given)):
        stored, chunk = candidate.stored, candidate.stored.chunk
        score = candidate.score if given.rules.fusion == "weighted" else 1 / (1 + math.exp(-candidate.score))
        first, last, text = chunk.start_line, chunk.end_line, chunk.text
        if stored.source == "sessions":
            first += len(text) - len(text.lstrip("\n"))
            last -= len(text) - len(text.rstrip("\n"))
            text = without_blank_lines(text.strip("\n"))
        snippet = truncate_utf16(text, given.rules.snippet_chars).rstrip("\r\n")
        share = _vector_share_of(candidate, given.rules)
        parts = {VECTOR_SCORE: candidate.vector, TEXT_SCORE: candidate.text, VECTOR_SHARE: share}
        place, score = (stored.path, first, last), min(1.0, max(0.0, score))
        sureness = _confidence_in(score, WEAK_CHUNK_BELOW)
        results.append(SearchResult(*place, score, snippet, stored.source, parts, confidence=sureness))
    return results


def _vector_share_of(candidate: Candidate, rules: SearchConfig) -> float:
    """Return the share of its vector in a chunk's score; z-scores have no parts, so weighted scores replace them."""
    vector = rules.vector_weight * candidate.vector
    if rules.fusion == "weighted":
        return share_of(vector, candidate.score - vector)
    return share_of(vector, rules.text_weight * candidate.text / (1 + candidate.text))


def _first_of_each(candidates: Sequence[Candidate], count: int) -> Iterator[Candidate]:
    """Yield the first `count` candidates of each source."""
    for source in SOURCES:
        yield from islice((candidate for candidate in candidates if candidate.stored.source == source), count)


def file_matcher(text: str) -> Callable[[str], bool] | None:
    """Return a test whether the query names the note at a path, or None if it names no file.

    A query names a note if it is its path or file name, or contains its file name with the ending. It never names a
    transcript, whose beginning answers nothing and may be too long to read.

    Args:
        text: The query.
    """
    names = [text] if len(text) <= MAX_NAME_CHARS and not text.rstrip().endswith(("?", "？")) else []
    names += _FILE_NAME.findall(text)
    parts = [posixpath.basename(name.strip().replace("\\", "/")).casefold() for name in names]
    if not any(parts):
        return None

    def is_named(path: str) -> bool:
        likely = not path.isascii() or any(part in path.casefold() for part in parts if part)
        is_talk = get_plain_name(path).endswith(".jsonl")
        return likely and not is_talk and any(rank_path_match(name, path) for name in names)

    return is_named


def beginning(chunks: Sequence[StoredChunk], max_chars: int) -> SearchResult:
    """Return as many whole lines from the start of a file as fit, as a result with score 1.

    Args:
        chunks: All chunks of the file.
        max_chars: The length of the snippet, at most.
    """
    lines = lines_of(chunks)
    end = max([1, *(at for at, line in enumerate(lines, 1) if line.end_char - lines[0].start_char <= max_chars)])
    snippet = text_of(lines[:end])[:max_chars]
    return SearchResult(lines[0].path, lines[0].number, lines[end - 1].number, 1.0, snippet, lines[0].source)


ANSWERS: Mapping[str, Callable[[RerankInput], list[SearchResult]]] = {"lines": best_lines, "chunks": best_chunks}


def _pool(given: RerankInput) -> int:
    """Return how many results to make: more than are wanted if MMR, age or a task will select among them."""
    rules = given.rules
    is_final = rules.mmr is None and rules.half_life_days is None and not given.reranked
    return rules.max_results * (1 if is_final else POOL)


def _features(
    given: RerankInput, chunks: Sequence[StoredChunk], lines: Lines, vocabulary: LineVocabulary, terms: Floats
) -> dict[str, Floats]:
    query, neighbourhood = given.query, Neighbourhood(lines.middles, lines.blocks)
    dated = date_matches(lines.lines, query)
    features = {
        "keyword": _keyword_scores(chunks, lines, given.hits.text),
        "overlap": word_overlap(terms, query, neighbourhood),
        "pairs": pair_matches(vocabulary, query),
        "exact": exact_matches(lines.lines, query),
        "date": dated,
        "name": name_matches(lines, given.lexicon, query),
        "question": lines.questions,
    }
    if given.use_chunk_scores:
        features["chunk"] = _chunk_scores(chunks, lines, given.hits.cosines)
    if not given.by_vector:
        return features
    like = likeness(lines, vocabulary, terms, query, neighbourhood, dated)
    if given.tokens is not None:
        near, whole = token_matches(given.tokens, chunks, lines.lines, neighbourhood)
        features |= {"tokens": near, "chunk_tokens": _best_by_line(chunks, lines, whole)}
    return features | {"words": like.words, "meaning": like.meaning}


def _keyword_scores(chunks: Sequence[StoredChunk], lines: Lines, text: Mapping[int, float]) -> Floats:
    """Return for each line the best keyword score of a chunk that holds it, as a share of the best of all; 0..1."""
    by_place = {(stored.path, stored.ordinal): text.get(stored.id, 0.0) for stored in chunks}
    scores = []
    for stored in chunks:
        around = [by_place.get((stored.path, at), 0.0) for at in (stored.ordinal - 1, stored.ordinal + 1)]
        scores.append(text.get(stored.id, 0.0) + NEIGHBOUR_SHARE * sum(around))
    of_lines = _best_by_line(chunks, lines, scores)
    return of_lines / max(float(of_lines.max()), 1e-9)


def _chunk_scores(chunks: Sequence[StoredChunk], lines: Lines, cosines: Mapping[int, float]) -> Floats:
    """Return for each line how near its chunk is to the query, from the farthest chunk, 0, to the nearest, 1.

    Each model has its own scale for cosines; relative distances are comparable.
    """
    known = [cosines[stored.id] for stored in chunks if stored.id in cosines]
    farthest, nearest = min(known, default=0.0), max(known, default=0.0)
    reach = max(nearest - farthest, 1e-9)
    shares = [(cosines.get(stored.id, farthest) - farthest) / reach for stored in chunks]
    return _best_by_line(chunks, lines, shares)


def _best_by_line(chunks: Sequence[StoredChunk], lines: Lines, scores: Sequence[float]) -> Floats:
    """Return for each line the best score of a chunk that contains it."""
    # Files are numbered in the order of the lines: with them as high digits, line numbers ascend in all files.
    base = int(lines.numbers.max()) + 1
    edges = [
        lines.paths[stored.path] * base + min(line, base)
        for stored in chunks
        for line in (stored.chunk.start_line, stored.chunk.end_line + 1)
    ]
    places = np.searchsorted(lines.files * base + lines.numbers, edges)
    starts, sizes = places[::2], places[1::2] - places[::2]
    best = np.zeros(len(lines.lines), np.float32)
    np.maximum.at(best, ranges(starts, sizes), np.repeat(np.array(scores, np.float32), sizes))
    return best


def _result(shown: Sequence[Line], score: float, max_chars: int, parts: Mapping[str, float]) -> SearchResult:
    first, last = shown[0], shown[-1]
    snippet = text_of(shown)[:max_chars]
    place, sureness = (first.path, first.number, last.number), _confidence_in(score, WEAK_BELOW)
    return SearchResult(*place, score, snippet, first.source, parts, spans_of(shown), sureness)


def _confidence_in(score: float, weak_below: float) -> Confidence:
    return "weak" if score < weak_below else "strong"


FENCES = ("---", "...")  # around front matter
# How far from its best line, in lines, a passage reaches, and how much less than it a line may be worth there.
REACH, DROP = 40, 5.0


@dataclass(frozen=True, slots=True)
class Passage:
    """The best lines of one place in a file: `picked` are their indices in a list of lines, in order.

    `best` is the index of the best one, and `value` its value, of which `lift` comes from front matter.
    """

    picked: tuple[int, ...]
    best: int
    value: float
    lift: float = 0.0


def best_passages(
    lines: Sequence[Line],
    blocks: Integers,
    values: Floats,
    max_chars: int,
    count: int,
    *,
    aside: Collection[int] = (),
) -> list[Passage]:
    """Return passages that share no line, best first.

    Each is the best line that no passage before it has, what is below it if it is a heading, and the next best lines
    around it that fit, of the same file and, in a transcript, of the same day. A line longer than `max_chars` is a
    passage of its own.

    Args:
        lines: The lines.
        blocks: The number of the section that each is in.
        values: The value of each line.
        max_chars: The length of a passage, at most.
        count: How many passages at most.
        aside: The indices of lines that are no passage of their own: they lift the best other line near them, halfway
            to what they are worth, and are shown with it.
    """
    taken: set[int] = set()
    found: list[Passage] = []
    worth = values.tolist()
    for top in np.argsort(-values, kind="stable").tolist():
        if len(found) == count:
            break
        if top in taken or not lines[top].says_something:
            continue
        chosen = top if top not in aside else _best_beside(lines, worth, top, aside)
        if chosen is None or chosen in taken:
            continue
        best: int = chosen
        around = list(_around(lines, best))
        order = sorted(around, key=lambda at: (-worth[at], abs(at - best)))
        is_heading = parse_heading(lines[best].text) is not None
        below = [at for at in around if is_heading and at > best and blocks[at] == blocks[best]]
        picked, room = [best], max_chars - len(lines[best].text)
        for at in [*below, *(at for at in order if worth[at] >= worth[best] - DROP)]:
            if at in aside and lines[at].text.rstrip() in FENCES:
                continue
            cost = len(lines[at].text) + len(LEFT_OUT)
            if cost <= room and at not in taken and at not in picked and lines[at].says_something:
                picked.append(at)
                room -= cost
        taken.update(picked)
        lift = (worth[top] - worth[best]) / 2
        found.append(Passage(tuple(sorted(picked)), best, worth[best] + lift, lift))
    return sorted(found, key=lambda passage: -passage.value)


def _best_beside(lines: Sequence[Line], worth: Sequence[float], top: int, aside: Collection[int]) -> int | None:
    """Return the best line near one that is no passage of its own; None where there is none."""
    others = [at for at in _around(lines, top) if at not in aside and lines[at].says_something]
    return max(others, key=lambda at: worth[at], default=None)


def _around(lines: Sequence[Line], best: int) -> Iterator[int]:
    """Yield the indices of the lines near one, of its file and, in a transcript, of its day; nearer ones first."""
    for way in (range(best - 1, -1, -1), range(best + 1, len(lines))):
        for at in way:
            if not _is_near(lines[at], lines[best]):
                break
            yield at


def _is_near(line: Line, best: Line) -> bool:
    is_of_day = line.source == "memory" or line.context[:ISO_DAY] == best.context[:ISO_DAY]
    return line.path == best.path and abs(line.number - best.number) <= REACH and is_of_day
