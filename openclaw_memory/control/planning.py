"""Plan a forgetting: select the files, lines and messages that go (pure)."""

from __future__ import annotations

import datetime
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import accumulate
from typing import Any

from openclaw_memory.control.contents import Content
from openclaw_memory.conversation.snapshots import PREFIX, TITLE, is_snapshot
from openclaw_memory.text.days import is_within
from openclaw_memory.text.policies import iterate_leaves
from openclaw_memory.types.codec import SUFFIX, get_plain_name
from openclaw_memory.types.files import Skipped, Span, format_citation
from openclaw_memory.types.results import Action, ForgetPlan, Kind, Review, Step
from openclaw_memory.workspace.excerpts import split_lines
from openclaw_memory.workspace.paths import is_record
from openclaw_memory.workspace.tombstones import Line

_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A request to forget days from `since` on, texts with `query`, or files and lines by name.

    `key` is a glob of the keys of records, `session` the path of a transcript, whose snapshots have one of the ids
    `session_ids`. `paths` are files, each with the lines
    that go, or none for all of it.
    """

    since: datetime.date | None = None
    query: str | None = None
    key: str | None = None
    session: str | None = None
    session_ids: frozenset[str] = frozenset()
    paths: Mapping[str, Sequence[Span]] = field(default_factory=dict)

    def may_concern(self, path: str, text: str | None) -> bool:
        """Return whether a file may be a part of the plan: by its path, or a note by its text, once that is read."""
        if path in self.paths or self.since:
            return True
        if text is not None:
            return PREFIX in text or (self.query is not None and fold_words(self.query) in fold_words(text))
        reads_all = self.query or self.session or any(map(is_snapshot, self.paths))
        return bool(reads_all) or (self.key is not None and is_record(path))


@dataclass(slots=True)
class _Match:
    """The lines of one file that go, and the reviews."""

    action: Action | None = None
    lines: set[int] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    review: list[Review] = field(default_factory=list)
    digest: str = ""

    def remove_file(self, reason: str) -> None:
        self.action = "remove"
        self.reasons.append(reason)

    def add_lines(self, kind: Kind, lines: Iterable[int], reason: str) -> None:
        added = set(lines)
        if added:
            self.lines |= added
            self.action = self.action or ("messages" if kind == "transcript" else "lines")
            self.reasons.append(reason)


def plan_forgetting(
    request: ForgetRequest,
    contents: Iterable[Content],
    skipped: Iterable[Skipped] = (),
    states: Mapping[str, str | None] | None = None,
    zone: datetime.tzinfo | None = None,
) -> ForgetPlan:
    """Return the plan. It reads nothing but its arguments, and is the same for the same.

    Args:
        request: The request to forget.
        contents: Everything that is remembered.
        skipped: Unreadable files, and why.
        states: The transcript of each key of `sessions.json`, by its path.
        zone: The zone of days; the machine's where None.
    """
    steps, review = list[Step](), list[Review]()
    every = [(content, _match_file(request, content, zone)) for content in contents]
    lost = {item.item.path for item, match in every if item.item.kind == "snapshot" and match.action is not None}
    for content, match in every:
        if lost and content.item.kind == "day" and match.action != "remove":
            match.add_lines("day", find_mentions(lost, split_lines(content.text)), "they name a snapshot that goes")
        review += match.review
        if match.action is not None:
            spans = () if match.action == "remove" else merge_lines(match.lines)
            item, reason = content.item, "; ".join(match.reasons)
            digest = match.digest or sha256(content.data).hexdigest()
            steps.append(Step(item.path, item.kind, match.action, spans, reason, digest, item.size))
    review += [Review(item.path, f"it could not be read: {item.reason}") for item in skipped]
    removed = {get_plain_name(step.path) for step in steps if step.action == "remove"}
    removed |= {request.session} if request.session else set()
    keys = tuple(sorted(key for key, path in (states or {}).items() if path in removed))
    steps.sort(key=lambda step: step.path)
    review.sort(key=lambda item: item.where)
    digest = sha256(repr((steps, keys)).encode("utf-8", "surrogatepass")).hexdigest()
    return ForgetPlan(tuple(steps), tuple(review), keys, digest)


def merge_lines(lines: Iterable[int]) -> tuple[Span, ...]:
    """Return lines as runs, in their order."""
    spans: list[Span] = []
    for line in sorted(lines):
        if spans and line == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], line
        else:
            spans.append((line, line))
    return tuple(spans)


def _match_file(request: ForgetRequest, content: Content, zone: datetime.tzinfo | None) -> _Match:
    match, item = _Match(), content.item
    spans = request.paths.get(item.path)
    if spans is not None and not spans:
        match.remove_file("it was named")
    elif spans and item.kind != "transcript":
        match.add_lines(item.kind, expand_spans(spans), "these lines were named")
    if item.kind == "transcript":
        match.digest = _match_transcript(match, request, content, spans or ())
        return match
    if item.kind == "snapshot" and item.key in request.session_ids:
        match.remove_file("it is a snapshot of the session")
    if request.since is not None:
        _match_day(match, request.since, content, zone)
    if request.query is not None:
        _match_words(match, request.query, content)
    key, glob = (item and unicodedata.normalize("NFC", item) for item in (item.key, request.key))
    if glob is not None and item.kind == "record" and key is not None and fnmatchcase(key, glob):
        match.remove_file(f"its key matches {request.key!r}")
    return match


def find_mentions(snapshots: Iterable[str], lines: Sequence[str]) -> set[int]:
    """Return the 1-based lines of a note that name snapshots, with the heading of each."""
    # One may have been sealed, or unsealed, since.
    links = [f"{get_plain_name(path)}{ending})" for path in snapshots for ending in ("", SUFFIX)]
    match = set[int]()
    for number, line in enumerate(lines, 1):
        if any(link in line for link in links):
            match.add(number)
            if number > 2 and not lines[number - 2].strip() and lines[number - 3].rstrip().endswith(f"- {TITLE}"):
                match |= {number - 1, number - 2}
    return match


def _match_transcript(match: _Match, request: ForgetRequest, content: Content, spans: Sequence[Span]) -> str:
    """Note which messages of a transcript go, and return its digest; "" where none can."""
    item, digest = content.item, sha256()
    if request.session == get_plain_name(item.path):
        match.remove_file("it is the transcript of the session")
    looks_at_days = request.since is not None and (item.last_date is None or item.last_date >= request.since)
    if not (match.action or looks_at_days or request.query is not None or spans):
        return ""
    lines, left = list[Line](), item.size
    for line in content.read_turns():
        left -= len(line.data)
        if left < 0:  # added since it was looked at: no part of this plan
            break
        digest.update(line.data)
        if match.action != "remove" and line.is_content:
            lines.append(line)
    if (since := request.since) is not None:
        of_days = (line.number for line in lines if is_within(line.day, since))
        match.add_lines(item.kind, of_days, f"said on {since} or later")
        if undated := [line.number for line in lines if line.day is None]:
            match.review.append(Review(format_citation(item.path, *merge_lines(undated)), "messages without a date"))
    if request.query is not None:
        words = fold_words(request.query)
        saying = (line.number for line in lines if words in fold_words(_join_values(line.record, line.data)))
        match.add_lines(item.kind, saying, "they say it")
    numbers = {*expand_spans(spans)}.intersection(line.number for line in lines)
    match.add_lines(item.kind, numbers, "these lines were named")
    return digest.hexdigest()


def _match_day(match: _Match, since: datetime.date, content: Content, zone: datetime.tzinfo | None) -> None:
    item = content.item
    changed = item.changed.astimezone(zone).date()
    recent = {at for at, day in enumerate(content.days, 1) if is_within(day, since)}
    if item.kind != "note" and is_within(item.date, since):
        match.remove_file(f"it is of {item.date}" if item.kind == "day" else f"created on {item.date}")
    elif match.action == "remove":
        return
    elif is_within(content.updated, since):
        match.review.append(Review(item.path, f"created on {item.date}, and changed on {content.updated}"))
    elif (item.date is None or None in content.days) and is_within(changed, since):
        match.review.append(Review(item.path, f"it is of no day, and was changed on {changed}"))
    if match.action != "remove":
        match.add_lines(item.kind, recent, f"they are of {since} or later")


def _match_words(match: _Match, query: str, content: Content) -> None:
    item = content.item
    if match.action == "remove":
        return
    if item.kind in {"record", "document", "snapshot"}:
        if fold_words(query) in fold_words(f"{content.text}\n{_join_values(content.fields)}"):
            match.remove_file("it says it")
        return
    if lines := find_lines(query, split_lines(content.text)):
        match.add_lines(item.kind, {at for at in lines if content.days[at - 1]}, "they say it")
        if left := sorted(lines - match.lines):
            where = format_citation(item.path, *merge_lines(left))
            match.review.append(Review(where, "it says it, in a note that is of no day"))


def find_lines(query: str, lines: Sequence[str]) -> set[int]:
    """Return the 1-based lines that hold the words of a query, in its order, also across the end of a line.

    Args:
        query: The words; case and the kind of blanks do not count.
        lines: The lines of a note.
    """
    words, folded = fold_words(query), [fold_words(line) for line in lines]
    starts = list(accumulate((len(line) + 1 for line in folded), initial=0))
    text, at, match = " ".join(folded), -1, set[int]()
    while (at := text.find(words, at + 1)) >= 0:
        match |= set(range(bisect_right(starts, at), bisect_right(starts, at + len(words) - 1) + 1))
    return match


def fold_words(text: str) -> str:
    """Return a text as it is compared: composed, without case, and with one space for each run of blanks."""
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", text).casefold()).strip()


def _join_values(value: Any, otherwise: bytes = b"") -> str:
    """Return all names and values in JSON, a line each; the bytes as text if there is none."""
    if value is None:
        return otherwise.decode("utf-8", "replace")
    return "\n".join(str(item) for item in iterate_leaves(value) if item is not None)


def expand_spans(spans: Sequence[Span]) -> Iterator[int]:
    """Yield the number of each line of runs."""
    for first, last in spans:
        yield from range(first, last + 1)
