"""Read lines of notes and transcripts: labels, questions, front matter, and other forms of one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from openclaw_memory.text import markdown_blocks
from openclaw_memory.text.days import is_date_title
from openclaw_memory.text.terms import fold, select_content_words, split_words, stem_word
from openclaw_memory.types import Source, StoredChunk
from openclaw_memory.types.files import LEFT_OUT, Span

DAY_CHARS = len("2026-01-06")  # with which the context of a transcript's chunk begins
SAME_BEGINNING = 5  # letters by which two words are forms of one, if they are that long
_NOTHING = ("", LEFT_OUT.strip())
_LABEL = re.compile(r"\s*(?:[-*+]\s+)?(?:\*\*)?([^\W\d_][^\s:*]{0,40})(?:\*\*)?:(?:\*\*)?\s")
_LIST_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+")
_MARKS = "\"'“”„*_"
_BLANK_LINES = re.compile(r"\n\s*\n")
_QUOTE = re.compile(r"^(?:\s{0,3}>[ \t]?)+")
_SENTENCE = re.compile(r"[^.!?。！？।؟]+(?:[.!?।؟]+[\"'”’»)\]]*(?:\s+|$)|[。！？]+[」』”’）]*|[.!?।؟]+)|.+")
# How a note says of a line, of an item, of a section or of itself that it no longer holds.
_OVER = (
    "declined|rejected|cancell?ed|obsolete|superseded|deprecated|withdrawn|abandoned|revoked|abgelehnt|abgesagt|"
    "verworfen|veraltet|überholt|rejeté|refusé|annulé|obsolète|rechazad[oa]|cancelad[oa]|obsolet[oa]|afgewezen|"
    "geannuleerd|отклонено|отменено|устарело|已取消|已拒绝|已废弃|却下|中止|廃止"
)
_STATUS = re.compile(
    rf"(?:^|[\s(\[|*_-])(?:status|state|estado|statut|статус|状态|状態)[\s*_:：=\"']+(?:{_OVER})(?!\w)", re.IGNORECASE
)
_STATUS_CELL = re.compile(rf"\|[\s*_]*(?:{_OVER})[\s*_]*(?:\||$)", re.IGNORECASE)
_STRUCK = re.compile(r"~~.+?~~|<(s|del|strike)>.+?</\1>", re.IGNORECASE)
_DROPPED_TASK = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\[-\]\s")
_REMARK = re.compile(rf"\W|\d|_|{_OVER}", re.IGNORECASE)
_MARKED = re.compile(rf"~~|<(?:s|del|strike)>|\[-\]|{_OVER}", re.IGNORECASE)
# How a line says that it replaces one above it.
_NOW = re.compile(
    r"\b(?:now|no longer|not any ?more|(?:changed|moved|switched) to|replaced (?:by|with)|correction|jetzt|nun|"
    r"nicht mehr|korrektur|ahora|ya no|maintenant|désormais|nu|niet meer|теперь|больше не)\b|"
    r"现在|改为|改成|不再|今は|に変更",
    re.IGNORECASE,
)


class Line(NamedTuple):
    """A line of a file, or a piece of a very long one; `line_end` is the length of its line end in the file."""

    path: str
    source: Source
    number: int
    start_char: int
    text: str
    line_end: int = 1

    @property
    def end_char(self) -> int:
        return self.start_char + len(self.text)


class Frame(NamedTuple):
    """The places of the lines that one needs to be understood: its `heads`, and all of its `code`."""

    heads: tuple[int, ...] = ()
    code: range = range(0)


NO_FRAME = Frame()


class Outline(NamedTuple):
    """The lines of a file by place; of a note also how they belong together, and which no longer hold.

    `marks` are the places of outdated lines, each with that of the line that says so, and `updates` those of lines that
    replace one above them, each with its words.
    """

    get_line: Callable[[int], Line]
    frames: Mapping[int, Frame] = {}
    marks: Mapping[int, int] = {}
    updates: Sequence[tuple[int, Sequence[str]]] = ()
    size: int = 0

    def get_frame(self, place: int) -> Frame:
        """Return the frame of a line."""
        return self.frames.get(place, NO_FRAME)

    def find_replacement(self, place: int) -> int | None:
        """Return the place of the last line that replaces an earlier one, or None."""
        words = _list_subject(self.get_line(place).text) if self.updates else []
        later = (at for at, own in self.updates if at > place and _is_update(words, own))
        return max(later, default=None)


def _list_subject(text: str) -> list[str]:
    """Return the content words of a statement; none of a heading or a question."""
    is_statement = markdown_blocks.parse_heading(text) is None and not is_question(text)
    return select_content_words(_NOW.sub(" ", text)) if is_statement else []


def _is_update(words: Sequence[str], later: Sequence[str]) -> bool:
    """Return whether a line begins as an earlier one does, and has most of its words, and a number if that has one."""
    if words[:1] != later[:1]:
        return False
    has_number = [any(map(str.isdigit, "".join(own))) for own in (words, later)]
    return has_number[1] >= has_number[0] and 2 * len({*words} & {*later}) > max(len({*words}), len({*later}), 2)


def parse_outline(path: str, text: str) -> Outline:
    """Return the outline of a note; the place of a line is its number less one."""
    texts = text.split("\n")
    lines: list[Line] = []
    start = 0
    for number, whole in enumerate(texts, 1):
        own = whole.removesuffix("\r")
        lines.append(Line(path, "memory", number, start, own, len(whole) - len(own) + 1))
        start += len(whole) + 1
    frames = dict(_list_frames([_QUOTE.sub("", line) for line in texts]))
    marks = dict(_find_marks(texts, frames)) if _MARKED.search(text) else {}
    updates = [
        (at, _list_subject(own))
        for at, own in (enumerate(texts) if _NOW.search(text) else ())
        if _NOW.search(own) and not frames.get(at, NO_FRAME).code
    ]
    return Outline(lines.__getitem__, frames, marks, updates, len(lines))


def _list_frames(texts: Sequence[str]) -> Iterator[tuple[int, Frame]]:
    """Yield the places of lines that have a frame, each with it."""
    items: list[tuple[int, int]] = []  # indent and place of each item that is not yet ended
    code = range(0)
    for kind, first, stop in markdown_blocks.split_blocks(texts):
        own, heads = range(0), tuple[int, ...]()
        for at in range(first, stop):
            is_new_item = kind == "item" and markdown_blocks.is_item(texts[at])
            if at == first or is_new_item:
                indent = markdown_blocks.measure_indent(texts[at])
                items = [item for item in items if item[0] < indent]
            if at == first and kind == "fence":
                own = code = range(first, stop)
                heads = (first, stop - 1) if markdown_blocks.is_fence(texts[stop - 1]) else (first,)
            elif at == first and kind == "table":
                heads = (first, first + 1)
            elif at == first and kind == "text" and not items and texts[at].startswith(("    ", "\t")):
                is_more = code and not any(map(str.strip, texts[code.stop : first]))
                own = code = range(code.start if is_more else first, stop)
                yield from ((above, Frame((), code)) for above in range(code.start, first))
            yield at, Frame((*(place for _, place in items), *heads), own)
            if is_new_item:
                items.append((indent, at))


def _find_marks(texts: Sequence[str], frames: Mapping[int, Frame]) -> Iterator[tuple[int, int]]:
    """Yield the places of outdated lines, each with that of the line that marks it."""
    front = markdown_blocks.count_front_matter(texts)
    if re.match(_OVER, markdown_blocks.parse_front_matter(texts[:front]).get("status", "").casefold()):
        mark = next((at for at, text in enumerate(texts[:front]) if _STATUS.search(text)), 0)
        yield from ((at, mark) for at in range(len(texts)))
    headings = [(-1, 0, "")]
    for at, text in enumerate(texts[front:], front):
        heads, code = frames.get(at, NO_FRAME)
        if code:
            continue
        if heading := markdown_blocks.parse_heading(text):
            headings.append((at, *heading))
        if not _MARKED.search(text):
            continue
        is_titled = len(headings) > 2 and headings[-1][2].casefold() == "status" and re.match(_OVER, text.casefold())
        scope: Iterable[int] = ()
        if is_titled or (_STATUS.match(text.lstrip("-*+> \t")) and not _REMARK.sub("", _STATUS.sub("", text))):
            start, level, _ = headings[-2 if is_titled else -1]
            scope = (
                [heads[-1], *(own for own, frame in frames.items() if heads[-1] in frame.heads)]
                if heads
                else range(max(start, 0), _find_section_end(texts, frames, at, level))
            )
        elif _STATUS.search(text) or _STATUS_CELL.search(text) or _DROPPED_TASK.match(text) or _is_struck(text):
            scope = (at,)
        yield from ((own, at) for own in scope)


def _find_section_end(texts: Sequence[str], frames: Mapping[int, Frame], at: int, level: int) -> int:
    """Return the place of the next heading of this level or above, or that after the last line."""
    below = ((own, markdown_blocks.parse_heading(texts[own])) for own in range(at + 1, len(texts)))
    ends = (own for own, heading in below if heading and heading[0] <= level and not frames.get(own, NO_FRAME).code)
    return next(ends, len(texts))


def _is_struck(text: str) -> bool:
    """Return whether a line is struck out, apart from dates and marks."""
    return _STRUCK.search(text) is not None and not _REMARK.sub("", _STRUCK.sub("", text))


def count_words(text: str, words: Collection[str]) -> int:
    """Return how many of some words, lower case, a text holds, also as parts of others."""
    text = text.lower()
    return sum(word in text for word in words)


def cut_line(line: Line, words: Collection[str], max_chars: int) -> Line:
    """Return the whole sentences of a long line, at most so many characters, that hold the most of some words."""
    matches = list(_SENTENCE.finditer(line.text))
    best, most = (0, max_chars), -1
    for at, match in enumerate(matches):
        most_end = match.start() + max_chars
        ends = [own.end() for own in matches[at:] if own.end() <= most_end]
        space = line.text.rfind(" ", most_end - max_chars // 2, most_end)
        end = ends[-1] if ends else space if space > 0 else most_end
        if (count := count_words(line.text[match.start() : end], words)) > most:
            best, most = (match.start(), end), count
    start, end = best
    return line._replace(start_char=line.start_char + start, text=line.text[start:end].rstrip())


def split_lines(chunks: Sequence[StoredChunk]) -> list[Line]:
    """Return the lines of chunks of one file, each once, by position."""
    lines: list[Line] = []
    end = -1
    for stored in sorted(chunks, key=lambda stored: stored.chunk.start_char):
        number, start = stored.chunk.start_line, stored.chunk.start_char
        for text in stored.chunk.text.split("\n"):
            if start >= end:
                own = text.removesuffix("\r")
                lines.append(Line(stored.path, stored.source, number, start, own, len(text) - len(own) + 1))
                end = start + max(len(text), 1)
            number, start = number + 1, start + len(text) + 1
    return lines


def find_open_code(texts: Sequence[str]) -> int:
    """Return the index of the line that opens code which is not closed, or the number of lines."""
    fences = [at for at, text in enumerate(texts) if markdown_blocks.is_fence(_QUOTE.sub("", text))]
    return fences[-1] if len(fences) % 2 else len(texts)


def has_content(text: str) -> bool:
    """Return whether a line is not blank, not a title that is a date, and not the mark of lines left out."""
    return text.strip() not in _NOTHING and not is_date_title(text)


def strip_role(text: str) -> str:
    """Return a line of a transcript without the role that a turn begins with."""
    return text.removeprefix("User: ").removeprefix("Assistant: ")


def find_label(text: str) -> str:
    """Return the label of a line ("Anna:"), folded; "" for none."""
    label = _LABEL.match(text) if ":" in text else None
    return fold(label[1]) if label else ""


def is_question(text: str) -> bool:
    """Return whether a line is a question."""
    return ("?" in text or "？" in text) and text.rstrip(" *_\"')").endswith(("?", "？"))


def join_lines(lines: Sequence[Line]) -> str:
    """Return lines of one file as text, with `LEFT_OUT` between those that do not follow one another.

    In a transcript, blank lines replace hidden text, and are left out.
    """
    parts = [line.text for line in lines[:1]]
    for above, line in pairwise(lines):
        joint = "\n" * (line.number - above.number) or " " * (line.start_char - above.end_char)
        parts += [joint if _is_next(above, line) else LEFT_OUT, line.text]
    text = "".join(parts)
    return remove_blank_lines(text) if lines and lines[0].source == "sessions" else text


def find_spans(lines: Sequence[Line]) -> tuple[Span, ...]:
    """Return the runs of lines that follow one another."""
    spans = [(lines[0].number, lines[0].number)]
    for above, line in pairwise(lines):
        if is_joined(above, line):
            spans[-1] = (spans[-1][0], line.number)
        else:
            spans.append((line.number, line.number))
    return tuple(spans)


def is_joined(above: Line, line: Line) -> bool:
    """Return whether two lines are of one run: one follows the other, or both are pieces of one."""
    return above.number == line.number or _is_next(above, line)


def _is_next(above: Line, line: Line) -> bool:
    """Return whether there are only line ends between two lines, of few blank lines, or blanks within a long line."""
    rows, gap = line.number - above.number, line.start_char - above.start_char - len(above.text)
    if rows == 0:
        return gap <= 1
    return gap == rows * max(above.line_end, line.line_end) and (rows <= len(LEFT_OUT) or line.source == "sessions")


def remove_blank_lines(text: str) -> str:
    """Return a text with only line breaks between its lines."""
    return _BLANK_LINES.sub("\n", text)


def find_idle_front_matter(texts: Sequence[str], numbers: Sequence[int], query_words: Collection[str]) -> list[int]:
    """Return the indices of lines of front matter that answer nothing by themselves.

    Front matter describes a note, and filters it. A field answers if the query names it, or if the note has no other
    text.

    Args:
        texts: The lines of a note that are known, the first one first.
        numbers: Their numbers.
        query_words: The words of the query, lower case. One that begins as the name of a field does names it.
    """
    whole = [text for at, text in enumerate(texts) if numbers[at] == numbers[0] + at]
    stop = markdown_blocks.count_front_matter(whole)
    if not any(map(has_content, texts[stop:])):
        return []
    idle, is_named = [], False
    for at, text in enumerate(whole[:stop]):
        if names := markdown_blocks.parse_front_matter([text]):  # else an item of the field above it
            parts = [word for name in names for word in split_words(name)]
            is_named = any(_is_alike(part, word) for part in parts for word in query_words)
        if not is_named:
            idle.append(at)
    return idle


def _is_alike(first: str, second: str) -> bool:
    """Return whether two words are forms of one, such as `attendees` and `attended`."""
    return stem_word(first) == stem_word(second) or (
        len(first) > SAME_BEGINNING <= len(second) and first[:SAME_BEGINNING] == second[:SAME_BEGINNING]
    )


@lru_cache(maxsize=16384)
def list_forms(text: str) -> tuple[str, ...]:
    """Return a line of a note, and the text after each label in it ("10:30 Anna: "); nothing for a blank line."""
    remaining, forms = normalise_line(text), list[str]()
    while remaining:
        forms.append(remaining)
        remaining = remaining.partition(": ")[2].strip(_MARKS)
    return tuple(forms)


@lru_cache(maxsize=16384)
def normalise_line(text: str) -> str:
    """Return a line without list marker, emphasis and enclosing quotes; case and width of spaces are normalised."""
    marker = _LIST_MARKER.match(text)
    parts = text[marker.end() if marker else 0 :].replace("**", "").split()
    return " ".join(parts).strip(_MARKS).casefold()
