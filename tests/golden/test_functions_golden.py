"""Our functions beside OpenClaw's own: for the same input, the outputs that OpenClaw 2026.9.6 and 2026.2.19 gave.

`GROUPS` says which of our callables answers for which function of OpenClaw, `GROUPS_OF_2026_2` where another one does
for the older version, `NOT_MAPPED` why some have none, and `DIFFERENCES` where we decided otherwise. `GOLDEN_FILE` runs
another file of the same shape.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from openclaw_memory.chunking import sliding_window
from openclaw_memory.config.sections import CompactionConfig, SearchConfig, SessionsConfig, check_section
from openclaw_memory.embeddings.vectors import pack
from openclaw_memory.errors import ConfigError, InvalidInputError
from openclaw_memory.flush import Flush
from openclaw_memory.openclaw import bm25_rank_to_score, chunk_markdown, merge_hybrid_results
from openclaw_memory.search import ranking
from openclaw_memory.text.days import get_path_day
from openclaw_memory.text.silent_reply import NO_REPLY
from openclaw_memory.text.utf16 import truncate_utf16
from openclaw_memory.tools.visibility import has_citations
from openclaw_memory.types import Chunk, SearchResult
from openclaw_memory.types.files import format_citation
from openclaw_memory.workspace import Workspace
from openclaw_memory.workspace.excerpts import make_excerpt
from openclaw_memory.workspace.files import WorkspaceFiles
from openclaw_memory.workspace.paths import rank_path_match
from openclaw_memory.workspace.transcript_records import clean_message, join_texts, normalise_line
from openclaw_memory.workspace.transcripts import read_parts

SHIPPED = Path(__file__).with_name("functions.json")


# --- our answers in OpenClaw's shapes
def number(value: Any) -> Any:
    """JSON has no NaN and no infinity: the files write them as words."""
    return float(value) if value in ("NaN", "Infinity", "-Infinity") else value


def chunked(given: Any, chunker: Callable[..., Iterator[Chunk]] = sliding_window.chunk_tokens) -> list[dict[str, Any]]:
    chunks = list(chunker(given["content"], given["tokens"], given["overlap"]))
    return [{**placed(c), "hash": sha256(as_utf8(c.text)).hexdigest()} for c in chunks]


def chunked_per_entry(given: Any) -> list[dict[str, Any]]:
    spans = [entry for entry in sliding_window.split_entries(given["content"]) if entry.is_item]
    found = []
    for c in sliding_window.chunk_tokens(given["content"], given["tokens"], given["overlap"], per_entry=True):
        own = next((entry for entry in spans if entry.start_line <= c.start_line <= entry.end_line), None)
        bounds = {"entryStartLine": own and own.start_line, "entryEndLine": own and own.end_line}
        found.append(placed(c) | bounds)
    return found


def placed(c: Chunk) -> dict[str, Any]:
    return {"startLine": c.start_line, "endLine": c.end_line, "text": c.text}


def as_utf8(text: str) -> bytes:
    """As JavaScript writes it: a lone surrogate becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def dated(path: str) -> dict[str, Any]:
    day = get_path_day(path)
    return {"date": day.isoformat() if day else None, "evergreen": day is None}


def ages_by_its_last_change(path: str, evergreen: str) -> bool:
    """As OpenClaw has it: what lies outside `memory/`, and what is named after a day that does not exist."""
    named = re.search(r"/\d{4}-\d{2}-\d{2}[^/]*\.md$", path)
    inside = path in {"MEMORY.md", evergreen} or path.startswith("memory/")
    return get_path_day(path) is None and (not inside or named is not None)


def is_tied(rows: Sequence[Mapping[str, Any]]) -> bool:
    return len({row["vectorScore"] for row in rows}) < len(rows)


def reranked(given: Any) -> list[str]:
    items = given["items"]
    if given.get("enabled"):
        items = ranking.rank_by_mmr(
            items, given.get("lambda", 0.7), lambda item: number(item["score"]), lambda item: item["snippet"]
        )
    return [item["id"] for item in items]


