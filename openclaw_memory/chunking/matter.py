"""The front matter of a document that a program wrote: fields as JSON, one a line, above the text (pure).

Such a file is `---`, `openclaw_memory: 1`, a line `name: JSON` for each field, `---`, the text, and a line feed. It is
YAML as other programs read it. What stands above the text is no memory: it is not cut, embedded or indexed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from openclaw_memory.errors import QueryError

VERSION = 1
MAX_DEPTH = 64  # of values in values: what is nested deeper could not be read again everywhere

_OPENING = re.compile(r"---\r?\nopenclaw_memory:[^\n]*\n")
_CLOSING = re.compile(r"^---\r?(?:\n|\Z)", re.MULTILINE)
_VERSION = re.compile(rf"---\r?\nopenclaw_memory: *{VERSION} *\r?\n")
_NAME = re.compile(r"(?!openclaw_memory)[a-z_]+")
_FIELD = re.compile(rf"({_NAME.pattern}): (.*)")
# Ends of lines to YAML, or marks that editors take out, which JSON would let stand.
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


def matter_end(text: str) -> int:
    """How many characters of a file come before the text of its document; 0 where a program wrote no front matter."""
    opening = _OPENING.match(text) if text.startswith("---") else None
    closing = _CLOSING.search(text, opening.end()) if opening else None
    return closing.end() if closing else 0


def composed(fields: Mapping[str, Any], text: str) -> str:
    """The file of a document with these fields, whose names are of `a-z` and `_`, and this text.

    Raises:
        QueryError: a name is another one, or a value is not JSON: the message says where in the fields it is.
    """
    if wrong := [name for name in fields if not _NAME.fullmatch(name)]:
        raise QueryError(f"{wrong[0]!r} cannot be the name of a field: use a-z and _, and not what this library uses")
    lines = [f"{name}: {_json(value, name)}\n" for name, value in fields.items()]
    return f"---\nopenclaw_memory: {VERSION}\n{''.join(lines)}---\n{text}\n"


def parsed(file: str) -> tuple[dict[str, Any], str] | None:
    """Fields and text of a document, as `composed` puts them together; None where the file is none.

    The last line feed is not of the text; a file that lacks it, as some editors leave it, is read all the same. A value
    that is not JSON counts as the string it is: other programs write YAML without quotation marks.
    """
    opening = _VERSION.match(file) if file.startswith("---") else None
    end = matter_end(file) if opening else 0
    if opening is None or not end:
        return None
    fields: dict[str, Any] = {}
    for line in file[opening.end() : end].split("\n"):
        if (match := _FIELD.fullmatch(line.rstrip("\r"))) is not None:
            fields[match[1]] = _value(match[2])
    text = file[end:]
    return fields, text.removesuffix("\n")


def _value(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        return written.strip()


def _json(value: Any, name: str) -> str:
    _check(value, name, 0)
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode()
    except UnicodeEncodeError as error:
        raise QueryError(f"{name} holds text that is not Unicode: remove the lone surrogate") from error
    except (TypeError, ValueError) as error:
        raise QueryError(f"{name} cannot be written as JSON ({error}): turn it into text") from error
    return _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", written)


def _check(value: Any, name: str, depth: int) -> None:
    """Raise QueryError where a value, called `name`, is not JSON: of what is nested, with the way there."""
    if depth > MAX_DEPTH:
        raise QueryError(f"{name} is nested deeper than {MAX_DEPTH} levels: make it flatter")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise QueryError(f"{name} has the key {key!r}, which is no string: JSON knows no other keys")
            _check(inner, f"{name}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _check(inner, f"{name}[{index}]", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise QueryError(f"{name} is {value}, which JSON does not know: leave it out, or use None")
    elif value is not None and not isinstance(value, str | int | float):
        kind = type(value).__name__
        raise QueryError(f"{name} is of type {kind}, which is not JSON: turn it into text, a number, a list or a dict")
