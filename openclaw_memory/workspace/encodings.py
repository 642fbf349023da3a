"""Find the encoding of a text that is not UTF-8, where its bytes leave no doubt."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import NamedTuple

# What notes were written in before UTF-8, on Windows, the Mac, DOS and Unix. Encodings that are left out here could not
# speak against a wrong one: each more makes an answer surer, and rarer.
ENCODINGS = (
    "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "iso8859_2", "iso8859_15", "mac_roman", "cp437", "cp850", "cp866",
    "koi8_r", "cp932", "shift_jis", "euc_jp", "euc_kr", "gb18030", "big5",
)  # fmt: skip
# What stands in notes beside letters, digits and ASCII, in any language.
_SIGNS = frozenset("«»„“”‘’‚–—…€£°§·•¿¡©®™½¼¾²³×±µºª´→←′″、。「」！？，：；（）・ー\u00a0")
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH", "KATAKANA-HIRAGANA"})
_SIGN_IN_A_WORD = re.compile(r"[^\W\d_][^\w\s\x00-\x7f’·–—\u00ad][^\W\d_]")
_WORD = re.compile(r"\w+")


class Decoded(NamedTuple):
    """A text, and the encoding that its bytes are in."""

    text: str
    encoding: str


def decode_other(data: bytes) -> Decoded | None:
    """Return the text of bytes that are not UTF-8; None unless all encodings that make sense of them agree on it.

    Of most short texts several do (`é` is the same byte in Western and Central European, `è` is not): then nothing
    is guessed.
    """
    with suppress(UnicodeDecodeError):
        data.decode("utf-8", "surrogatepass")
        return None  # damaged UTF-8: half a character was encoded
    from charset_normalizer import from_bytes  # takes 44 ms of CPU time to load: used where UTF-8 has failed

    candidates = [match for match in from_bytes(data, cp_isolation=[*ENCODINGS]) if _makes_sense(str(match))]
    texts = {str(match) for match in candidates}
    if len(texts) != 1:
        return None
    names = {name for match in candidates for name in match.could_be_from_charset}
    return Decoded(texts.pop().removeprefix("\ufeff").replace("\0", "\ufffd"), _usual(names))


def _usual(names: set[str]) -> str:
    """Return the encoding to name where several give the same text: Windows' Western one before all others."""
    return next(name for name in ("cp1252", *ENCODINGS, *sorted(names)) if name in names)


def _makes_sense(text: str) -> bool:
    """Return whether a person may have written this: words of one script, capitals in front, and usual signs."""
    if _SIGN_IN_A_WORD.search(text):
        return False
    if not all(sign.isascii() or sign.isalpha() or sign in _SIGNS for sign in text):
        return False
    return all(word.isascii() or _is_word(word) for word in _WORD.findall(text))


def _is_word(word: str) -> bool:
    if any(not (sign.isalpha() or sign.isascii()) for sign in word):
        return False
    letters = [sign for sign in word if sign.isalpha()]
    scripts = {_script(letter) for letter in letters}
    if scripts & _EAST_ASIAN:
        return scripts <= _EAST_ASIAN | {"LATIN"}
    inside = pairwise(letters)
    return len(scripts) == 1 and not any(
        before.islower() and after.isupper() and not (before + after).isascii() for before, after in inside
    )


@cache
def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").split()[0]
