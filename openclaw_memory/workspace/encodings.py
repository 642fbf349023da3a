"""Decode the text of a file: UTF-8, UTF-16 with a byte order mark, or an older encoding if its bytes leave no doubt."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from openclaw_memory.errors import UndecodableError

# The encodings of notes before UTF-8, on Windows, the Mac, DOS and Unix. Each more makes an answer surer, and rarer.
ENCODINGS = (
    "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "iso8859_2", "iso8859_15", "mac_roman", "cp437", "cp850", "cp866",
    "koi8_r", "cp932", "shift_jis", "euc_jp", "euc_kr", "gb18030", "big5",
)  # fmt: skip
# Signs of notes beside letters, digits and ASCII, in any language.
_SIGNS = frozenset("«»„“”‘’‚–—…€£°§·•¿¡©®™½¼¾²³×±µºª´→←′″、。「」！？，：；（）・ー\u00a0")
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH", "KATAKANA-HIRAGANA"})
_SIGN_IN_A_WORD = re.compile(r"[^\W\d_][^\w\s\x00-\x7f’·–—\u00ad][^\W\d_]")
_WORD = re.compile(r"\w+")


class Decoded(NamedTuple):
    """A text, and the encoding that its bytes are in."""

    text: str
    encoding: str


def decode(data: bytes, path: str) -> str:
    """Return the text of a file.

    A byte order mark is dropped, NUL becomes U+FFFD. Nothing else is changed: a CR stays, and only LF ends a line.

    Args:
        data: The bytes of the file.
        path: The file, for errors.

    Raises:
        UndecodableError: The bytes are not text in a known encoding.
    """
    try:
        return data.decode(_select_unicode(data)).replace("\0", "\ufffd")
    except UnicodeDecodeError as error:
        if (decoded := decode_older(data)) is not None:
            return decoded.text
        raise UndecodableError(
            f"{path} is not text in {error.encoding} (byte {error.start}: {error.reason}): save it as UTF-8"
        ) from error


def find_encoding(data: bytes) -> str | None:
    """Return the name of the encoding of a file without doubt, or None if it is UTF-8, UTF-16 or unknown.

    Args:
        data: The bytes of the file.
    """
    with suppress(UnicodeDecodeError):
        data.decode(_select_unicode(data))
        return None
    decoded = decode_older(data)
    return None if decoded is None else decoded.encoding


def is_utf16(data: bytes) -> bool:
    """Return whether a file begins with the byte order mark of UTF-16.

    Args:
        data: The file, or its beginning.
    """
    return data.startswith((b"\xff\xfe", b"\xfe\xff"))


def decode_older(data: bytes) -> Decoded | None:
    """Return the text of bytes in an older encoding, or None unless all encodings that make sense agree on it.

    Of most short texts several do (`é` is the same byte in Western and Central European, `è` is not): then nothing
    is guessed.

    Args:
        data: The bytes, which are not UTF-8.
    """
    if is_utf16(data):
        return None
    with suppress(UnicodeDecodeError):
        data.decode("utf-8", "surrogatepass")
        return None  # damaged UTF-8: half a character was encoded
    from charset_normalizer import from_bytes  # takes 44 ms of CPU time to load: used where UTF-8 has failed

    candidates = [match for match in from_bytes(data, cp_isolation=[*ENCODINGS]) if _is_plausible(str(match))]
    texts = {str(match) for match in candidates}
    if len(texts) != 1:
        return None
    names = {name for match in candidates for name in match.could_be_from_charset}
    usual = next(name for name in ("cp1252", *ENCODINGS, *sorted(names)) if name in names)
    return Decoded(texts.pop().removeprefix("\ufeff").replace("\0", "\ufffd"), usual)


def _select_unicode(data: bytes) -> str:
    return "utf-16" if is_utf16(data) else "utf-8-sig"


def _is_plausible(text: str) -> bool:
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
    scripts = {_name_script(letter) for letter in letters}
    if scripts & _EAST_ASIAN:
        return scripts <= _EAST_ASIAN | {"LATIN"}
    return len(scripts) == 1 and not any(
        before.islower() and after.isupper() and not (before + after).isascii() for before, after in pairwise(letters)
    )


@cache
def _name_script(letter: str) -> str:
    return unicodedata.name(letter, "?").split()[0]
