"""Handle the silent reply: `NO_REPLY` means that there is nothing to say, and is never shown, streamed or whole."""

from __future__ import annotations

import re

NO_REPLY = "NO_REPLY"

# Signs that models put around the token: blanks, quotes, Markdown, brackets, signs of a sentence.
_CLOSING = "`*_~\"'.!?…。！“”„‘’‚«»「」『』:,;)]>"
_AROUND = f" \t\r\n\f\v\u00a0\u200b\ufeff([<#{{}}|+–—-{_CLOSING}"
_SET = re.escape(_AROUND)
_SILENT = r"NO\\?_REPLY"  # as Markdown escapes it too
_TAG = "<(?!think)/?[a-z]+>"
# Before it also the language of a fenced block and the number of a list; behind it anything but letters and digits,
# such as an emoji. No place of a text fits two of these, so that none is matched in more than one way.
_LEAD = rf"(?:{_TAG}|[{_SET}]|(?<=```)[a-z]+\s|\d{{1,2}}[.)]\s)*+"
_TRAIL = rf"(?:{_TAG}|[\W_])*+"
_WHOLE = re.compile(rf"(?:{_LEAD}{_SILENT}{_TRAIL})+", re.IGNORECASE)
# The same with as much of it as a stream may have shown: it can end within a tag, a language, a number or the token.
_PARTIAL = r"(?:(?<=<)/?|(?<=</))[a-z]*|(?<=```)[a-z]+|\d{1,2}[.)]?|N(?:O(?:\\?(?:_(?:R(?:E(?:PL?)?)?)?)?)?)?"
_BEGINNING = re.compile(rf"(?:{_LEAD}{_SILENT}{_TRAIL})*{_LEAD}(?:{_PARTIAL})?", re.IGNORECASE)
# The token as a whole word at the beginning of a text, with the marks that close behind it.
_HEAD = re.compile(rf"{_LEAD}{_SILENT}(?!_*[^\W_])(?:[{re.escape(_CLOSING)}]|</[a-z]+>)*\s*", re.IGNORECASE)
_THOUGHT = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_OPENINGS = ("<think>", "<thinking>")
_ACTION = '{"ACTION":"NO_REPLY"}'  # as some models write it, in capitals

# Words of a line that only says that there is nothing: "Nothing new to store."
_NOTHING = frozenset({"nothing", "none", "no"})
_FILLERS = _NOTHING | frozenset(
    "a any anything are at be been durable else facts for further has have here i in information is it lasting left "
    "memories memory more moment needed needs new now remember save saved say stands store stored that the there this "
    "time to was were worth write".split()
)
_MOST_CHARS = 40  # of such a line
_WORD = re.compile(r"[^\W_]+")


def is_silent(text: str) -> bool:
    """Return whether a reply is nothing but `NO_REPLY`: in any case, dressed, after a thought, or as an action."""
    begin = _skip_thoughts(text)
    if begin is None:
        return False
    return _WHOLE.fullmatch(text, begin) is not None or _normalise_action(text[begin:]) == _ACTION


def is_declining(text: str) -> bool:
    """Return whether a reply is `NO_REPLY`, or has it at an end of one line that there is nothing."""
    inner = _strip_head(text)
    inner = inner[: _find_tail(inner)]
    return is_silent(text) or (inner != text and _is_nothing(inner))


def strip_silent(text: str) -> str:
    """Return a reply to show to the user, without `NO_REPLY` as its first or last word.

    Args:
        text: The text of the reply.
    """
    inner = _strip_head(text)
    return "" if is_silent(text) else inner[: _find_tail(inner)]


class SilentStream:
    """A streamed reply without `NO_REPLY`: the pieces it returns add up to `strip_silent` of the whole."""

    def __init__(self) -> None:
        """Wait for the first piece."""
        self._buffer, self._flows = "", False

    def feed(self, piece: str) -> str:
        """Return the text that can be shown after one more piece, and hold back text that may yet become `NO_REPLY`.

        Args:
            piece: The next piece of the reply.
        """
        self._buffer += piece
        if not self._flows:
            if _may_be_silent(self._buffer):
                return ""
            self._flows, self._buffer = True, _strip_head(self._buffer)
        at = _find_tail(self._buffer, may_go_on=True)
        text, self._buffer = self._buffer[:at], self._buffer[at:]
        return text

    def end(self) -> str:
        """Return the text that is left to show at the end of the reply. Another reply can follow then."""
        text = self._buffer[: _find_tail(self._buffer)] if self._flows else strip_silent(self._buffer)
        self._buffer, self._flows = "", False
        return text


def _may_be_silent(text: str) -> bool:
    """Return whether a reply with this beginning may turn out to show nothing, or to begin with the token."""
    begin = _skip_thoughts(text)
    if begin is None or _ACTION.startswith(_normalise_action(text[begin:])):
        return True
    return _BEGINNING.fullmatch(text, begin) is not None


def _skip_thoughts(text: str) -> int | None:
    """Return where the text goes on after the thoughts that it begins with; None if one is not closed yet."""
    begin = 0
    while thought := _THOUGHT.match(text, begin):
        closing = re.compile(f"</{thought[1]}>", re.IGNORECASE).search(text, thought.end())
        if closing is None:
            return None
        begin = closing.end()
    following = text[begin:].lstrip().lower()
    return None if following and any(opening.startswith(following) for opening in _OPENINGS) else begin


def _normalise_action(text: str) -> str:
    return "".join(text.split()).upper() if text.lstrip().startswith("{") else "-"


def _strip_head(text: str) -> str:
    """Return the text without the tokens that it begins with, also after a thought."""
    begin = end = _skip_thoughts(text) or 0
    while head := _HEAD.match(text, end):
        end = head.end()
    return text[:begin] + text[end:]


def _is_nothing(text: str) -> bool:
    text = text.strip()
    words = {word.lower() for word in _WORD.findall(text)}
    is_short = len(text) <= _MOST_CHARS and "\n" not in text
    return is_short and (not words or bool(words & _NOTHING)) and words <= _FILLERS


def _find_tail(text: str, may_go_on: bool = False) -> int:
    """Return where the tokens at the end of a text begin, with the blank before them; its end if it has no tokens.

    With `may_go_on`, a beginning of the token counts too.
    """
    end = len(text)
    if may_go_on:
        sizes = (size for size in range(len(NO_REPLY) - 1, 0, -1) if text[-size:].upper() == NO_REPLY[:size])
        cuts = (_find_blank(text, len(text) - size) for size in (*sizes, 0))
        end = next((cut for cut in cuts if cut is not None), end)
    while True:
        at = len(text[:end].rstrip(_AROUND)) - len(NO_REPLY)
        cut = _find_blank(text, at) if at >= 0 and text[at : at + len(NO_REPLY)].upper() == NO_REPLY else None
        if cut is None:
            return end
        end = cut


def _find_blank(text: str, at: int) -> int | None:
    """Return the index of the first blank among the marks before a place, or None."""
    start = len(text[:at].rstrip(_AROUND))
    return next((place for place in range(start, at) if text[place].isspace()), None)
