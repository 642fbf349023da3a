"""Read a query as a person types it: phrases between quotation marks, and words to leave out after a minus."""

from __future__ import annotations

import re
from typing import NamedTuple

_PHRASE = re.compile(r'(?:(?<=\s)|^)"([^"]*)"(?=[\s.,;:!?]|$)')
_LEFT_OUT = re.compile(r"(?:(?<=\s)|^)-([^\W\d_][^\s\"]*)")


class Asked(NamedTuple):
    """A query as a person types it, taken apart: its words, its phrases, and the words that are left out."""

    text: str
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def filter(self) -> dict[str, tuple[str, ...]]:
        """The phrases and words as the filter of a search."""
        return {"phrases": self.phrases, "without": self.without}


def read_query(typed: str) -> Asked:
    """Return the parts of a query: its text, its phrases (`"a phrase"`) and the words that it leaves out (`-word`).

    The words of a phrase stay part of the text. A quotation mark or a minus within a word (`it's 5"`, `follow-up`),
    before a digit or with a blank behind it means nothing.

    Args:
        typed: The query.
    """
    phrases = tuple(phrase.strip() for phrase in _PHRASE.findall(typed) if phrase.strip())
    bare = _PHRASE.sub(" ", typed)
    without = tuple(word.rstrip(".,;:!?") for word in _LEFT_OUT.findall(bare))
    text = _PHRASE.sub(lambda match: match[1], typed) if phrases else typed
    for word in without:
        text = re.sub(rf"(?:(?<=\s)|^)-{re.escape(word)}[.,;:!?]*(?=\s|$)", "", text)
    return Asked(" ".join(text.split()) if phrases or without else typed, phrases, without)
