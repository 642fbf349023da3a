"""Turn candidate chunks into results: their best lines, or the beginning of each chunk."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import accumulate, chain, islice, pairwise, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from openclaw_memory.embeddings.reranking import RERANKED
from openclaw_memory.search.candidates import Candidate, Candidates
from openclaw_memory.search.features import (
    ChunkSpans,
    LineVocabulary,
    QueryTokens,
    compare_tokens,
    compare_words,
    compute_mean,
    mark_repeats,
    match_dates,
    match_identifiers,
    match_metadata,
    match_names,
    match_pairs,
    score_keywords,
    score_nearness,
    share_literal,
)
from openclaw_memory.search.line_index import NO_LENGTH, TERM_REACH, LineIndex, LineTable, Neighbourhood
from openclaw_memory.search.lines import (
    NO_FRAME,
    Line,
    Outline,
    count_words,
    cut_line,
    find_idle_front_matter,
    find_open_code,
    find_spans,
    has_content,
    is_joined,
    is_question,
    join_lines,
    normalise_line,
    remove_blank_lines,
    split_lines,
    strip_role,
)
from openclaw_memory.search.query import Query
from openclaw_memory.search.ranking import TEXT_SCORE, VECTOR_SCORE, VECTOR_SHARE, scale_bm25, share_of_vector
from openclaw_memory.search.request import limit_passage
from openclaw_memory.text.markdown_blocks import count_front_matter, parse_heading
from openclaw_memory.text.utf16 import truncate_utf16
from openclaw_memory.types import SearchResult, StoredChunk
from openclaw_memory.types.conditions import DOCUMENT
from openclaw_memory.types.files import LEFT_OUT, SOURCES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from openclaw_memory.config.sections import SearchConfig
    from openclaw_memory.search.request import SearchRequest
    from openclaw_memory.types.results import Confidence

    Floats = NDArray[np.float32]


# How much it counts for the confidence whose lines answer. More tells questions about the wrong person better, and
# those about something else worse.
ATTRIBUTION = 1.6
# In some scripts vectors find any two lines near: so much of what they find in the middle line of all says nothing. Of
# few lines all may answer: with so many, half of it counts.
BACKGROUND, FEW_LINES = 0.5, 10
# A result is weak below this score, which estimates how likely the notes answer, unless the best result is strong and
# it is worth nearly as much. Most questions without an answer fall below, and a tenth of the others:
# `benchmarks/calibration.py`.
WEAK_BELOW, NEARLY = 0.3, 0.8
# What keywords alone put first with this confidence is among the first two results, or what they value as much.
LIKELY, AS_GOOD = 0.5, 0.1
# OpenClaw's minimum score, which is that of a weak chunk here: keywords alone may have found it.
WEAK_CHUNK_BELOW = 0.35
MAX_EXPONENT = 700.0  # exp(710) is beyond any float
# What a line loses that repeats a better one: look-alikes would take the places of other answers.
REPEAT_PENALTY = 2.0
# The nearest chunk is so by far if it leads by this share of the way from the nearest candidate to the farthest.
FAR_NEARER = 0.15
# How much nearness counts where passages are ranked by it: more than all that a line is worth.
NEARNESS = 60.0
# MMR, age and a task choose among this many times the results.
POOL = 4
FENCES = ("---", "...")  # around front matter
# How far from its best line, in lines, a passage reaches, how much less than it a line may be worth there, and how much
# each line on the way costs.
REACH, DROP, DISTANCE_COST = 40, 5.0, 0.1
# How many runs of lines a result has at most, and how many characters between two of them are shown with them.
MAX_RUNS, SMALL_GAP = 3, 140
# An answer is a list if so many files have a line that is worth so much less than the best one at most.
LIST_FILES, LIST_DROP = 4, 4.0
# What a line loses that is struck out or of a plan that was dropped: what holds comes first.
OVER_PENALTY = 5.0
# An answer of the assistant comes behind every note that is worth as much but for this.
ECHO_MARGIN = 5.0

LONG_LINE = 40  # characters by which two lines that read alike are one text, whatever is around them

ReadOutline = Callable[[str], Outline | None]


class Weights(Struct, frozen=True, kw_only=True):
    """The weights of the features of a line, set by hand and the same for every workspace.

    `middle` and `slope` turn the value of the best window, without its `name`, `pairs` and `chunk` parts, into the
    confidence that the notes answer the query: a logistic curve fitted to answerable and unanswerable questions in five
    scripts. `name` is left out because most lines of a name do not answer, `pairs` because a script without spaces has
    many, `chunk` because some chunk is always the nearest. `coverage` adds the share of the query's weight that the
    lines around the best one have, which means the same in every script. `spread` is how slowly other passages lose
    score.
    """

    keyword: float
    overlap: float
    words: float
    meaning: float
    pairs: float
    exact: float
    date: float
    name: float
    metadata: float
    question: float
    chunk: float
    coverage: float
    middle: float
    slope: float
    spread: float = 5.0
    tokens: float = 0.0
    chunk_tokens: float = 0.0


HYBRID = Weights(
    keyword=1.5, overlap=0.0, words=6.0, meaning=7.0, pairs=0.4, exact=2.0, date=2.0, name=3.0, metadata=8.0,
    question=-0.8, chunk=1.5, coverage=2.5, middle=9.25, slope=0.55,
)  # fmt: skip
LATE = Weights(
    keyword=1.25, overlap=0.0, words=4.5, meaning=6.0, pairs=0.4, exact=2.0, date=2.5, name=3.0, metadata=8.0,
    question=-0.8, chunk=0.7, tokens=5.0, chunk_tokens=4.0, coverage=0.5, middle=9.65, slope=0.52,
)  # fmt: skip
KEYWORD = Weights(
    keyword=3.0, overlap=3.0, words=0.0, meaning=0.0, pairs=0.3, exact=2.0, date=1.5, name=2.0, metadata=4.0,
    question=-0.5, chunk=1.5, coverage=2.5, middle=6.0, slope=0.85,
)  # fmt: skip


# The features that come from vectors, of words or of chunks; the others from the words themselves.
OF_LINES = frozenset({"words", "meaning", "tokens", "chunk_tokens"})
BY_VECTORS = OF_LINES | {"chunk"}


class Passage(Struct, frozen=True):
    """The best lines of one place in a file: `lines` are their indices in a table, in order.

    `best` is the index of the best one, and `value` its value, of which `lift` comes from front matter or the header
    of a table. `context` are the lines with what they are not understood without.
    """

    lines: tuple[int, ...]
    best: int
    value: float
    lift: float = 0.0
    context: tuple[Line, ...] = ()


def rank_lines(
    query: Query,
    candidates: Candidates,
    request: SearchRequest,
    index: LineIndex,
    tokens: QueryTokens | None,
    *,
    has_chunk_vectors: bool,
    read_outline: ReadOutline,
) -> list[SearchResult]:
    """Return the best lines of each place in the candidates, best first.

    The score is the confidence that the notes answer the query at all, which the best passage decides, times the share
    of each passage relative to the best one.

    Args:
        query: The parsed query, weighted.
        candidates: The chunks.
        request: The search.
        index: Keeps the lines of chunks.
        tokens: The tokens of the query, or None to compare lines by words.
        has_chunk_vectors: Whether the score of a line also counts how near its chunk is to the query.
        read_outline: Returns the outline of a note by its path, if there is one.
    """
    settings, chunks = request.settings, candidates.chunks
    table = index.read(chunks)
    by_vector = candidates.has_vectors and index.word_vectors is not None and _has_word_vectors(query, index)
    vocabulary, spans = LineVocabulary(table, index), ChunkSpans(chunks, table)
    neighbourhood = Neighbourhood(table.middles, table.blocks)
    terms = vocabulary.find_terms(query)
    near_terms = neighbourhood.spread_maximum(terms, TERM_REACH)
    features = {
        "keyword": score_keywords(chunks, spans, candidates.text_scores),
        "overlap": compute_mean(near_terms, query.weights),
        "pairs": match_pairs(vocabulary, query),
        "exact": match_identifiers(table, query),
        "date": match_dates(table, query),
        "name": match_names(table, index, query),
        "metadata": match_metadata(table, query, near_terms),
        "question": table.questions.astype(np.float32),
    }
    if has_chunk_vectors:
        features["chunk"] = score_nearness(chunks, spans, candidates.cosines)
    if by_vector:
        if tokens is not None:
            near, whole = compare_tokens(tokens, chunks, table, neighbourhood)
            features |= {"tokens": near, "chunk_tokens": spans.take_best(whole)}
        features["words"], features["meaning"], own_meaning = compare_words(
            table, vocabulary, terms, query, neighbourhood, features["date"]
        )
    weights = KEYWORD if not by_vector else HYBRID if tokens is None else LATE
    values = _weigh(features, weights)
    files = {*table.files[values >= values.max() - LIST_DROP].tolist()}
    max_chars = limit_passage(settings.snippet_chars, request.max_chars, is_list=len(files) >= LIST_FILES)
    finder = PassageFinder(table, query, settings.snippet_chars, max_chars, read_outline)
    pool = _count_pool(request)
    unlike = np.subtract(values, REPEAT_PENALTY * mark_repeats(table, values, index), dtype=np.float32)
    passages = finder.find(unlike, pool)
    confidence = _estimate_confidence(passages[0], values, features, weights) if passages else 0.0
    turn = _take_turn(candidates, confidence, has_chunk_vectors=has_chunk_vectors)
    nearness = score_nearness(chunks, spans, candidates.cosines) if turn else None
    if by_vector and turn != 1 and confidence < WEAK_BELOW and not features["name"].any():
        turn, nearness = 1, own_meaning
    if by_vector and (likely := _find_likely(finder, features, passages[: turn or 2])) is not None:
        passages, turn = _alternate(passages, [likely], 1), turn and 2
    if turn and nearness is not None:
        by_nearness = finder.find(np.add(NEARNESS * nearness, values, dtype=np.float32), pool if turn == 1 else 1)
        passages = _alternate(passages, by_nearness if turn == 1 else by_nearness[:1], turn)
    results = []
    for passage in passages:
        raw = {name: float(feature[passage.best]) for name, feature in features.items()}
        worth = {name: getattr(weights, name) * value for name, value in raw.items()}
        # To the extent that the passage contains the query's words themselves, vectors add nothing to them.
        vector = sum(value for name, value in worth.items() if name in BY_VECTORS)
        vector *= 1 - share_literal(terms[list(passage.lines)], query)
        share = math.exp((passage.value - passages[0].value) / weights.spread)
        vector_share = share_of_vector(vector, sum(worth.values()) - vector)
        parts = {"confidence": confidence, "share": share, VECTOR_SHARE: vector_share}
        lines = passage.context
        first, score, snippet = lines[0], confidence * share, join_lines(lines)[: settings.snippet_chars]
        place, parts = (first.path, first.number, lines[-1].number), parts | raw if request.options.explain else parts
        is_sure = score >= WEAK_BELOW or (confidence >= WEAK_BELOW and share >= NEARLY)
        level: Confidence = "strong" if is_sure else "weak"
        results.append(SearchResult(*place, score, snippet, first.source, parts, find_spans(lines), level))
    return results


def _has_word_vectors(query: Query, index: LineIndex) -> bool:
    """Return whether words with at least half of the query's weight have a vector.

    Marks and digits do not count: of a word in a script that the model lacks, it may know these.
    """
    letters = ["".join(filter(str.isalpha, word)) for word in query.words]
    numbers = index.number_words(letters)
    present: list[bool] = (index.lengths[numbers] > NO_LENGTH).tolist()
    weights = [(weight, has) for weight, has, own in zip(query.weights, present, letters, strict=True) if own]
    return 2 * sum(weight for weight, has in weights if has) >= sum(weight for weight, _ in weights)


def _weigh(features: Mapping[str, Floats], weights: Weights) -> Floats:
    """Sum the weighted features of each line: its value; 0 without features."""
    return sum((getattr(weights, name) * feature for name, feature in features.items()), np.zeros(1, np.float32))


def _count_pool(request: SearchRequest) -> int:
    """Return how many results to make: more than asked for if MMR, age, a task or a model will select among them."""
    settings = request.settings
    if settings.rerank is not None:
        return max(settings.max_results, RERANKED)
    is_final = settings.mmr is None and settings.half_life_days is None and not request.has_task
    return settings.max_results * (1 if is_final else POOL)


def _take_turn(candidates: Candidates, confidence: float, *, has_chunk_vectors: bool) -> int | None:
    """Return after how many passages those of the nearest chunks have their turn, or None.

    They alternate where the best lines are weak and the embedder knows sentences; the nearest by far is among the first
    three.
    """
    cosines = [candidates.cosines[stored.id] for stored in candidates.chunks if stored.id in candidates.cosines]
    if len(cosines) < 2:
        return None
    if has_chunk_vectors and confidence < WEAK_BELOW:
        return 1
    nearest, second, *_ = sorted(cosines, reverse=True)
    return 2 if nearest - second >= FAR_NEARER * (nearest - min(cosines)) else None


def _find_likely(finder: PassageFinder, features: Mapping[str, Floats], before: Sequence[Passage]) -> Passage | None:
    """Find the best passage by keywords alone, if they call it likely and clearly better than those before."""
    by_words = {name: feature for name, feature in features.items() if name not in BY_VECTORS}
    values = _weigh(by_words, KEYWORD)
    enough = max((float(values[list(passage.lines)].max()) for passage in before), default=math.inf) + AS_GOOD
    if values.max() <= enough:
        return None
    best, *_ = finder.find(values, 1)
    is_likely = best.value > enough and _estimate_confidence(best, values, by_words, KEYWORD) >= LIKELY
    return best if is_likely else None


def _alternate(by_line: Sequence[Passage], by_chunk: Sequence[Passage], turn: int) -> list[Passage]:
    """Return passages of two rankings by turns, valued in the order of the first one.

    One that shares a line with one before it, or shows nothing new, is left out.
    """
    passages: list[Passage] = []
    taken: set[int] = set()
    cited: set[Line] = set()
    last = by_line[-1].value - 1  # of what comes behind all lines
    for line, below, chunk in zip_longest(by_line, by_line[1:], [*[None] * (turn - 1), *by_chunk]):
        value = (line.value + below.value) / 2 if line and below else last
        for passage in (line, replace(chunk, value=value) if chunk else None):
            if passage and taken.isdisjoint(passage.lines) and not cited.issuperset(passage.context):
                taken.update(passage.lines)
                cited.update(passage.context)
                passages.append(passage)
    return passages


def _put_behind(passage: Passage, passages: Iterable[Passage], margin: float) -> Passage:
    """Return a passage with the least value of the passages that are worth as much but for a margin."""
    as_good = [each.value for each in passages if each.value >= passage.value - margin]
    return replace(passage, value=min([passage.value, *as_good]))


def _estimate_confidence(best: Passage, values: Floats, features: Mapping[str, Floats], weights: Weights) -> float:
    """Return how likely it is that the notes answer the query at all, 0..1.

    If the query names a speaker, the best of their lines being better than that of others speaks for an answer.
    """
    name = features["name"]
    content = values - weights.name * name - weights.pairs * features["pairs"]
    evidence = float(content[best.best]) + best.lift + weights.coverage * float(features["overlap"][best.best])
    # `numpy.median` loads another part of numpy.
    nearness = _weigh({key: feature for key, feature in features.items() if key in OF_LINES}, weights)
    middle = float(np.partition(nearness, len(nearness) // 2)[len(nearness) // 2])
    evidence -= BACKGROUND * middle * len(content) / (len(content) + FEW_LINES)
    if "chunk" in features:
        evidence -= weights.chunk * float(features["chunk"][best.best])
    theirs, different = content[name > 0], content[name < 0]
    if len(theirs) and len(different):
        evidence += ATTRIBUTION * float(theirs.max() - different.max())
    # A query of hundreds of words may speak so much against a line that the exponential has no float.
    return 1 / (1 + math.exp(min(-weights.slope * (evidence - weights.middle), MAX_EXPONENT)))


class PassageFinder:
    """Finds the best passages of a table of lines, for several values of the lines."""

    def __init__(
        self, table: LineTable, query: Query, most_chars: int, max_chars: int, read_outline: ReadOutline
    ) -> None:
        self._table, self._words, self._asked = table, query.words, normalise_line(query.text)
        self._max_chars, self._most_chars = max_chars, most_chars
        self._contents, self._sizes = table.contents.tolist(), table.sizes.tolist()
        self._places, self._numbers = table.places.tolist(), table.numbers.tolist()
        self._aside = _find_aside(table, query.words)
        self._read_outline, self._get_line = cache(read_outline), cache(table.get_line)
        self._plain = Outline(self._get_line)

    def find(self, values: Floats, count: int) -> list[Passage]:
        """Return the `count` best passages of notes, and as many of transcripts; by value, which each line has.

        Of the assistant's own answers none is above a note that is as relevant, and where the query itself was asked
        before, none is above another passage that is nearly as relevant.
        """
        notes = self._table.note_count
        passages = self._find_in(values, 0, notes, count)
        own, questions = tuple(passages), list[Passage]()
        for passage in self._find_in(values, notes, len(values), count):
            best = self._get_line(passage.best).text
            if normalise_line(strip_role(best)) == self._asked:
                questions.append(passage)
                continue
            is_echo = is_question(best) or not best.startswith("User: ")
            passages.append(_put_behind(passage, own, ECHO_MARGIN) if is_echo else passage)
        for question in questions:
            passages.append(_put_behind(question, passages, 2 * ECHO_MARGIN))
        return sorted(passages, key=lambda passage: -passage.value)

    def _find_in(self, values: Floats, first: int, last: int, count: int) -> list[Passage]:
        """Return passages of a range of lines that share no line, best first, each text once.

        Each is the best line that no passage before it has, the lines below it if it is a heading, and the next best
        lines around it that fit, of the same file and, in a transcript, of the same day. A line longer than a passage
        is one of its own. Lines that stand aside lift the best other line near them, halfway to their own value, and
        are shown with it.
        """
        taken: set[int] = set()
        texts: set[str] = set()
        cited: set[Line] = set()  # also as the context of others, such as the item of a nested list
        passages: list[Passage] = []
        worth: list[float] = values.tolist()
        order = (first + np.argsort(-values[first:last], kind="stable")).tolist()
        for top in self._iterate_lines(worth, order, taken):
            if len(passages) == count:
                break
            best = top if top not in self._aside else self._find_beside(worth, top)
            if best is None or best in taken:
                continue
            row = self._find_row(worth, best, taken)
            picked, context = self._grow(worth, row, taken)
            taken.update(picked)
            text = self._read_text(row, context)
            if text not in texts and not cited.issuperset(context):
                texts.add(text)
                cited.update(context)
                lift = (worth[top] - worth[best]) / 2 + worth[best] - worth[row]
                passages.append(Passage(tuple(sorted(picked)), row, worth[row] + lift, lift, context))
        return sorted(passages, key=lambda passage: -passage.value)

    def _read_text(self, best: int, context: Sequence[Line]) -> str:
        """Return the text that a passage is one copy of: the line with most of the query where it is long, else all.

        Of two documents of a program with one text each has an id of its own.
        """
        line, metadata = self._get_line(best), self._table.chunks[int(self._table.parts[best])].chunk.metadata
        if DOCUMENT in metadata:
            return f"{line.path}\n{line.number}"
        line = max(
            (line, *(own for own in context if len(own.text) >= LONG_LINE)),
            key=lambda own: count_words(own.text, self._words),
        )
        text = normalise_line(strip_role(line.text))
        is_whole = line.source == "sessions" or len(text) >= LONG_LINE
        return text if is_whole else "\n".join(normalise_line(own.text) for own in context)

    def _iterate_lines(self, worth: list[float], order: Iterable[int], taken: Collection[int]) -> Iterator[int]:
        """Yield the lines that are not taken, best first as they come; one that no longer holds is worth less."""
        postponed: list[tuple[float, int]] = []
        for at in order:
            while postponed and postponed[0][0] <= -worth[at]:
                yield heappop(postponed)[1]
            if at in taken or not self._contents[at]:
                continue
            outline, place = self._locate(at)
            if place in outline.marks:
                worth[at] -= OVER_PENALTY
                heappush(postponed, (-worth[at], at))
            else:
                yield at
        yield from (at for _, at in sorted(postponed))

    def _locate(self, at: int) -> tuple[Outline, int]:
        """Return the outline of a line's note and its place in it, or the lines of the table where there is none."""
        line = self._get_line(at)
        outline = self._read_outline(line.path) if line.source == "memory" else None
        text = outline.get_line(line.number - 1).text if outline and line.number <= outline.size else ""
        return (outline, line.number - 1) if outline and line.text == text else (self._plain, at)

    def _is_alone(self, at: int, best: int) -> bool:
        """Return whether a line is a piece of the same line as another one, or is understood without others."""
        outline, place = self._locate(at)
        return outline.get_frame(place) == NO_FRAME or self._table.numbers[at] == self._table.numbers[best]

    def _find_row(self, worth: Sequence[float], at: int, taken: Collection[int]) -> int:
        """Return the best row of the table that a line is the header of, or the line."""
        outline, place = self._locate(at)
        heads = outline.get_frame(place).heads
        if heads[-2:-1] != (place,):
            return at
        first, last = np.searchsorted(self._table.files, [self._table.files[at], self._table.files[at] + 1]).tolist()
        places = enumerate((self._table.numbers[first:last] - 1).tolist(), first)
        rows = [own for own, below in places if below > heads[-1] and outline.get_frame(below).heads == heads]
        return max((own for own in rows if own not in taken), key=lambda own: worth[own], default=at)

    def _grow(self, worth: Sequence[float], best: int, taken: set[int]) -> tuple[set[int], tuple[Line, ...]]:
        """Return the indices of a line and of those around it that fit, and these lines as they are shown."""
        outline, own = self._locate(best)
        first, last = self._find_window(best)
        numbered = range(first, last) if outline is self._plain else [at - 1 for at in self._numbers[first:last]]
        places = {at: place for at, place in enumerate(numbered, first) if self._contents[at]}
        closed, most = {places[at] for at in taken if at in places}, self._most_chars
        if outline is self._plain and best < self._table.note_count:  # a piece of a long line
            closed |= {at for at in places if not self._is_alone(at, best)}
            places = {at: place for at, place in places.items() if at not in closed}
        line, read = outline.get_line(own), outline.get_line
        if len(line.text) > most:
            line = cut_line(line, self._words, most)
            outline = outline._replace(get_line=lambda place: line if place == own else read(place))
        heads, code = outline.get_frame(own)
        units = ({own, *needed} for needed in ((*heads, *code), heads, heads[-2:], ()))  # the largest that fits
        runs, chars = next(joined for unit in units if (joined := _add([], unit, outline, closed, most)))
        for near in (outline.marks.get(own), outline.find_replacement(own)):
            if near is not None:
                runs, chars = _add(runs, _find_unit(outline, near, own), outline, closed, most) or (runs, chars)
        limit, picked, passage = min(most, self._max_chars - len(line.text) + chars), {best}, {*chain(*runs)}
        around = [at for at in self._list_around(worth, best) if at not in taken and at in places]
        sizes = accumulate(self._sizes[at] + 1 for at in around)
        fitting = [at for at, size in zip(around, sizes, strict=True) if size <= limit - chars]
        for group in (fitting, *([at] for at in around)):  # all at once that may fit, and then one by one
            if picked.issuperset(group) or sum(self._sizes[at] for at in group) >= limit - chars:
                continue
            more = {place for at in group for place in _find_unit(outline, places[at], own)} - passage
            if more and (joined := _add(runs, more, outline, closed, limit)):
                runs, chars = joined
                passage.update(*runs)
                picked.update(group)
        context = {own, *(head for place in passage for head in outline.get_frame(place).heads)}
        picked |= {at for at, place in places.items() if place in passage and place not in context}
        return picked, tuple(map(outline.get_line, sorted(passage)))

    def _list_around(self, worth: Sequence[float], best: int) -> list[int]:
        """Return the lines that may join a line, in this order."""
        first, last = self._find_window(best)
        near = [*range(best - 1, first - 1, -1), *range(best + 1, last)]
        around = [at for at in near if worth[at] >= worth[best] - DROP]
        order = sorted(around, key=lambda at: DISTANCE_COST * abs(at - best) - worth[at])
        if parse_heading(self._get_line(best).text) is not None:
            blocks = self._table.blocks
            order = [*(at for at in range(best + 1, last) if blocks[at] == blocks[best]), *order]
        return [at for at in order if at not in self._aside or self._get_line(at).text.rstrip() not in FENCES]

    def _find_beside(self, worth: Sequence[float], top: int) -> int | None:
        """Return the best line near one that stands aside; None where there is none."""
        first, last = self._find_window(top)
        near = [*range(top - 1, first - 1, -1), *range(top + 1, last)]
        usable = [at for at in near if at not in self._aside and self._contents[at]]
        return max(usable, key=lambda at: worth[at], default=None)

    def _find_window(self, at: int) -> tuple[int, int]:
        """Return the first line near one, of its file and, in a transcript, of its day, and the line after the last."""
        places, numbers = self._places, self._numbers
        first, last = bisect_left(places, places[at]), bisect_right(places, places[at])
        near = numbers[at] - REACH, numbers[at] + REACH
        return bisect_left(numbers, near[0], first, last), bisect_right(numbers, near[1], first, last)


