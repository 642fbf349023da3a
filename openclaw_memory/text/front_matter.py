"""The front matter of a document that a program wrote: fields as JSON, one a line, above the text (pure).

Such a file is `---`, `openclaw_memory: 1`, a line `name: JSON` for each field, `---`, the text, and a line feed. Other
programs read it as YAML, and simple YAML that they or people write there is read back. Front matter is not memory: it
is not cut, embedded or indexed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any, NamedTuple

from openclaw_memory.errors import InvalidInputError

VERSION = 1
MAX_BLOCK = 64 * 1024  # characters of a value that people wrote over several lines; each level copies it
MAX_DEPTH = 64  # of values in values: what is nested deeper could not be read again everywhere

# The field that says whose vector came with a document, and in it the key of that vector in the index, where the text
# does not tell which it is. Earlier versions wrote the vector itself there, float32 in base64.
EMBEDDING, MODEL, KEY, VECTOR = "embedding", "model", "key", "vector"
UNNAMED = "given"  # the identity of vectors whose model nobody named
PART_OF = "part_of"  # the field that names what the document is a part of, such as the file that a node was cut from
SHOWN_VECTOR = "…"  # what is shown in its place: thousands of characters that say nothing

_OPENING = re.compile(r"---\r?\nopenclaw_memory:[^\n]*(?:\n|\Z)")
_CLOSING = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_VERSION = re.compile(rf"---\r?\nopenclaw_memory: *{VERSION}\s*(?:\n|\Z)")
_NAME = re.compile(r"(?!openclaw_memory)[a-z_]+")
# Lines as `render` writes them: how they are recognised where nothing else separates them from the text.
_WRITTEN = re.compile(r"(?:[a-z_]+: (?:[\[{\"].*|-?\d[\d.eE+-]*|true|false|null)\r?(?:\n|\Z))*+")
# YAML as people write it: a name, plain or in quotation marks, and what follows the colon.
_FIELD = re.compile(r"""("[^"]*"|'[^']*'|[^\s"'#:\[{&*!|>%@`-][^:]*+)[ \t]*+:(?:[ \t]+(.*)|)""")
_OWN_OPENING = re.compile(r"---[ \t]*\r?\n")
_FLOW_LIST = re.compile(r"([A-Za-z_]+)[ \t]*:[ \t]*\[([^\[\]{}]*)\][ \t]*(?:#.*)?")  # [a, b], which is no JSON
_MERGE = re.compile(r"<{7}(?: |$)|={7}$|>{7}(?: |$)")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_HEX, _OF_VECTOR = re.compile("[0-9a-f]{64}"), 40
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None, "~": None}
# The lines of the field, and in them the vector, as JSON or YAML spell it: at least one float32, which is 8 characters.
_FIELD_OF_VECTOR = re.compile(rf"""^["']?{EMBEDDING}["']?[ \t]*:.*(?:\n[ \t].*)*""", re.MULTILINE)
_NUMBERS = re.compile(rf"""(\b{VECTOR}["']?[ \t]*:\s*(?:[|>][+-]?\s*)?["']?)[A-Za-z0-9+/\\=]{{8,}}(?=["'\s,}}]|$)""")
# Ends of lines to YAML, or marks that editors take out, which JSON would keep.
_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


class FrontMatter(NamedTuple):
    """The fields and the text of a document; `damage` says what of its front matter cannot be read."""

    fields: dict[str, Any]
    text: str
    damage: tuple[str, ...] = ()


class Embedding(NamedTuple):
    """What the front matter of a document says of the vector that came with it.

    `vector` is the vector itself in base64, as earlier versions wrote it, None if it is in the index alone. `key` is
    what the file says (see `key_of_vector`), or else the SHA-256 of that vector, or of the whole file.
    """

    model: str
    dims: int
    key: str
    vector: str | None

    @property
    def identity(self) -> str:
        """The name under which a store keeps it: vectors of one model but other dimensions are never compared."""
        return f"{self.model}#{self.dims}"


