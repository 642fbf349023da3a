"""Plan what is forgotten: from what is there and what was asked, which files, lines and messages go (pure)."""

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
from openclaw_memory.conversation.snapshots import TITLE
from openclaw_memory.text.policies import iterate_leaves
from openclaw_memory.types import Skipped
from openclaw_memory.types.codec import SUFFIX, get_plain_name
from openclaw_memory.types.control import Action, ForgetPlan, Kind, Review, Step
from openclaw_memory.types.files import Span, citation
from openclaw_memory.workspace.excerpts import split_lines
from openclaw_memory.workspace.paths import is_record, parse_note_date
from openclaw_memory.workspace.tombstones import Line

_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be forgotten: what is of the days from `since` on, or says `query`, or is named.

    `key` is a glob of the keys of records, `session` the path of a transcript, whose snapshots have one of the ids
    `session_ids`. `named` are files, each with the lines
    that go, or none for all of it.
    """

    since: datetime.date | None = None
    query: str | None = None
    key: str | None = None
    session: str | None = None
    session_ids: frozenset[str] = frozenset()
    named: Mapping[str, Sequence[Span]] = field(default_factory=dict)


@dataclass(slots=True)
class _Found:
    """What of one file goes, and what is to be looked at."""

    action: Action | None = None
    lines: set[int] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    review: list[Review] = field(default_factory=list)

    def whole(self, reason: str) -> None:
        self.action = "remove"
        self.reasons.append(reason)

    def part(self, kind: Kind, lines: Iterable[int], reason: str) -> None:
        added = set(lines)
        if added:
            self.lines |= added
            self.action = self.action or ("messages" if kind == "transcript" else "lines")
            self.reasons.append(reason)


def plan(
    wanted: Wanted,
    there: Iterable[Content],
    skipped: Iterable[Skipped] = (),
    states: Mapping[str, str | None] | None = None,
    zone: datetime.tzinfo | None = None,
) -> ForgetPlan:
    """Return what goes. It reads nothing but what it is handed, and is the same for the same.

    Args:
        wanted: What is to be forgotten.
        there: Everything that is remembered.
        skipped: What could not be read, and why.
        states: The transcript of each key of `sessions.json`, by its path.
        zone: The zone of days; the machine's where None.
    """
    steps, review = list[Step](), list[Review]()
    every = [(content, *_found(wanted, content, zone)) for content in there]
    lost = {one.item.path for one, found, _ in every if one.item.kind == "snapshot" and found.action is not None}
    for content, found, seen in every:
        digest = seen
        if lost and content.item.kind == "day" and found.action != "remove":
            found.part("day", mentions(lost, split_lines(content.text)), "they name a snapshot that goes")
            digest = digest or sha256(content.data).hexdigest()
        review += found.review
        if found.action is not None:
            spans = () if found.action == "remove" else spans_of(found.lines)
            item, reason = content.item, "; ".join(found.reasons)
            steps.append(Step(item.path, item.kind, found.action, spans, reason, digest, item.size))
    review += [
        Review(one.path, f"it could not be read: {one.reason}") for one in skipped if _may_hold(wanted, one.path)
    ]
    gone = {get_plain_name(step.path) for step in steps if step.action == "remove"}
    gone |= {wanted.session} if wanted.session else set()
    keys = tuple(sorted(key for key, path in (states or {}).items() if path in gone))
    steps.sort(key=lambda step: step.path)
    review.sort(key=lambda one: one.where)
    digest = sha256(repr((steps, keys)).encode("utf-8", "surrogatepass")).hexdigest()
    return ForgetPlan(tuple(steps), tuple(review), keys, digest)


def _may_hold(wanted: Wanted, path: str) -> bool:
    """Return whether a file that could not be read may hold what is to be forgotten."""
    if wanted.since is not None or wanted.query is not None:
        day = parse_note_date(path)
        return wanted.since is None or day is None or day >= wanted.since
    return get_plain_name(path) == wanted.session or (wanted.key is not None and is_record(path))


def spans_of(lines: Iterable[int]) -> tuple[Span, ...]:
    """Return lines as runs, in their order.

    Args:
        lines: Numbers of lines.
    """
    spans: list[Span] = []
    for line in sorted(lines):
        if spans and line == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], line
        else:
            spans.append((line, line))
    return tuple(spans)


def _found(wanted: Wanted, content: Content, zone: datetime.tzinfo | None) -> tuple[_Found, str]:
    """Return what of a file goes, and the digest of the file."""
    found, item = _Found(), content.item
    named = wanted.named.get(item.path)
    if named is not None and not named:
        found.whole("it was named")
    elif named and item.kind != "transcript":
        found.part(item.kind, _numbers(named), "these lines were named")
    if item.kind == "transcript":
        return found, _of_transcript(found, wanted, content, named or ())
    if item.kind == "snapshot" and item.key in wanted.session_ids:
        found.whole("it is a snapshot of the session")
    if wanted.since is not None:
        _by_day(found, wanted.since, content, zone)
    if wanted.query is not None:
        _by_words(found, wanted.query, content)
    key, glob = (one and unicodedata.normalize("NFC", one) for one in (item.key, wanted.key))
    if glob is not None and item.kind == "record" and key is not None and fnmatchcase(key, glob):
        found.whole(f"its key matches {wanted.key!r}")
    return found, sha256(content.data).hexdigest() if found.action is not None else ""


def mentions(snapshots: Iterable[str], lines: Sequence[str]) -> set[int]:
    """Return the 1-based lines of a note that name snapshots, with the heading of each.

    Args:
        snapshots: Their paths.
        lines: The lines of the note.
    """
    # One may have been sealed, or unsealed, since.
    links = [f"](../{get_plain_name(path)}{ending})" for path in snapshots for ending in ("", SUFFIX)]
    found = set[int]()
    for number, line in enumerate(lines, 1):
        if any(link in line for link in links):
            found.add(number)
            if number > 2 and not lines[number - 2].strip() and lines[number - 3].rstrip().endswith(f"- {TITLE}"):
                found |= {number - 1, number - 2}
    return found


def _of_transcript(found: _Found, wanted: Wanted, content: Content, named: Sequence[Span]) -> str:
    """Note which messages of a transcript go, and return its digest; "" where none can."""
    item, digest = content.item, sha256()
    if wanted.session == get_plain_name(item.path):
        found.whole("it is the transcript of the session")
    looks_at_days = wanted.since is not None and (item.last_date is None or item.last_date >= wanted.since)
    if not (found.action or looks_at_days or wanted.query is not None or named):
        return ""
    lines, left = list[Line](), item.size
    for line in content.turns():
        left -= len(line.data)
        if left < 0:  # added since it was looked at: no part of this plan
            break
        digest.update(line.data)
        if found.action != "remove" and line.is_content:
            lines.append(line)
    if (since := wanted.since) is not None:
        of_days = (line.number for line in lines if line.day is not None and line.day >= since)
        found.part(item.kind, of_days, f"said on {since} or later")
        if undated := [line.number for line in lines if line.day is None]:
            found.review.append(Review(citation(item.path, *spans_of(undated)), "messages without a date"))
    if wanted.query is not None:
        words = plain_words(wanted.query)
        saying = (line.number for line in lines if words in plain_words(_said(line.record, line.data)))
        found.part(item.kind, saying, "they say it")
    found.part(item.kind, {*_numbers(named)}.intersection(line.number for line in lines), "these lines were named")
    return digest.hexdigest()


def _by_day(found: _Found, since: datetime.date, content: Content, zone: datetime.tzinfo | None) -> None:
    item = content.item
    changed = item.changed.astimezone(zone).date()
    if item.date is not None and item.date >= since:
        found.whole(f"it is of {item.date}" if item.kind == "day" else f"created on {item.date}")
    elif found.action == "remove":
        return
    elif content.updated is not None and content.updated >= since:
        found.review.append(Review(item.path, f"created on {item.date}, and changed on {content.updated}"))
    elif item.date is None and changed >= since:
        found.review.append(Review(item.path, f"it is of no day, and was changed on {changed}"))


def _by_words(found: _Found, query: str, content: Content) -> None:
    item = content.item
    if found.action == "remove":
        return
    if item.kind in {"record", "document", "snapshot"}:
        if plain_words(query) in plain_words(f"{content.text}\n{_said(content.fields)}"):
            found.whole("it says it")
        return
    if lines := lines_saying(query, split_lines(content.text)):
        if item.kind == "day":
            found.part(item.kind, lines, "they say it")
        elif left := sorted(lines - found.lines):
            where = citation(item.path, *spans_of(left))
            found.review.append(Review(where, "it says it, in a note that is of no day"))


def lines_saying(query: str, lines: Sequence[str]) -> set[int]:
    """Return the 1-based lines that hold the words of a query, in its order, though a line ends between two of them.

    Args:
        query: The words; case and the kind of blanks do not count.
        lines: The lines of a note.
    """
    words, shown = plain_words(query), [plain_words(line) for line in lines]
    starts = list(accumulate((len(line) + 1 for line in shown), initial=0))
    text, at, found = " ".join(shown), -1, set[int]()
    while (at := text.find(words, at + 1)) >= 0:
        found |= set(range(bisect_right(starts, at), bisect_right(starts, at + len(words) - 1) + 1))
    return found


def plain_words(text: str) -> str:
    """Return a text as it is compared: composed, without case, and with one space for each run of blanks.

    Args:
        text: The text.
    """
    return _BLANKS.sub(" ", unicodedata.normalize("NFC", text).casefold()).strip()


def _said(value: Any, otherwise: bytes = b"") -> str:
    """Return all that a value of JSON says, names too, a line each; the bytes as text where there is none."""
    if value is None:
        return otherwise.decode("utf-8", "replace")
    return "\n".join(str(one) for one in iterate_leaves(value) if one is not None)


def _numbers(spans: Sequence[Span]) -> Iterator[int]:
    for first, last in spans:
        yield from range(first, last + 1)