def _find_unit(outline: Outline, place: int, best: int) -> set[int]:
    """Return the places of a line and of those it needs; of the best line's code, those between the two."""
    heads, code = outline.get_frame(place)
    if best in code:
        code = range(min(place, best), max(place, best) + 1)
    return {place, *heads, *code}


def _add(
    runs: Sequence[range], places: set[int], outline: Outline, closed: set[int], limit: int
) -> tuple[list[range], int] | None:
    """Return runs of places with more places, small gaps, and the smallest beyond the most runs; and their characters.

    None if they are too long, or too many because lines of a gap are `closed`.
    """
    grown, read = _merge(runs, places.difference(*runs), outline), outline.get_line
    gaps = [
        (read(below.start).start_char - read(above.stop - 1).end_char, above.stop, below.start)
        for above, below in pairwise(grown)
    ]
    for count, (chars, first, stop) in enumerate(sorted(gaps)):
        is_open = chars > SMALL_GAP and len(gaps) - count < MAX_RUNS
        if not is_open and closed.isdisjoint(range(first, stop)):
            grown = _merge(grown, range(first, stop), outline)
    chars = sum(_measure(run, outline) for run in grown) + len(LEFT_OUT) * (len(grown) - 1)
    return (grown, chars) if chars <= limit and len(grown) <= MAX_RUNS else None