def get_embedding(file: str, fields: Mapping[str, Any]) -> Embedding | None:
    """Return what a file with these fields says of the vector that came with it, or None."""
    said = fields.get(EMBEDDING)
    if not isinstance(said, dict) or not said.get(MODEL):
        return None
    dims, vector = said.get("dims"), said.get(VECTOR)
    vector = None if vector is None else str(vector)
    key = str(said.get(KEY, ""))
    if vector is not None or not _HEX.fullmatch(key):
        key = _digest(file if vector is None else vector)
    return Embedding(str(said[MODEL]), dims if isinstance(dims, int) else 0, key, vector)


def make_vector_key(row: bytes, text: str) -> str:
    """Return the key of a vector that came with a text, as a file names it: digests of both, as hexadecimal digits."""
    return sha256(row).hexdigest()[:_OF_VECTOR] + _digest(text)[_OF_VECTOR:]


def is_vector_of(one: Embedding, text: str) -> bool:
    """Whether a vector came with this very text; true also where an earlier version did not write that down."""
    return one.vector is not None or one.key[_OF_VECTOR:] == _digest(text)[_OF_VECTOR:]


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def measure_front_matter(text: str) -> int:
    """Return how many characters of a file precede the text of its document; 0 if no program wrote it."""
    opening = _OPENING.match(text) if text.startswith("---") else None
    if opening is None:
        return 0
    closing = _CLOSING.search(text, opening.end())
    # The closing line was removed: the text begins below what only a program writes.
    above = closing or _WRITTEN.match(text, opening.end())
    return above.end() if above else opening.end()


def render(fields: Mapping[str, Any], text: str) -> str:
    """Return the file of a document with these fields, whose names consist of `a-z` and `_`, and this text.

    Raises:
        InvalidInputError: A name has other characters, or a value is not JSON: the message says where in the fields.
    """
    if wrong := [name for name in fields if not _NAME.fullmatch(name)]:
        raise InvalidInputError(
            f"{wrong[0]!r} cannot be the name of a field: use a-z and _, and not what this library uses"
        )
    lines = [f"{name}: {_to_json(value, name)}\n" for name, value in fields.items()]
    return f"---\nopenclaw_memory: {VERSION}\n{''.join(lines)}---\n{text}\n"


def parse(file: str) -> FrontMatter | None:
    """Return the fields and text of a file as `render` writes it; None for any other file.

    A file that begins like one is read as one whatever happened to it since: what cannot be read is left out of the
    fields and described in `damage`. The last line feed is not part of the text, and may be missing, as some editors
    leave it. Simple YAML is read too: unquoted strings, and mappings and lists in blocks.
    """
    opening = _VERSION.match(file) if file.startswith("---") else None
    if opening is None:
        return None
    end = measure_front_matter(file)
    above = file[opening.end() : end]
    closing = _CLOSING.search(above)
    lines = [line.rstrip("\r") for line in above[: closing.start() if closing else None].split("\n")]
    fields, unread = _table(lines)
    damage = [
        f"line {number + 3} {'is a mark of a merge' if _MERGE.match(lines[number]) else 'cannot be read'}"
        for number in unread
    ]
    if closing is None:
        damage.append("the line `---` between fields and text is missing")
    return FrontMatter(fields, file[end:].removesuffix("\n"), tuple(damage))


def parse_own_fields(file: str) -> dict[str, Any]:
    """Return the fields above a note that a person wrote, by names in lower case, as far as they are simple YAML.

    There are none without a line `---` at its beginning and another one below, or in a document.
    """
    if not _OWN_OPENING.match(file) or _OPENING.match(file):
        return {}
    head = file[:MAX_BLOCK]
    closing = _CLOSING.search(head, head.index("\n") + 1)
    if closing is None:
        return {}
    lines = [line.rstrip("\r") for line in head[head.index("\n") + 1 : closing.start()].split("\n")]
    fields, unread = _table(lines)
    for at in unread:
        if (match := _FLOW_LIST.fullmatch(lines[at])) is not None:
            fields[match[1]] = [one.strip().strip("\"'") for one in match[2].split(",")]
    return {name.lower(): value for name, value in fields.items()}


def hide_vector(file: str) -> str:
    """Return a file with `…` in place of the vector of a document, however it is spelled. The number of lines stays."""
    end = measure_front_matter(file)
    return _FIELD_OF_VECTOR.sub(lambda field: _NUMBERS.sub(rf"\1{SHOWN_VECTOR}", field[0]), file[:end]) + file[end:]