def merged(given: Any, score: Callable[[Mapping[str, Any]], float] | None = None) -> list[dict[str, Any]]:
    now = datetime.fromtimestamp(given["nowMs"] / 1000, UTC)
    answers, half_life = answers_of(given, score or keyword_score), given.get("temporalDecay", {}).get("halfLifeDays")
    aged = answers if half_life is None else ranking.apply_age(answers, [], half_life, now)
    order = ranking.order_results(aged, exact_question(given), given.get("mmr", {}).get("lambda"))
    return [
        {
            "path": found.path,
            "startLine": found.start_line,
            "endLine": found.end_line,
            "score": found.score,
            "vectorScore": found.parts[ranking.VECTOR_SCORE],
            "textScore": found.parts[ranking.TEXT_SCORE],
            "snippet": found.snippet,
        }
        for found in order
    ]


def merged_as_in_2026_2(given: Any) -> list[dict[str, Any]]:
    """Without boosts, and without naming the scores of each search."""
    found = merged(given, lambda row: row["textScore"])
    return [{name: one for name, one in row.items() if name not in {"vectorScore", "textScore"}} for row in found]


def answers_of(given: Any, score: Callable[[Mapping[str, Any]], float]) -> list[SearchResult]:
    rows: dict[str, dict[str, Any]] = {}
    for row in (*given["vector"], *given["keyword"]):
        earlier = rows.get(row["id"], {"vectorScore": 0, "textScore": 0})
        rows[row["id"]] = earlier | row | {"snippet": row["snippet"] or earlier.get("snippet", "")}
    vector = {at: row["vectorScore"] for at, row in rows.items()}
    keyword = {at: score(row) for at, row in rows.items()}
    scores = merge_hybrid_results(vector, keyword, given["vectorWeight"], given["textWeight"])
    return [
        SearchResult(
            *(row[name] for name in ("path", "startLine", "endLine")),
            scores[at],
            row["snippet"],
            row["source"],
            {ranking.VECTOR_SCORE: row["vectorScore"], ranking.TEXT_SCORE: row["textScore"]},
        )
        for at, row in rows.items()
    ]


def keyword_score(row: Mapping[str, Any]) -> float:
    if row["textScore"] > 0:
        return float(row.get("rankingScore", row["textScore"]))
    return 0.0 if row.get("exactPathSpecificity") else float(row.get("pathScore", 0))


def exact_question(given: Any) -> str:
    """A question that names the files which OpenClaw was told are named: by their name, at each tier but the first."""
    return next((Path(row["path"]).name for row in given["keyword"] if row.get("exactPathSpecificity")), "")


def chosen(given: Any) -> list[str]:
    by_keyword = {row["path"] for row in given["keyword"]}
    answers = [
        SearchResult(
            row["path"],
            row["startLine"],
            row["endLine"],
            row["score"],
            "",
            row["source"],
            {ranking.VECTOR_SCORE: row["vectorScore"], ranking.TEXT_SCORE: float(row["path"] in by_keyword)},
        )
        for row in given["merged"]
    ]
    settings = SearchConfig(min_score=given["minScore"], max_results=given["maxResults"])
    return [result.path for result in ranking.select_results(answers, settings, 1.0)]


def read(given: Any) -> dict[str, Any]:
    """Our excerpt says with `next_start` and `cut` what OpenClaw says in a footer."""
    names = {"from": "start", "lines": "lines", "maxChars": "max_chars"}
    wanted = {ours: number(given[theirs]) for theirs, ours in names.items() if theirs in given}
    try:
        found = make_excerpt(given["relPath"], given["content"], **wanted)
    except InvalidInputError as error:
        return {"error": str(error)}
    result = {"status": "ok", "text": found.text, "path": found.path}
    result |= {"from": found.start_line, "lines": found.end_line - found.start_line + 1}
    if found.cut:
        footer = "Requested excerpt exceeded the default maxChars budget."
        return result | {"text": f"{found.text}\n\n[More content available. {footer}]", "truncated": True}
    if found.next_start:
        footer = f"Use from={found.next_start} to continue."
        result |= {"text": f"{found.text}\n\n[More content available. {footer}]", "truncated": True}
        result |= {"nextFrom": found.next_start}
    return result


