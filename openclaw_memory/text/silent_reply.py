"""Handle the silent reply: `NO_REPLY` means that there is nothing to say, and is never shown, streamed or whole."""

from __future__ import annotations

import re
from dataclasses import dataclass

SILENT = "NO_REPLY"

# What models put around the token: blanks, quotes, Markdown, brackets, signs of a sentence.
_CLOSING = "`*_~\"'.!?…。！“”„‘’‚«»「」『』:,;)]>"
_AROUND = f" \t\r\n\f\v\u00a0\u200b\ufeff([<#{{}}|+–—-{_CLOSING}"
_SET = re.escape(_AROUND)
_SILENT = r"NO\\?_REPLY"  # as Markdown escapes it too
_TAG = "<(?!think)/?[a-z]+>"
# Before it also the language of a fenced block and the number of a list; behind it whatever is no letter or digit, such
# as an emoji. No place of a text fits two of these, so that none is matched in more than one way.
_LEAD = rf"(?:{_TAG}|[{_SET}]|(?<=```)[a-z]+\s|\d{{1,2}}[.)]\s)*+"
_TRAIL = rf"(?:{_TAG}|[\W_])*+"
_WHOLE = re.compile(rf"(?:{_LEAD}{_SILENT}{_TRAIL})+", re.IGNORECASE)
# The same with as much of it as a stream may have shown: it can end within a tag, a language, a number or the token.
_BEGUN = r"(?:(?<=<)/?|(?<=</))[a-z]*|(?<=```)[a-z]+|\d{1,2}[.)]?|N(?:O(?:\\?(?:_(?:R(?:E(?:PL?)?)?)?)?)?)?"
_BEGINNING = re.compile(rf"(?:{_LEAD}{_SILENT}{_TRAIL})*{_LEAD}(?:{_BEGUN})?", re.IGNORECASE)
# The token as a whole word at the beginning of a text, with the marks that close behind it.
_HEAD = re.compile(rf"{_LEAD}{_SILENT}(?!_*[^\W_])(?:[{re.escape(_CLOSING)}]|</[a-z]+>)*\s*", re.IGNORECASE)
_THOUGHT = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_OPENINGS = ("<think>", "<thinking>")
_ACTION = '{"action":"NO_REPLY"}'  # as some models write it

# Words of which nothing can be said but that there is nothing: "Nothing new to store."
_NOTHING = frozenset({"nothing", "none", "no"})
_FILLERS = _NOTHING | frozenset(
    "a any anything are at be been durable else facts for further has have here i in information is it lasting left "
    "memories memory more moment needed needs new now remember save saved say stands store stored that the there this "
    "time to was were worth write".split()
)
_REST_CHARS = 40
_WORD = re.compile(r"[^\W_]+")


def is_silent(text: str) -> bool:
    """Return whether a reply is nothing but `NO_REPLY`: in any case, dressed or not, after a thought, or as an action.

    Args:
        text: The text of the reply.
    """
    begin = _after_thought(text)
    if begin is None:
        return False
    return _WHOLE.fullmatch(text, begin) is not None or _squeezed(text[begin:]) == _ACTION.upper()


def is_declining(text: str) -> bool:
    """Whether a reply is `NO_REPLY`, or begins or ends with it and says in one line that there is nothing."""
    rest = _without_head(text)
    rest = rest[: _tail(rest)]
    return is_silent(text) or (rest != text and _says_nothing(rest))


def strip_silent(text: str) -> str:
    """Return a reply to show to the user, without `NO_REPLY` as its first or last word.

    A line that says only that there is nothing goes with it: `NO_REPLY: nothing to store`.

    Args:
        text: The text of the reply.
    """
    shown = _without_head(text)
    if is_silent(text) or (shown != text and _says_nothing(shown)):
        return ""
    return shown[: _tail(shown)]


