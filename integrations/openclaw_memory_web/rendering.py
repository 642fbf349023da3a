"""Render notes and results as HTML that keeps the lines of the file, to mark and to link to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from openclaw_memory.text import split_at_query_words
from openclaw_memory.types import SearchResult

Span = tuple[int, int]  # the first and the last line, 1-based
_RUN = re.compile(r"L?(\d{1,9})(?:-L?(\d{1,9}))?")
_BREAKS = {"softbreak", "hardbreak"}
_WIKILINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")


def parse_spans(text: str) -> tuple[Span, ...]:
    """Return the line spans of a citation such as `L3-L5,L9`, in order.

    Args:
        text: The end of a citation; anything else in it is passed over.
    """
    pairs = ((int(first), int(last or first)) for first, last in _RUN.findall(text))
    return tuple(sorted((first, max(first, last)) for first, last in pairs if first > 0))


@dataclass(frozen=True, slots=True)
class Line:
    """One line to show: its number in the file (None between runs of lines), its text, and whether it is marked."""

    number: int | None
    text: str | Markup
    is_cited: bool = False


def number_lines(text: str, start: int, cited: Sequence[Span]) -> list[Line]:
    """Return the lines of an excerpt."""
    return [Line(number, line, _is_in(number, cited)) for number, line in enumerate(text.split("\n"), start)]


def number_result(result: SearchResult, query: str) -> list[Line]:
    """Return the lines of a result with their numbers, and the words of the question marked."""
    numbers: list[int | None] = []
    for first, last in result.spans:
        numbers += [*([None] if numbers else []), *range(first, last + 1)]
    texts = result.snippet.split("\n")
    # A result that is a whole chunk may be cut short: the numbers of the lines that are there still hold; … stands
    # for lines that were left out.
    return [
        Line(None if text == "…" else number, mark_words(text, query))
        for number, text in zip(numbers, texts, strict=False)
    ]


def mark_words(text: str, query: str) -> Markup:
    """Return a text with the words of a question in `<mark>`."""
    parts = enumerate(split_at_query_words(text, query))
    return Markup("").join(Markup("<mark>{}</mark>").format(part) if at % 2 else part for at, part in parts)


def render(text: str, start: int, cited: Sequence[Span], link: Callable[[str], str]) -> Markup:
    """Return Markdown as HTML. Markup in it is shown as text, and pictures, which others could count, are not loaded.

    Each line has the id `L<number>`, and those of `cited` are marked.

    Args:
        text: The Markdown.
        start: The number of its first line.
        cited: The lines to mark.
        link: Returns the address that a link in the text leads to.
    """
    head, body = _split_front_matter(text) if start == 1 else (0, text)
    above = ""
    if head:
        lines = text.split("\n")[:head]
        block = _render_block(lines, start, cited)
        above = f'<details class="front"><summary>{head} lines of fields</summary>{block}</details>'
    first = start + head
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    markdown.disable("image")
    markdown.inline.ruler.before("link", "wikilink", _read_wikilink)
    tokens = markdown.parse(body)
    for token in tokens:
        if token.type == "inline" and token.map and token.children is not None:
            for child in token.children:
                if child.type == "link_open":
                    child.attrs |= {"href": link(str(child.attrs["href"])), "rel": "noopener noreferrer"}
            token.children = [*_wrap_lines(token.children, first + token.map[0], first + token.map[1] - 1, cited)]
        elif token.type in {"fence", "code_block"} and token.map:
            opened = first + token.map[0] + (token.type == "fence")
            token.type, token.tag = "html_block", ""
            token.content = _render_block(token.content.removesuffix("\n").split("\n"), opened, cited)
    return Markup(above + markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704 - it escapes all text


def _read_wikilink(state: Any, silent: bool) -> bool:
    """Make a link of `[[Note|shown]]`, as a rule of the parser."""
    if (link := _WIKILINK.match(state.src, state.pos)) is None:
        return False
    state.pos = link.end()
    if not silent:
        state.push("link_open", "a", 1).attrs["href"] = link[0]
        state.push("text", "", 0).content = link[1].rpartition("|")[2]
        state.push("link_close", "a", -1)
    return True


def _split_front_matter(text: str) -> tuple[int, str]:
    """Return how many lines of fields are above a text, and the text below them."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return 0, text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    return (end + 1, "\n".join(lines[end + 1 :])) if end else (0, text)


def _wrap_lines(children: Sequence[Token], first: int, last: int, cited: Sequence[Span]) -> Iterator[Token]:
    """Yield the tokens of a paragraph, each line of the file within an element of its own."""
    runs = [list(run) for is_break, run in groupby(children, lambda child: child.type in _BREAKS) if not is_break]
    depth = 0
    for child in children:
        depth += child.nesting
        if child.type in _BREAKS and depth:  # an emphasis that goes on in the next line: the lines are marked as one
            runs = [list(children)]
            break
    breaks = [child for child in children if child.type in _BREAKS]
    for number, run in enumerate(runs):
        is_last = number == len(runs) - 1
        span = (first + number, last if is_last else first + number)
        opened, closed = _make_tags(span, cited)
        yield _make_token(opened)
        yield from run
        yield _make_token(closed)
        if not is_last:
            yield breaks[number]


def _render_block(lines: Sequence[str], start: int, cited: Sequence[Span]) -> str:
    rows = (str(escape(line)).join(_make_tags((number, number), cited)) for number, line in enumerate(lines, start))
    return "<pre><code>" + "\n".join(rows) + "</code></pre>\n"


def _make_tags(span: Span, cited: Sequence[Span]) -> tuple[str, str]:
    """Return the opening and closing tag of a line."""
    is_cited = any(first <= span[1] and span[0] <= last for first, last in cited)
    if is_cited:
        return f'<mark id="L{span[0]}" class="line">', "</mark>"
    return f'<span id="L{span[0]}" class="line">', "</span>"


def _make_token(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)


def _is_in(number: int, spans: Sequence[Span]) -> bool:
    return any(first <= number <= last for first, last in spans)