def with_vector(new: Sequence[str], old: Sequence[str]) -> list[str]:
    """Return the lines of a new version of a file, in which lines shown with a hidden vector are the old ones again.

    A line that differs from what was shown stays as it is.
    """
    shown = hide_vector("\n".join(old)).split("\n") if old else []
    hidden = {line: was for line, was in zip(shown, old, strict=True) if line != was}
    file = "\n".join(new)
    above = file[: measure_front_matter(file)].count("\n")
    return [hidden.get(line, line) if at < above else line for at, line in enumerate(new)]


def _table(lines: Sequence[str], depth: int = 0) -> tuple[dict[str, Any], list[int]]:
    """Return the fields that lines hold, and the numbers, from 0, of those that cannot be read."""
    fields: dict[str, Any] = {}
    unread: list[int] = []
    starts = [at for at, line in enumerate(lines) if line.strip() and line[0] not in " \t#" and not _is_item(line)]
    if any(line.strip() and not line.startswith("#") for line in lines[: starts[0] if starts else None]):
        unread.append(0)
    for start, stop in pairwise([*starts, len(lines)]):
        try:
            match = _FIELD.fullmatch(lines[start])
            if match is None:
                raise ValueError(lines[start])
            written = (match[2] or "").strip()
            inside = [line for line in lines[start + 1 : stop] if line.strip() and not line.lstrip().startswith("#")]
            if written and inside:  # a value that goes on in the lines below it
                raise ValueError(written)
            fields[match[1].strip().strip("\"'")] = _value(written) if written else _block(inside, depth + 1)
        except (ValueError, RecursionError):
            unread.append(start)
    return fields, unread


def _block(lines: Sequence[str], depth: int) -> Any:
    """Return what indented lines hold: a mapping, a list of plain values, or None.

    Raises:
        ValueError: They are something else.
    """
    if not lines:
        return None
    if depth > MAX_DEPTH or sum(map(len, lines)) > MAX_BLOCK:
        raise ValueError(lines[0])
    indent = min(len(line) - len(line.lstrip(" ")) for line in lines)
    inner = [line[indent:] for line in lines]
    if all(_is_item(line) for line in inner):
        return [_value(line[1:].strip()) for line in inner]
    fields, unread = _table(inner, depth)
    if unread:
        raise ValueError(inner[unread[0]])
    return fields


def _is_item(line: str) -> bool:
    return line == "-" or line.startswith("- ")


def _value(written: str) -> Any:
    """Return a value on one line: JSON, or a plain or quoted string of YAML.

    Raises:
        ValueError: It is neither.
    """
    try:
        return json.loads(written)
    except (ValueError, RecursionError):
        plain = _COMMENT.sub("", written).strip()
    if plain.startswith("'") and plain.endswith("'") and len(plain) > 1:
        return plain[1:-1].replace("''", "'")
    if not plain or plain.lower() in _CONSTANTS:
        return _CONSTANTS[plain.lower() or "~"]
    if plain[0] in "[{\"'":
        if plain != written:
            return json.loads(plain)
        raise ValueError(written)
    return json.loads(plain) if re.fullmatch(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", plain) else plain


def _to_json(value: Any, name: str) -> str:
    _check(value, name, 0)
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{name} holds text that is not Unicode: remove the lone surrogate") from error
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name} cannot be written as JSON ({error}): turn it into text") from error
    return _BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", written)


def _check(value: Any, name: str, depth: int) -> None:
    """Raise InvalidInputError if a value is not JSON, with the way to the nested part; `name` is what it is called."""
    if depth > MAX_DEPTH:
        raise InvalidInputError(f"{name} is nested deeper than {MAX_DEPTH} levels: make it flatter")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidInputError(f"{name} has the key {key!r}, which is no string: JSON knows no other keys")
            _check(inner, f"{name}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            _check(inner, f"{name}[{index}]", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidInputError(f"{name} is {value}, which JSON does not know: leave it out, or use None")
    elif value is not None and not isinstance(value, str | int | float):
        kind = type(value).__name__
        raise InvalidInputError(
            f"{name} is of type {kind}, which is not JSON: turn it into text, a number, a list or a dict"
        )