@dataclass(slots=True)
class SilentStream:
    """A streamed reply without `NO_REPLY`: the pieces it returns add up to `without_silent` of the whole."""

    _held: str = ""
    _flows: bool = False

    def feed(self, piece: str) -> str:
        """Return what can be shown after one more piece, and hold back what may yet turn out to be `NO_REPLY`.

        Args:
            piece: The next piece of the reply.
        """
        self._held += piece
        if not self._flows:
            if _may_be_silent(self._held):
                return ""
            self._flows, self._held = True, _without_head(self._held)
        at = _tail(self._held, may_go_on=True)
        shown, self._held = self._held[:at], self._held[at:]
        return shown

    def end(self) -> str:
        """Return what is left to show at the end of the reply. The stream can then be used for another one."""
        held, flowed = self._held, self._flows
        self._held, self._flows = "", False
        return held[: _tail(held)] if flowed else strip_silent(held)


def _may_be_silent(text: str) -> bool:
    """Whether a reply with this beginning may turn out to show nothing, or to begin with the token."""
    begin = _after_thought(text)
    if begin is None or _ACTION.upper().startswith(_squeezed(text[begin:])):
        return True
    rest = _without_head(text)
    return _BEGINNING.fullmatch(text, begin) is not None or (rest != text and _may_say_nothing(rest))


def _after_thought(text: str) -> int | None:
    """Return where the text goes on after the thoughts that it begins with; None if one is not closed yet."""
    begin = 0
    while thought := _THOUGHT.match(text, begin):
        closing = re.compile(f"</{thought[1]}>", re.IGNORECASE).search(text, thought.end())
        if closing is None:
            return None
        begin = closing.end()
    rest = text[begin:].lstrip().lower()
    return None if rest and any(opening.startswith(rest) for opening in _OPENINGS) else begin


def _squeezed(text: str) -> str:
    return "".join(text.split()).upper() if text.lstrip().startswith("{") else "-"


def _without_head(text: str) -> str:
    """Return the text without the tokens that it begins with, also after a thought."""
    begin = end = _after_thought(text) or 0
    while head := _HEAD.match(text, end):
        end = head.end()
    return text[:begin] + text[end:]


def _says_nothing(text: str) -> bool:
    rest = text.strip()
    words = {word.lower() for word in _WORD.findall(rest)}
    return len(rest) <= _REST_CHARS and "\n" not in rest and (not words or bool(words & _NOTHING)) and words <= _FILLERS


def _may_say_nothing(text: str) -> bool:
    """Whether a text with this beginning can still say nothing."""
    rest = text.lstrip()
    words = [word.lower() for word in _WORD.findall(rest)]
    begun = words.pop() if words and rest[-1].isalnum() else ""
    is_short = len(rest.rstrip()) <= _REST_CHARS and "\n" not in rest.rstrip()
    return is_short and _FILLERS.issuperset(words) and any(word.startswith(begun) for word in _FILLERS)


def _tail(text: str, may_go_on: bool = False) -> int:
    """Return where the tokens at the end of a text begin, with the blank before them; its end if it has no tokens.

    With `may_go_on`, a beginning of the token counts too.
    """
    end = len(text)
    if may_go_on:
        sizes = (size for size in range(len(SILENT) - 1, 0, -1) if text[-size:].upper() == SILENT[:size])
        cuts = (_blank(text, len(text) - size) for size in (*sizes, 0))
        end = next((cut for cut in cuts if cut is not None), end)
    while True:
        token = len(text[:end].rstrip(_AROUND)) - len(SILENT)
        cut = _blank(text, token) if token >= 0 and text[token : token + len(SILENT)].upper() == SILENT else None
        if cut is None:
            return end
        end = cut


def _blank(text: str, at: int) -> int | None:
    """Return the index of the first blank among the marks before a place, or None."""
    start = len(text[:at].rstrip(_AROUND))
    return next((place for place in range(start, at) if text[place].isspace()), None)