def entry(given: Any) -> dict[str, Any]:
    """OpenClaw leaves out the lines that show nothing, and wraps long ones at 800 UTF-16 units, each with its label."""
    text = "".join(part.text for part in read_parts(BytesIO(given["jsonl"].encode("utf-8", "surrogatepass"))))
    shown = [(number, line.partition(": ")) for number, line in enumerate(text.split("\n"), 1) if line]
    rows = [(number, f"{label}: {piece}") for number, (label, _, said) in shown for piece in wrapped(said, 800)]
    return {"content": "\n".join(row for _, row in rows), "lineMap": [number for number, _ in rows]}


def wrapped(text: str, units: int) -> list[str]:
    """A text in pieces of at most so many UTF-16 units, parted at blanks where there are any."""
    pieces = []
    while (head := truncate_utf16(text, units)) != text:
        blank = len(head) if text[len(head)] == " " else head.rfind(" ")
        cut = blank if blank > 0 else len(head)
        pieces.append(text[:cut].strip())
        text = text[cut:].lstrip()
    return [*pieces, text]


def flush_plan(given: Any) -> dict[str, Any] | None:
    """What OpenClaw plans for a flush at noon of a day, of a window of `cw` tokens."""
    theirs = {"enabled": "flush", "softThresholdTokens": "soft_threshold_tokens"}
    theirs |= {"forceFlushTranscriptBytes": "force_flush_bytes"}
    told = {ours: given["memoryFlush"][name] for name, ours in theirs.items() if name in given.get("memoryFlush", {})}
    try:
        rules = check_section("compaction", CompactionConfig(**told), [])
    except ConfigError as error:
        return {"error": str(error)}
    if not rules.flush:
        return None
    folder = Workspace(WorkspaceFiles(Path("/nowhere")), sessions=SessionsConfig(timezone=given.get("tz", "UTC")))
    day = folder.get_time(datetime(2026, 11, 21, 12, tzinfo=UTC)).date()
    return {
        "softThresholdTokens": rules.get_soft_threshold(given.get("cw")),
        "forceFlushTranscriptBytes": rules.force_flush_bytes,
        "reserveTokensFloor": rules.get_reserve(given.get("cw")),
        "relativePath": folder.files.find_day(day),
        "promptHasNoReply": NO_REPLY in Flush.make_prompt(folder, rules, day),
    }


# --- the tables ---

GROUPS: Mapping[str, Callable[[Any], Any]] = {
    "chunkMarkdown": chunked,
    "chunkMarkdownPerEntry": chunked_per_entry,
    "estimateStringChars": sliding_window.estimate_chars,
    "truncateUtf16Safe": lambda given: truncate_utf16(given["text"], given["max"]),
    "splitTextToUtf8ByteLimit": lambda given: sliding_window.split_utf8(given["text"], given["maxBytes"]),
    "enforceEmbeddingMaxInputTokens": lambda given: sliding_window.split_utf8(given["text"], given["maxInputTokens"]),
    "buildMemoryEmbeddingBatches": lambda given: list(
        pack(given["byteLengths"], len(given["byteLengths"]) + 1, given["max"], lambda length: length)
    ),
    "stripMemoryAnnotationCarriers": sliding_window.strip_annotations,
    "datedMemoryPath": dated,
    "exactPathSpecificity": lambda given: rank_path_match(given["query"], given["path"]),
    "buildMemoryReadResult": read,
    "formatCitation": lambda given: format_citation(given["path"], (given["startLine"], given["endLine"])),
    "memoryFlushPlan": flush_plan,
    "shouldIncludeCitations": lambda given: has_citations(given["mode"], given.get("sessionKey")),
    "bm25RankToScore": lambda given: bm25_rank_to_score(number(given)),
    "scoreFallbackKeywordResult": lambda given: ranking.boost_keyword_score(
        given["query"], given["path"], given["text"], number(given["ftsScore"])
    ),
    "temporalDecayScore": lambda given: ranking.decay_score(*map(number, (given["score"], given["ageInDays"], given["halfLifeDays"]))),
    "mmrRerank": reranked,
    "mmrTokenize": lambda given: sorted(ranking.split_mmr_words(given)),
    "textSimilarity": lambda given: ranking.compare_texts(*given, *map(ranking.split_mmr_words, given)),
    "mergeHybridResults": merged,
    "selectHybridSearchResults": chosen,
    "normalizeSessionText": normalise_line,
    "sessionContentText": join_texts,
    "sanitizeSessionText": lambda given: clean_message(given["role"], given["text"]),
    "buildSessionEntry": entry,
}  # fmt: skip

