"""Decode the text of a file: UTF-8, UTF-16 with a mark, or an encoding of before; and check text that is written."""

from __future__ import annotations

import json
import re
from pathlib import Path

from openclaw_memory.errors import InvalidInputError, UndecodableError

CANVAS = ".canvas"  # which is JSON: only read
UTF8 = "utf-8-sig"  # with or without a byte order mark
# By encoding, in the order of trust, the most frequent characters of languages, of several ones apart, and what
# part of those beyond ASCII they are at least.
_FREQUENT = {
    name: (letters, float(least))
    for name, least, letters in (
        line.split(maxsplit=2) for line in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines()
    )
}
_LATIN = {"cp1252", "cp1254", "cp1250", "iso8859_2"}
# Whose words are beyond ASCII throughout.
_ALPHABETS = {"cp1251", "koi8_r", "cp866", "cp1253", "cp1255", "cp1256", "cp874"}
# The characters that schools teach first, alone: of texts that are too short for frequencies.
_COMMON = {
    "gb18030": re.compile(rb"(?:[\x00-\x7f]|[\xb0-\xd7][\xa1-\xfe]|[\xa1\xa3][\xa1-\xfe])*"),
    "big5": re.compile(rb"(?:[\x00-\x7f]|[\xa1\xa4-\xc6][\x40-\x7e\xa1-\xfe])*"),
}
_SIGNS = re.compile("[“”‘’„–—…«»°€£§·¿¡]")
_RUN = re.compile(rb"[\x80-\xff]+")
_LATIN_RUN = re.compile(rb"[A-Za-z][\x80-\xff]+|[\x80-\xff]+[A-Za-z]|(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a]")  # which no text has
_BEYOND = re.compile(r"[^\x00-\x7f]")
_MOST_DAMAGED = 0.1  # of the characters of a text
_TEXT_NODE = re.compile(r'"(?:text|label)"\s*:\s*("(?:[^"\\\n]|\\.)*")')


def decode(data: bytes, path: str) -> str:
    """Return the text of a file.

    A byte order mark is dropped, NUL and damaged bytes become U+FFFD. Nothing else is changed: a CR stays, and only LF
    ends a line. Of a canvas of Obsidian its text is returned, on the lines that it has in the file; headings of Org are
    those of Markdown.

    Args:
        data: The bytes of the file.
        path: The file, whose ending tells its form.

    Raises:
        UndecodableError: The bytes are not text in these encodings.
    """
    encoding = find_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        text = data.decode(encoding, "replace")
        if encoding == "utf-16" or text.count("\ufffd") > len(text) * _MOST_DAMAGED:
            raise UndecodableError(
                f"{path} is not text in {error.encoding} (byte {error.start}: {error.reason}): save it as UTF-8"
            ) from error
    text = text.replace("\0", "\ufffd")
    if path.endswith(CANVAS):
        lines = (_TEXT_NODE.findall(line) for line in text.split("\n"))
        return "\n".join(" ".join(" ".join(json.loads(node, strict=False).split()) for node in line) for line in lines)
    return re.sub(r"(?m)^\*+(?= )", lambda stars: "#" * len(stars[0]), text) if path.endswith(".org") else text


def find_encoding(data: bytes) -> str:
    """Return the encoding of a file: `UTF8`, `utf-16` or an older one.

    It is `UTF8` where some bytes are damaged, too.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    text = data.decode(UTF8, "replace")
    damaged = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    if not damaged or len(_BEYOND.findall(text)) > 2 * damaged or _CONTROL.search(data):
        return UTF8
    is_latin = len(_LATIN_RUN.findall(data)) * 3 > len(_RUN.findall(data))
    scores = {name: _measure(data, name) for name in _FREQUENT.keys() - (_ALPHABETS if is_latin else _LATIN)}
    best = max(sorted(scores, key=[*_FREQUENT].index), key=scores.__getitem__)
    common = (name for name, pattern in _COMMON.items() if pattern.fullmatch(data))
    return best if scores[best] >= 1 else next(common, UTF8)


def check_text(text: str, name: str) -> str:
    """Return a text as it can be written: NUL becomes U+FFFD.

    Raises:
        InvalidInputError: It is not a string, or not valid Unicode.
    """
    if not isinstance(text, str):
        raise InvalidInputError(f"{name} must be a string, not {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{name} is not Unicode at character {error.start}: remove the lone surrogate"
        ) from error
    return text.replace("\0", "\ufffd")


def _measure(data: bytes, encoding: str) -> float:
    """Return how frequent the frequent characters of an encoding are in a text, where 1 is enough; 0 if it is none."""
    text = data.decode(encoding, "replace")
    beyond = _BEYOND.findall(text)
    if text.count("\ufffd") * 5 > len(beyond) * _MOST_DAMAGED:
        return 0
    frequent, least = _FREQUENT[encoding]
    letters = _SIGNS.sub("", "".join(beyond))
    letters = letters.lower() if encoding in _LATIN else letters  # KOI8 differs from Windows by the case alone
    most = max(sum(map(group.count, letters)) for group in frequent.split())
    return most / max(1, len(letters)) / least if letters else float(encoding in _LATIN)