def _merge(runs: Iterable[range], places: Iterable[int], outline: Outline) -> list[range]:
    """Return runs of places in order with more places; where a line follows another one, they are of one run."""
    merged: list[range] = []
    for own in sorted([*runs, *(range(place, place + 1) for place in places)], key=attrgetter("start")):
        is_next = merged and is_joined(outline.get_line(merged[-1].stop - 1), outline.get_line(own.start))
        merged.append(range(merged.pop().start, own.stop) if is_next else own)
    return merged


def _measure(run: range, outline: Outline) -> int:
    """Return how many characters a run has as `join_lines` returns it."""
    first, last = outline.get_line(run.start), outline.get_line(run.stop - 1)
    if first.source == "sessions":
        return sum(len(text) + 1 for place in run if (text := outline.get_line(place).text)) - 1
    return last.end_char - first.start_char


def _find_aside(table: LineTable, query_words: Collection[str]) -> frozenset[int]:
    """Return the lines of front matter that answer nothing by themselves."""
    aside: set[int] = set()
    for first in np.flatnonzero(table.numbers[: table.note_count] == 1).tolist():
        if table.get_line(first).text.removeprefix("\ufeff").rstrip() == "---":
            last = int(np.searchsorted(table.files, table.files[first] + 1))
            texts, numbers = table.get_texts(first, last), table.numbers[first:last].tolist()
            aside.update(first + at for at in find_idle_front_matter(texts, numbers, query_words))
    return frozenset(aside)


