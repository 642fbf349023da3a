"""The silent reply: `NO_REPLY` says that there is nothing to say, and reaches nobody, streamed in pieces or whole."""

from __future__ import annotations

import re
from dataclasses import dataclass

SILENT = "NO_REPLY"

# What models put around the token: blanks, quotes, Markdown, a full stop.
_MARKS = "`*_~\"'.!“”‘’"
_AROUND = f" \t\r\n\f\v\u00a0\u200b\ufeff>{_MARKS}"
# The token as a whole word at the beginning of a text, with the marks that close behind it.
_HEAD = re.compile(rf"[{_AROUND}]*{SILENT}(?!_*[^\W_])[{_MARKS}]*\s*", re.IGNORECASE)
_EDGE = re.compile(rf"\W*\b{SILENT}\b|.*\b{SILENT}\W*\Z", re.IGNORECASE | re.DOTALL)
_THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))
_ACTION = '{"action":"NO_REPLY"}'  # as some models write it


def is_silent(text: str) -> bool:
    """Whether a reply is nothing but `NO_REPLY`: in any case, quoted or not, after a thought, or as an action."""
    said = _after_thought(text)
    if said is None:
        return False
    return _squeezed(said) == _ACTION.upper() or (SILENT in said.upper() and not _after_tokens(said))


def declines(text: str) -> bool:
    """Whether a reply says `NO_REPLY` first or last, whatever else it says."""
    return is_silent(text) or _EDGE.match(text) is not None


def without_silent(text: str) -> str:
    """A reply as its reader is to see it: without the token at its beginning, or on lines of its own at its end."""
    if is_silent(text):
        return ""
    shown = _without_head(text)
    return shown[: _tail(shown)]


@dataclass(slots=True)
class SilentStream:
    """A reply that comes in pieces, as its reader is to see it: all that it shows is `without_silent` of the whole."""

    _held: str = ""
    _flows: bool = False

    def feed(self, piece: str) -> str:
        """What can be shown after one more piece; what may yet turn out to be the token is held back."""
        self._held += piece
        if not self._flows:
            if _may_be_silent(self._held):
                return ""
            self._flows, self._held = True, _without_head(self._held)
        at = _tail(self._held, may_go_on=True)
        shown, self._held = self._held[:at], self._held[at:]
        return shown

    def end(self) -> str:
        """What is left to be shown at the end of the reply. The stream can be used for another one then."""
        held, flowed = self._held, self._flows
        self._held, self._flows = "", False
        return held[: _tail(held)] if flowed else without_silent(held)


def _may_be_silent(text: str) -> bool:
    """Whether a reply that begins so can turn out to be silent."""
    said = _after_thought(text)
    if said is None or _ACTION.upper().startswith(_squeezed(said)):
        return True
    return SILENT.startswith(_after_tokens(said).upper())


def _after_thought(text: str) -> str | None:
    """The text behind the thought that it begins with; None where that has not come to its end."""
    begin = text.lstrip()
    for opening, closing in _THOUGHTS:
        if begin.startswith(opening):
            _, found, said = begin.partition(closing)
            return said if found else None
    is_opening = begin and any(opening.startswith(begin) for opening, _ in _THOUGHTS)
    return None if is_opening else text


def _after_tokens(text: str) -> str:
    """What follows the tokens that a text begins with, and what is around them."""
    rest = text.lstrip(_AROUND)
    while rest[: len(SILENT)].upper() == SILENT:
        rest = rest[len(SILENT) :].lstrip(_AROUND)
    return rest


def _squeezed(text: str) -> str:
    return "".join(text.split()).upper() if text.lstrip().startswith("{") else "-"


def _without_head(text: str) -> str:
    while head := _HEAD.match(text):
        text = text[head.end() :]
    return text


def _tail(text: str, may_go_on: bool = False) -> int:
    """Where the last lines begin that hold nothing but the token, with `may_go_on` a beginning of it; else the end."""
    body = text.rstrip(_AROUND)
    for size in range(len(SILENT), -1 if may_go_on else len(SILENT) - 1, -1):
        if body[max(0, len(body) - size) :].upper() == SILENT[:size]:
            before = len(body) - size
            newline = text.find("\n", len(body[:before].rstrip(_AROUND)), before if size else len(text))
            if newline >= 0:
                return _tail(text[:newline])
    return len(text)