GROUPS_OF_2026_2: Mapping[str, Callable[[Any], Any]] = {
    "chunkMarkdown": lambda given: chunked(given, chunk_markdown),
    "mergeHybridResults": merged_as_in_2026_2,
    "sessionContentText": lambda given: normalise_line(join_texts(given) or "") or None,
}

NOT_MAPPED: Mapping[str, str] = {
    "buildFtsQuery": "the index and the query hold segmented terms, so Chinese, identifiers and accents are found",
    "planKeywordSearch_trigram": "the index and the query hold segmented terms, so Chinese, identifiers and accents are found",
    "extractKeywords": "the index and the query hold segmented terms, so Chinese, identifiers and accents are found",
    "cosineSimilarity": "vectors have length 1, so numpy's dot product does it",
    "importanceMultiplier": "annotations in curated files do not count in the ranking",
    "projectScoreMultiplier": "annotations in curated files do not count in the ranking",
    "extractCuratedEntryRecallMetadata": "annotations in curated files do not count in the ranking",
    "splitLongSessionLine": "the chunker cuts long lines, as in notes",
    "parseSessionTimestampMs": "a message is as old as its day, in the time zone of its timestamp",
}


class Difference(NamedTuple):
    """Where we decided otherwise: for which inputs, why, and in how many of the shipped cases it shows."""

    group: str
    reason: str
    shipped: int
    applies: Callable[[Any], bool]


DIFFERENCES = (
    Difference(
        "buildSessionEntry", "OpenClaw keeps the ends of a long password; we keep nothing", 1,
        lambda given: "password=" in given["jsonl"]
    ),
    Difference(
        "datedMemoryPath", "only a date in its name makes a note old; OpenClaw ages `memory.md` and files outside `memory/` by their last change",
        12, lambda path: ages_by_its_last_change(path, "USER.md") or get_path_day(path) is not None
    ),
    Difference(
        "splitTextToUtf8ByteLimit",
        "below a limit of 4 bytes OpenClaw drops a 4-byte character and the rest; we keep it", 1,
        lambda given: given["maxBytes"] < 4 and any(character > "\uffff" for character in given["text"])
    ),
    Difference(
        "mmrRerank", "a score that is not a number ranks last; in OpenClaw it stays on top, or no result is left", 2,
        lambda given: any(not math.isfinite(number(item["score"])) for item in given["items"])
    ),
    Difference(
        "buildMemoryReadResult", "lines are whole numbers from 1; OpenClaw guesses at 0, -3 or 2.7", 5,
        lambda given: any(not isinstance(given.get(name, 1), int) or given.get(name, 1) < 1 for name in ("from", "lines"))
    ),
    Difference(
        "mergeHybridResults", "OpenClaw multiplies by the annotated importance of a curated entry; we do not", 2,
        lambda given: any("importance" in row for row in (*given["vector"], *given["keyword"]))
    ),
    Difference(
        "memoryFlushPlan", "settings are whole numbers in a range; OpenClaw guesses at -1, 1.9 or `5mb`",
        3, lambda given: any(not isinstance(value, int) or value < 0 for value in given.get("memoryFlush", {}).values())
    ),
)  # fmt: skip

DIFFERENCES_FROM_2026_2 = (
    Difference(
        "chunkMarkdown",
        "no character is cut in two; an overlap larger than a chunk is cut to its size, where 2026.2 repeats the whole file", 3,
        lambda given: given["overlap"] > given["tokens"] or any(character > "\uffff" for character in given["content"])
    ),
    Difference(
        "bm25RankToScore", "the score is r/(1 + r) of the rank without its sign; in 2026.2 every match scores 1",
        4, lambda given: number(given) < 0
    ),
    Difference(
        "datedMemoryPath", "only a date in its name or folders makes a note old; 2026.2 ages `USER.md` and files outside `memory/` by their last change",
        16, lambda path: ages_by_its_last_change(path, "memory.md") or get_path_day(path) is not None
    ),
    Difference(
        "mmrTokenize", "Chinese, Japanese and Korean characters and pairs are words too", 5,
        lambda given: not given.isascii()
    ),
    Difference(
        "mmrRerank", "texts without words are alike only if equal; a score that is not a number ranks last", 8,
        lambda given: any(not item["snippet"].isascii() or not math.isfinite(number(item["score"])) for item in given["items"])
    ),
    Difference(
        "mergeHybridResults", "a file that the query names comes first; ties are ordered by text score, path and line",
        3, lambda given: any("exactPathSpecificity" in row for row in given["keyword"]) or is_tied(given["vector"])
    ),
)  # fmt: skip