# --- whole chunks ------------------------------------------------------------------------------------------------


def list_chunks(candidates: Candidates, request: SearchRequest) -> list[SearchResult]:
    """Return the best chunks, each with its beginning as the snippet."""
    settings, results = request.settings, []
    for source in SOURCES:
        of_source = (candidate for candidate in candidates.items if candidate.stored.source == source)
        for candidate in islice(of_source, _count_pool(request)):
            stored, chunk = candidate.stored, candidate.stored.chunk
            score = candidate.score if settings.fusion != "standardised" else 1 / (1 + math.exp(-candidate.score))
            score = min(1.0, max(0.0, score))
            first, last, text = chunk.start_line, chunk.end_line, chunk.text
            if source == "sessions":
                first += len(text) - len(text.lstrip("\n"))
                last -= len(text) - len(text.rstrip("\n"))
                text = remove_blank_lines(text.strip("\n"))
            snippet = truncate_utf16(text, settings.snippet_chars).rstrip("\r\n")
            keyword = scale_bm25(-candidate.text_score) if candidate.text_score else 0.0
            share = _share_vector(candidate, keyword, settings)
            parts = {VECTOR_SCORE: candidate.vector_score, TEXT_SCORE: keyword, VECTOR_SHARE: share}
            confidence: Confidence = "weak" if score < WEAK_CHUNK_BELOW else "strong"
            results.append(SearchResult(stored.path, first, last, score, snippet, source, parts, confidence=confidence))
    return results


def _share_vector(candidate: Candidate, keyword: float, settings: SearchConfig) -> float:
    """Return the share of its vector in a chunk's score; z-scores have no parts, so weighted scores replace them."""
    vector = settings.vector_weight * candidate.vector_score
    if settings.fusion != "standardised":
        return share_of_vector(vector, candidate.score - vector)
    return share_of_vector(vector, settings.text_weight * keyword)


def show_beginning(chunks: Sequence[StoredChunk], max_chars: int) -> SearchResult:
    """Return as many whole lines from the start of a file as fit, below its front matter, as a result with score 1.

    Args:
        chunks: All chunks of the file.
        max_chars: The length of the snippet, at most.
    """
    lines = split_lines(chunks)
    texts = [line.text for line in lines]
    front = next((at for at in range(count_front_matter(texts), len(texts)) if has_content(texts[at])), 0)
    lines = lines[front:]
    end = max([1, *(at for at, line in enumerate(lines, 1) if line.end_char - lines[0].start_char <= max_chars)])
    end = find_open_code(texts[front : front + end]) or end
    snippet = join_lines(lines[:end])[:max_chars]
    return SearchResult(lines[0].path, lines[0].number, lines[end - 1].number, 1.0, snippet, lines[0].source)