# --- the tests
def load(path: Path) -> dict[str, list[dict[str, Any]]]:
    groups = json.loads(path.read_text(encoding="utf-8"))
    return {group: cases for group, cases in groups.items() if group != "meta"}


def cases(path: Path, column: str = "") -> list[Any]:
    """The cases of each mapped group that have a column, or all of them, with their numbers and names."""
    found = {
        group: [
            (f"{group}-{index}-{case.get('name', '')}".rstrip("-"), case)
            for index, case in enumerate(group_cases)
            if not column or column in case
        ]
        for group, group_cases in load(path).items()
        if group in GROUPS
    }
    return [pytest.param(group, rows, id=group) for group, rows in found.items() if rows]


def expected(case: Mapping[str, Any]) -> Any:
    """What OpenClaw gave, but for the path of a transcript, which the function that reads one does not know.

    How long OpenClaw's prompts are is nobody's business either.
    """
    found = case["current"] if "current" in case else case["current_raw"]
    if isinstance(found, dict) and "promptLen" in found:
        return {key: value for key, value in found.items() if key != "promptLen"}
    is_transcript = isinstance(found, dict) and "lineMap" in found
    return {key: found[key] for key in ("content", "lineMap")} if is_transcript else found


def differs(group: str, case: Mapping[str, Any]) -> bool:
    return not alike(GROUPS[group](case["input"]), expected(case))


def differs_from_2026_2(group: str, case: Mapping[str, Any]) -> bool:
    return not alike((dict(GROUPS) | dict(GROUPS_OF_2026_2))[group](case["input"]), case["feb"])


def alike(ours: Any, theirs: Any) -> bool:
    """Equal, where numbers may differ in their last digits: the order of additions is nobody's promise."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(alike(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list | tuple) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=0.0)
    return bool(ours == theirs)


@pytest.mark.parametrize(("group", "rows"), cases(Path(os.environ.get("GOLDEN_FILE", SHIPPED))))
def test_our_function_answers_as_openclaw_does(group, rows):
    for name, case in rows:
        if any(known.group == group and known.applies(case["input"]) for known in DIFFERENCES):
            continue  # whether it shows is counted below
        assert not differs(group, case), f"{name}: {GROUPS[group](case['input'])!r}\nis not\n{expected(case)!r}"


@pytest.mark.parametrize(("group", "rows"), cases(Path(os.environ.get("GOLDEN_FILE", SHIPPED)), "feb"))
def test_our_function_answers_as_openclaw_did_in_2026_2(group, rows):
    for name, case in rows:
        if any(known.group == group and known.applies(case["input"]) for known in DIFFERENCES_FROM_2026_2):
            continue  # whether it shows is counted below
        assert not differs_from_2026_2(group, case), f"{name}: {case['feb']}"


@pytest.mark.parametrize(
    ("differences", "shows"),
    [(DIFFERENCES, differs), (DIFFERENCES_FROM_2026_2, differs_from_2026_2)],
    ids=["2026.9", "2026.2"],
)
def test_each_difference_shows_in_as_many_shipped_cases_as_it_says(differences, shows):
    shipped = load(SHIPPED)
    shown = Counter(
        known.reason
        for known in differences
        for case in shipped[known.group]
        if known.applies(case["input"]) and shows(known.group, case)
    )
    assert shown == {known.reason: known.shipped for known in differences}


def test_every_group_is_mapped_or_has_a_reason_not_to_be():
    known = [*GROUPS, *NOT_MAPPED]
    assert sorted(known) == sorted(set(known))
    assert set(load(Path(os.environ.get("GOLDEN_FILE", SHIPPED)))) <= set(known)
